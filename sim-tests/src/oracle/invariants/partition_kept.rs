//! A record of partition p is copied to partition p of its topic's copy, and nowhere else.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let Misfit::Elsewhere { home, source } = misfit else { return None };
        let text = format!("a record of {home} was copied here");
        let violation =
            Violation::new(Invariant::PartitionKept, found.at, text).in_partition(found.partition);
        Some(violation.at_source(*source).at_target(*target))
    })
}
