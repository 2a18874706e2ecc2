use super::connection::Transit;
use kafka_model::Millis;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// What happens when; what is due at one moment happens in the order in which it was scheduled.
#[derive(Default)]
pub(super) struct Schedule {
    queue: BinaryHeap<Reverse<Timed>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Timed {
    at: Millis,
    number: u64,
    transit: Transit,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Timed) -> bool {
        self.number == other.number
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Timed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Timed) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Schedule {
    pub(super) fn next_at(&self) -> Option<Millis> {
        self.queue.peek().map(|Reverse(timed)| timed.at)
    }

    pub(super) fn at(&mut self, at: Millis, transit: Transit) {
        self.scheduled += 1;
        self.queue.push(Reverse(Timed { at, number: self.scheduled, transit }));
    }

    /// The next thing that is due by `now`.
    pub(super) fn pop(&mut self, now: Millis) -> Option<Transit> {
        self.next_at().filter(|at| *at <= now)?;
        self.queue.pop().map(|Reverse(timed)| timed.transit)
    }
}
