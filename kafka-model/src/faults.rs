/// Bugs of a broker, planted to see whether an oracle notices them (mutants 43 to 50). None by default, and no
/// configuration sets them: only tests do, through [`crate::Cluster::plant`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BrokerFaults {
    /// 43: acks=all is answered before the followers have the records.
    pub acknowledges_before_replication: bool,
    /// 44: no batch is remembered, so a retry is appended again.
    pub forgets_duplicates: bool,
    /// 45: readers of committed records see those of open transactions.
    pub last_stable_offset_ignores_open_transactions: bool,
    /// 46: a commit writes no marker to the transaction's last partition and yet counts as complete.
    pub commit_marker_skips_a_partition: bool,
    /// 47: OffsetFetch answers the last committed offset while a transaction holds a newer one.
    pub offset_fetch_ignores_pending: bool,
    /// 48: producers of an older epoch are let through.
    pub fencing_is_off: bool,
    /// 49: produce responses say offset 0.
    pub produce_answers_offset_zero: bool,
    /// 49: a committed offset reads as if there were none.
    pub offset_fetch_answers_nothing: bool,
    /// 50: consumers read past the high watermark.
    pub fetch_reads_past_high_watermark: bool,
}
