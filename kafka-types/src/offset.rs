use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! offset {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// The first offset of a partition that never lost a record.
            pub const ZERO: $name = $name(0);

            /// The offset after this one.
            pub fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// How many offsets lie in `earlier..self`, zero when `earlier` is not earlier.
            pub fn distance_from(self, earlier: $name) -> u64 {
                u64::try_from(self.0 - earlier.0).unwrap_or(0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

offset! {
    /// An offset in a partition of the source cluster.
    SourceOffset
}

offset! {
    /// An offset in a partition of the target cluster, the ledger's partitions included.
    TargetOffset
}
