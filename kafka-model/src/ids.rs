//! Names and numbers that requests carry.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// An offset in a partition of this cluster. A bare number, since a model knows only one cluster: whoever
/// drives two says which is the source and which the target.
pub type Offset = i64;

/// A moment on the cluster's own clock, in milliseconds since the Unix epoch, or a span of milliseconds.
pub type Millis = i64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names one request until it is answered. The caller chooses it and never uses one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestToken(pub u64);

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(name: impl Into<Arc<str>>) -> $name {
                $name(name.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Kafka's requests say the empty name where there is none.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::new("")
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> $name {
                $name::new(name)
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> $name {
                $name::new(name)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

names! {
    /// `client.id`, by which quotas are kept.
    ClientId,
    /// `transactional.id`
    TransactionalId,
    /// `group.id`
    GroupId,
    /// What the group coordinator calls a member; the empty one is a member that has yet to be named.
    MemberId,
    /// `group.instance.id` of a static member (KIP-345).
    InstanceId,
}
