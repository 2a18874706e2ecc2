//! How a mirror ends.

use crate::event::OpenTransaction;
use crate::failure::{Side, Trouble};
use kafka_types::SourcePartition;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// All that was asked for is done and settled.
    Done,
    /// A bounded run left partitions that halted, each with its reason.
    Halted(BTreeMap<SourcePartition, String>),
    /// A bounded run copied all that is readable; these source transactions are still open.
    OpenTransactions(BTreeMap<SourcePartition, Vec<OpenTransaction>>),
    /// A cluster could not be reached from the start.
    Unreachable(Side, String),
    /// Stopped before all that was read was settled; nothing is lost, a restart goes on from the ledger.
    Unsettled(String),
    NotAuthorized(Side, Trouble),
    /// Configuration and clusters do not fit; nothing was written.
    Configuration(String),
    /// Another process runs under this one's instance id.
    Replaced(String),
    /// A bug or a broken client library.
    Internal(String),
}
