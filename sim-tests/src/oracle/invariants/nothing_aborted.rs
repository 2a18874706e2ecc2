//! Nothing is copied that readers of committed records do not see: no record of an aborted or open transaction,
//! none that its leader lost before anybody could read it.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let (source, why) = match misfit {
            Misfit::NotCommitted { source, is_open: false } => (source, "its transaction was aborted"),
            Misfit::NotCommitted { source, is_open: true } => (source, "its transaction is open"),
            Misfit::NeverReadable { source } => (source, "its leader lost it before it was replicated"),
            Misfit::Altered { .. }
            | Misfit::Elsewhere { .. }
            | Misfit::OtherTopicId { .. }
            | Misfit::Repeated { .. }
            | Misfit::Misordered { .. }
            | Misfit::Beyond { .. } => return None,
        };
        let text = format!("a record was copied although {why}");
        let violation =
            Violation::new(Invariant::NothingAborted, found.at, text).in_partition(found.partition);
        Some(violation.at_source(*source).at_target(*target))
    })
}
