//! How much of each partition was compared, so that the closing line claims no more than that.

use super::report::{Method, PartitionReport};
use std::collections::BTreeMap;

/// What of a partition was left uncompared; where several things are true, the one to look at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// Everything that the source holds, or all that was copied of a topic that is no longer to be copied.
    Whole,
    Unread,
    /// A difference was found, and nothing after it was looked at.
    Different,
    Halted,
    NotBegun,
    /// The source holds more than is copied yet.
    Behind,
    /// The source does not say where it ends, or is gone.
    EndUnknown,
    /// Neither side has anything left of what was copied.
    NothingLeft,
}

impl PartitionReport {
    pub(super) fn coverage(&self) -> Coverage {
        if self.difference.is_some() {
            return Coverage::Different;
        }
        if self.unread.is_some() {
            return Coverage::Unread;
        }
        if self.has_nothing_left() {
            return Coverage::NothingLeft;
        }
        if !self.taken {
            return Coverage::Whole;
        }
        if self.halted.is_some() {
            return Coverage::Halted;
        }
        match (self.lag, self.method) {
            (Some(0), _) => Coverage::Whole,
            (_, Method::Nothing) => Coverage::NotBegun,
            (Some(_), Method::Records | Method::Suffix | Method::LastPerKey | Method::DigestOnly) => {
                Coverage::Behind
            }
            (None, Method::Records | Method::Suffix | Method::LastPerKey | Method::DigestOnly) => {
                Coverage::EndUnknown
            }
        }
    }
}

/// What was not compared, in words; nothing where all was.
pub(super) fn left_out(partitions: &[PartitionReport]) -> String {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for coverage in partitions.iter().map(PartitionReport::coverage) {
        let words = match coverage {
            // A difference is counted by itself.
            Coverage::Whole | Coverage::Different => continue,
            Coverage::Unread => "could not be read",
            Coverage::Halted => "halted",
            Coverage::NotBegun => "not begun",
            Coverage::Behind => "behind",
            Coverage::EndUnknown => "without a known end",
            Coverage::NothingLeft => "with nothing left to compare",
        };
        *numbers.entry(words).or_default() += 1;
    }
    let said: Vec<String> = numbers.iter().map(|(words, number)| format!("{number} {words}")).collect();
    said.join(", ")
}
