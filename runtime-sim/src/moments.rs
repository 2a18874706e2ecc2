//! Where a crash hurts most.

/// A moment in the life of an instance's clients, at which [`crate::Handle::crash_at`] lets a crash land.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Moment {
    /// A batch of records is sent, and not acknowledged.
    ProduceSent,
    /// All of a run's records are acknowledged, the ledger's are not sent.
    RunAcknowledged,
    /// The ledger's records are sent, and not acknowledged.
    LedgerSent,
    /// The ledger's records are acknowledged, EndTxn is not sent.
    LedgerAcknowledged,
    /// EndTxn is sent, and not answered.
    EndTxnSent,
    /// EndTxn is answered, and the mirror does not know yet.
    EndTxnAnswered,
    /// The lane's transactional id is being initialised.
    InitSent,
    /// The group has taken lanes away, and the mirror has not let go yet.
    Revoking,
    /// JoinGroup is sent, and not answered.
    JoinSent,
    /// A lane is given up with what it had under way, and the group is not told yet that others may have it.
    LaneClosed,
}

impl Moment {
    /// All at which anything may strike at any time. A lane is closed too seldom for that.
    pub const ALL: &[Moment] = &[
        Moment::ProduceSent,
        Moment::RunAcknowledged,
        Moment::LedgerSent,
        Moment::LedgerAcknowledged,
        Moment::EndTxnSent,
        Moment::EndTxnAnswered,
        Moment::InitSent,
        Moment::Revoking,
        Moment::JoinSent,
    ];
}
