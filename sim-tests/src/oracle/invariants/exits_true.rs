//! How instances end says the truth: done only if all is settled, refusals only if something is to be refused.

use crate::oracle::violation::{Invariant, Violation};
use kafka_model::Millis;
use kafka_types::SourcePartition;

/// How an instance says that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    Halted,
    OpenTransactions,
    Unsettled,
    Unreachable,
    Configuration,
    NotAuthorized,
    Replaced,
    Internal,
}

/// What the run knows of an instance that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    pub was_told_to_stop: bool,
    /// Its machine never reaches one of the clusters again.
    pub is_cut_off: bool,
    /// A transaction with records that it left open in a lane which nobody has claimed since.
    pub left_open: Option<String>,
    /// Faults are over, and everything that the source has was copied before it was told.
    pub had_all_settled: bool,
    /// The cluster that it says it cannot reach did not answer it soundly at some time.
    pub was_troubled: bool,
    pub is_bounded: bool,
    /// What a bounded run had to reach and did not.
    pub short_of: Option<String>,
    /// A partition whose copy was gone when the instance started, of which the ledger says nothing still.
    pub untold: Option<SourcePartition>,
    /// A broker told somebody that another member has its instance id.
    pub was_fenced_by_instance: bool,
    /// Partitions that did not stand halted since the start, though a bounded run ended as if they had.
    pub never_halted: Vec<SourcePartition>,
    /// Partitions in which no transaction was open since the start, though a bounded run ended as if one were.
    pub never_open: Vec<SourcePartition>,
    /// The ledger has more partitions than there are lanes.
    pub ledger_is_grown: bool,
    /// It says that it has no right to a topic, and an administrator had taken that right away.
    pub was_denied: bool,
}

/// Whether an instance may end so.
pub fn check(
    now: Millis,
    who: u32,
    ended: Ended,
    said: &str,
    circumstances: &Circumstances,
) -> Option<Violation> {
    let Circumstances { was_told_to_stop, is_cut_off, is_bounded, .. } = *circumstances;
    let mut why = String::new();
    let is_true = match ended {
        Ended::Done if is_bounded => {
            let untold = circumstances.untold.as_ref().map(|it| format!("the copy of {it} was gone before"));
            let but = circumstances.short_of.clone().or(untold);
            why = but.as_ref().map_or(String::new(), |it| format!("; but {it}"));
            but.is_none()
        }
        Ended::Done => {
            why = circumstances.left_open.clone().map_or(String::new(), |it| format!("; but {it}"));
            was_told_to_stop && circumstances.left_open.is_none()
        }
        Ended::Halted => {
            let short_of = circumstances.short_of.clone();
            why = short_of.as_ref().map_or(String::new(), |it| format!("; but {it}, and did not halt"));
            is_bounded && circumstances.never_halted.is_empty() && short_of.is_none()
        }
        Ended::OpenTransactions => {
            let never = &circumstances.never_open;
            why = if never.is_empty() { why } else { format!("; but nothing was open in {never:?}") };
            is_bounded && never.is_empty()
        }
        Ended::Unsettled if is_bounded => was_told_to_stop,
        Ended::Unsettled => was_told_to_stop && (!circumstances.had_all_settled || is_cut_off),
        Ended::Unreachable => circumstances.was_troubled && (is_cut_off || !circumstances.had_all_settled),
        Ended::Configuration => circumstances.ledger_is_grown,
        Ended::NotAuthorized => circumstances.was_denied,
        Ended::Internal => false,
        // A late request of the process itself may have done it: what the broker said is all it can know.
        Ended::Replaced => circumstances.was_fenced_by_instance,
    };
    let told = if was_told_to_stop { "told to stop" } else { "not told to stop" };
    let text = || format!("instance {who}, {told}, ended with {said}{why}");
    (!is_true).then(|| Violation::new(Invariant::ExitsTrue, now, text()))
}
