//! The flow's ledger: its records, their bytes, and what replaying them gives.
//!
//! Partition k of the ledger belongs to lane k. Whoever holds the lane's transactional id writes there, in the
//! same transactions as the records themselves; so what can be read there, read_committed, is what the target
//! holds. Partition 0 also holds what all lanes must agree on: when the flow started, and each topic's pins.

mod claim;
mod codec;
mod entry;
mod flow;
mod replay;
mod settings;
mod topic;

pub use claim::{Claim, ClaimMismatch, Terms};
pub use codec::{BadLedgerRecord, Record, decode};
pub use entry::{Entry, Halt, HaltReason, LastRecord, RunOffsets};
pub use flow::FlowLedger;
pub use replay::{LaneLedger, TopicTable};
pub use settings::{UnsafeLedger, check_settings, wanted_settings};
pub use topic::{FlowStart, TargetPin, TopicRecord};
