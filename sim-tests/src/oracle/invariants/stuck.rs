//! When faults are over, what is left is done.

use super::Standstill;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(it: &Standstill) -> Option<Violation> {
    it.going_on.is_none().then(|| it.violation(Invariant::Stuck, ""))
}
