use crate::ledger::Halt;
use kafka_types::SourceOffset;

/// One partition of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Share {
    /// For its topic's record, for the target topic, or for another look.
    Waiting,
    /// The target partition is being looked at.
    Preparing,
    /// Records are read; `next` is the position after the last one that arrived.
    Reading {
        next: SourceOffset,
    },
    Halted(Halt),
}
