//! How instances end says the truth: done only if all is settled, refusals only if something is to be refused.

use crate::oracle::{Invariant, Violation};
use runtime_sim::Slot;
use verbatim_core::Exit;

/// What the run knows of an instance that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    pub was_told_to_stop: bool,
    /// Faults are over, and everything that the source has was copied before it was told.
    pub had_all_settled: bool,
    /// Some fault of the plan can make a cluster unreachable for long.
    pub may_be_unreachable: bool,
}

/// Whether an instance may end so.
pub fn check(now: i64, slot: Slot, exit: &Exit, circumstances: Circumstances) -> Option<Violation> {
    let is_true = match exit {
        Exit::Done => circumstances.was_told_to_stop,
        Exit::Unsettled(_) => circumstances.was_told_to_stop && !circumstances.had_all_settled,
        Exit::Unreachable(..) => circumstances.may_be_unreachable && !circumstances.had_all_settled,
        // A flow without an end, a ledger that nobody touched, clients that nobody denied anything.
        Exit::Halted(_) | Exit::OpenTransactions(_) => false,
        Exit::NotAuthorized(..) | Exit::Configuration(_) | Exit::Replaced(_) | Exit::Internal(_) => false,
    };
    let told = if circumstances.was_told_to_stop { "told to stop" } else { "not told to stop" };
    let text = || format!("instance {}, {told}, ended with {exit:?}", slot.0);
    (!is_true).then(|| Violation::new(Invariant::ExitsTrue, now, text()))
}
