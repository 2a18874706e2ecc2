use super::super::wire::Pending;
use kafka_model::Millis;
use kafka_types::LeaderEpoch;

/// A partition being fetched.
pub(super) struct Fetching {
    /// Rises with each assignment: what belongs to an older one is dropped.
    pub(super) version: u64,
    pub(super) next: i64,
    /// Of the last record read, by which truncation is noticed.
    pub(super) epoch: Option<LeaderEpoch>,
    /// The leader's epoch under which the position was last known to be in the log.
    pub(super) validated_under: Option<LeaderEpoch>,
    /// Being checked, under this epoch of the leader.
    pub(super) validating: Option<(Pending, LeaderEpoch)>,
    pub(super) may_fetch_at: Millis,
    /// Where the end was last reported.
    pub(super) end_reported: Option<i64>,
    /// Records in the consumer's queue.
    pub(super) queued: usize,
    /// Nothing more is fetched until it is assigned anew.
    pub(super) is_stopped: bool,
}

impl Fetching {
    pub(super) fn new(version: u64, next: i64, epoch: Option<LeaderEpoch>) -> Fetching {
        Fetching {
            version,
            next,
            epoch,
            validated_under: None,
            validating: None,
            may_fetch_at: 0,
            end_reported: None,
            queued: 0,
            is_stopped: false,
        }
    }
}
