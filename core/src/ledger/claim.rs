use crate::lane::{Attempt, HASH_VERSION};
use serde::{Deserialize, Serialize};

/// A lane taken: written alone, right after its transactional id was initialised and before anything is read.
///
/// Reading back to one's own claim is the only safe end of a replay (H2), and the claim carries all that two
/// instances of one flow must agree on (H3, H8).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The process that took the lane; no two processes share it.
    pub incarnation: String,
    pub attempt: Attempt,
    #[serde(flatten)]
    pub terms: Terms,
}

/// What must be the same for every claim of a flow, for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Terms {
    pub lanes: u32,
    pub hash_version: u32,
    pub source_cluster: String,
    pub target_cluster: String,
    /// The rename rule.
    pub rename: String,
}

impl Terms {
    pub fn new(lanes: u32, source_cluster: &str, target_cluster: &str, rename: String) -> Terms {
        Terms {
            lanes,
            hash_version: HASH_VERSION,
            source_cluster: source_cluster.into(),
            target_cluster: target_cluster.into(),
            rename,
        }
    }
}

/// This flow's ledger was written under other terms: another source, other lanes or other rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "the ledger was written by {by} with {what} {theirs:?}, but this configuration has {ours:?}; \
     restore the setting, or give this flow another name"
)]
pub struct ClaimMismatch {
    pub by: String,
    pub what: &'static str,
    pub theirs: String,
    pub ours: String,
}

impl Claim {
    /// Whether this claim was made under `ours`, or what differs first.
    pub fn check(&self, ours: &Terms) -> Result<(), ClaimMismatch> {
        let theirs = &self.terms;
        let pairs = [
            ("lanes", theirs.lanes.to_string(), ours.lanes.to_string()),
            ("hash version", theirs.hash_version.to_string(), ours.hash_version.to_string()),
            ("source cluster", theirs.source_cluster.clone(), ours.source_cluster.clone()),
            ("target cluster", theirs.target_cluster.clone(), ours.target_cluster.clone()),
            ("rename rule", theirs.rename.clone(), ours.rename.clone()),
        ];
        match pairs.into_iter().find(|(_, theirs, ours)| theirs != ours) {
            None => Ok(()),
            Some((what, theirs, ours)) => {
                Err(ClaimMismatch { by: self.incarnation.clone(), what, theirs, ours })
            }
        }
    }
}
