use crate::random::Rate;
use kafka_model::Millis;
use serde::{Deserialize, Serialize};

/// What a process does to itself: nothing of it is wrong, all of it is awkward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientFaults {
    /// Most records in one batch that is produced: small ones make many requests of one transaction, of which
    /// some may be stored and others not.
    pub batch_records_max: u32,
    /// Most records that a source consumer hands on at once.
    pub fetch_records_max: u32,
    /// A record is not even queued, for a passing reason of the library's own.
    pub send_refused: Rate,
    /// A step of the process takes up to `slow_step_max_ms`.
    pub slow_step: Rate,
    pub slow_step_max_ms: Millis,
}

impl Default for ClientFaults {
    fn default() -> ClientFaults {
        ClientFaults {
            batch_records_max: 10_000,
            fetch_records_max: 1_000,
            send_refused: Rate::NEVER,
            slow_step: Rate::NEVER,
            slow_step_max_ms: 2_000,
        }
    }
}

/// Bugs of a client library, planted to see that the oracle notices. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientMutants {
    /// 54: partitions to fetch are kept in a hash map whose order no seed decides.
    pub unseeded_order: bool,
    /// 56: a commit that the library retried by itself counts as clean, whatever was not answered.
    pub retried_commit_is_clean: bool,
    /// 58: a replay of the ledger ends at the end of the partition.
    pub replay_ends_at_end_of_partition: bool,
    /// 59: INVALID_TXN_STATE is an error that an abort mends, whatever was not answered before.
    pub invalid_state_is_abortable: bool,
    /// 2: records are committed first, and their progress in a transaction of its own.
    pub progress_follows_alone: bool,
    /// 4: the ledger is read before the transactional id is initialised.
    pub ledger_is_read_before_fencing: bool,
    /// 6: every process has transactional ids of its own.
    pub transactional_ids_of_the_process: bool,
    /// 41: UNKNOWN_SERVER_ERROR in answer to EndTxn counts as success.
    pub unknown_server_error_is_success: bool,
    /// 63: a record that the library did not take counts as acknowledged.
    pub send_errors_are_not_counted: bool,
    /// 36: sequence numbers begin anew when a partition's leader changes.
    pub sequence_resets_on_leader_change: bool,
    /// 38: a produce that timed out is given up as not written, and sent anew under new sequence numbers.
    pub timed_out_is_not_written: bool,
    /// 40: aborted records are handed to the reader.
    pub aborted_records_are_read: bool,
    /// 69: positions are assigned without their leader epoch.
    pub start_without_epoch: bool,
    /// 5: the ledger is read with what its open and aborted transactions hold.
    pub ledger_is_read_uncommitted: bool,
    /// 16: batches outlive a rewind, and the lane's taking.
    pub batches_outlive_their_attempt: bool,
    /// 26: the source is read with what its open and aborted transactions hold.
    pub source_is_read_uncommitted: bool,
    /// 29: records without a value arrive with an empty one.
    pub tombstones_become_empty: bool,
    /// 29: headers are left out.
    pub headers_are_dropped: bool,
    /// 29: records get the time at which they are sent.
    pub timestamps_are_renewed: bool,
    /// 63: a lane may produce to partitions that its producer does not know yet.
    pub prepares_unseen: bool,
    /// 57: ledger records are sent while others of the transaction are on their way.
    pub settles_in_flight: bool,
}
