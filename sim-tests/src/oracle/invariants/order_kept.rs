//! Within a partition, copies come in the order of the source.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let Misfit::Misordered { source } = misfit else { return None };
        let text = format!("{}a record was copied after one that follows it at the source", found.when);
        let violation = Violation::new(Invariant::OrderKept, found.at, text).in_partition(found.partition);
        Some(violation.at_source(*source).at_target(*target))
    })
}
