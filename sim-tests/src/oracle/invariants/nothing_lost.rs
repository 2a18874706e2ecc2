//! Every committed record below the position is on the target. Records that the source itself deleted first may
//! be missing only behind a halt, so never below a position.

use super::Found;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    let missing = &found.alignment.missing;
    let first = *missing.first()?;
    let text =
        format!("{}{} committed records below the position were not copied", found.when, missing.len());
    Some(
        Violation::new(Invariant::NothingLost, found.at, text).in_partition(found.partition).at_source(first),
    )
}
