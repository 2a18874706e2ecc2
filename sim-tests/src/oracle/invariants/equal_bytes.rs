//! Key, value, headers and timestamp of every copy are those of its source record, byte for byte.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let Misfit::Altered { source, part } = misfit else { return None };
        let text = format!("a copy is no source record: its {part} differs");
        let mut violation =
            Violation::new(Invariant::EqualBytes, found.at, text).in_partition(found.partition);
        violation.source = *source;
        Some(violation.at_target(*target))
    })
}
