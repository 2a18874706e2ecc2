//! When faults are over, what happens leads to an end.

use super::Standstill;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(it: &Standstill) -> Option<Violation> {
    let going_on = it.going_on?;
    Some(it.violation(Invariant::Livelock, &format!("; {going_on} go on")))
}
