use crate::SourceOffset;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The leader epoch under which a record was appended (KIP-101), zero or more.
///
/// A position without its epoch cannot be checked for truncation (KIP-320), so the two travel together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaderEpoch(pub i32);

impl LeaderEpoch {
    /// Clients say -1 where the broker or the log gave no epoch.
    pub fn from_wire(epoch: i32) -> Option<LeaderEpoch> {
        (0 <= epoch).then_some(LeaderEpoch(epoch))
    }
}

impl fmt::Display for LeaderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in a source log, as its history knows it (KIP-320).
///
/// Absent where nobody told it, the epoch is otherwise one under which the log reached at least this far: a log
/// whose history says that it ended earlier has been cut back below this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OffsetAndEpoch {
    pub offset: SourceOffset,
    pub epoch: Option<LeaderEpoch>,
}

impl OffsetAndEpoch {
    /// Whether a record is the one that stood here: under another epoch an offset holds another record.
    pub fn is_of(&self, record: OffsetAndEpoch) -> bool {
        let differs = self.epoch.zip(record.epoch).is_some_and(|(here, there)| here != there);
        self.offset == record.offset && !differs
    }
}
