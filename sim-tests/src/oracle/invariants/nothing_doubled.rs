//! No record is copied twice.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    let repeated = |(target, misfit): &(i64, Misfit)| match misfit {
        Misfit::Repeated { source } => Some((*source, *target)),
        Misfit::Altered { .. }
        | Misfit::NotCommitted { .. }
        | Misfit::Elsewhere { .. }
        | Misfit::OtherTopicId { .. }
        | Misfit::Misordered { .. }
        | Misfit::Beyond { .. }
        | Misfit::NeverReadable { .. } => None,
    };
    let all: Vec<(i64, i64)> = found.alignment.misfits.iter().filter_map(repeated).collect();
    let (source, target) = *all.first()?;
    let text = format!("{} records were copied a second time", all.len());
    let violation = Violation::new(Invariant::NothingDoubled, found.at, text).in_partition(found.partition);
    Some(violation.at_source(source).at_target(target))
}
