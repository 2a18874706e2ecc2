//! The one task that lets time act: it advances the universe whenever something is due.

use crate::shared::Shared;
use kafka_model::Millis;
use madsim::time::{Instant, Sleep};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Starts it. Everybody else waits for alarms that it rings, so that madsim holds one timer and not hundreds.
pub(crate) fn start(shared: &Shared) {
    let for_clock = shared.clone();
    let mut clock = Clock { began: Instant::now(), timers: BTreeMap::new() };
    shared.spawn(poll_fn(move |context| clock.poll(&for_clock, context)));
}

struct Clock {
    began: Instant,
    /// madsim's timers that have yet to fire. They cannot be taken back, so a later one is never set while an
    /// earlier one is.
    timers: BTreeMap<Millis, Sleep>,
}

impl Clock {
    fn poll(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<()> {
        let now = self.now();
        while self.timers.first_key_value().is_some_and(|(at, _)| *at <= now) {
            self.timers.pop_first();
        }
        let next = shared.advance(now, context.waker());
        if let Some(next) = next
            && self.timers.first_key_value().is_none_or(|(at, _)| next < *at)
        {
            // At least a little later, or it would have been done by now.
            let next = next.max(now + 1);
            let mut sleep = madsim::time::sleep_until(self.began + millis(next));
            let due = Pin::new(&mut sleep).poll(context);
            debug_assert!(due.is_pending(), "it lies ahead");
            self.timers.insert(next, sleep);
        }
        Poll::Pending
    }

    fn now(&self) -> Millis {
        self.began.elapsed().as_millis() as Millis
    }
}

fn millis(millis: Millis) -> Duration {
    Duration::from_millis(millis.max(0) as u64)
}
