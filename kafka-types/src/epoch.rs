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
