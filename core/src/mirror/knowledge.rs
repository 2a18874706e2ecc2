use crate::identity::TopicIdentity;
use crate::ledger::{Terms, TopicTable};
use crate::mirror::LedgerGuard;
use crate::source::{Discovery, Leaders};
use kafka_types::TopicId;

/// What an instance knows of both clusters, shared by its lanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Knowledge {
    /// What every claim of this flow must carry.
    pub terms: Terms,
    /// The ledger topic that this instance started with.
    pub ledger_id: TopicId,
    pub discovery: Discovery,
    pub identity: TopicIdentity,
    pub leaders: Leaders,
    pub topic_table: TopicTable,
    pub ledger_guard: LedgerGuard,
    /// Set when something was settled, by a lane here or, in a bounded run, by whomever; whoever counts
    /// progress takes it back.
    pub settled_something: bool,
}
