//! The way from a lane's threads to the World, which is cut when the lane is abandoned.

use super::LaneEvents;
use crate::ffi::Liveness;
use crate::threads;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::Failure;
use verbatim_core::{Attempt, LaneId};

/// One taking of a lane, shared by all that works for it. What is emitted after it was abandoned goes nowhere.
#[derive(Clone)]
pub(super) struct Emitter {
    lane: LaneId,
    events: LaneEvents,
    abandoned: Arc<AtomicBool>,
    /// The attempt of the latest command. A thread that breaks speaks for it: of an older one nobody would hear.
    latest: Arc<AtomicU64>,
    liveness: Liveness,
}

impl Emitter {
    pub(super) fn new(lane: LaneId, events: LaneEvents) -> Emitter {
        Emitter {
            lane,
            events,
            abandoned: Arc::default(),
            latest: Arc::default(),
            liveness: Liveness::default(),
        }
    }

    pub(super) fn lane(&self) -> LaneId {
        self.lane
    }

    pub(super) fn emit(&self, attempt: Attempt, event: LaneEvent) {
        if !self.is_abandoned() {
            // Nobody listens any more only when the World itself is gone.
            let _ = self.events.send((self.lane, attempt, event));
        }
    }

    pub(super) fn failed(&self, attempt: Attempt, step: Step, failure: Failure) {
        tracing::debug!(lane = %self.lane, %attempt, ?step, %failure, "a lane's step failed");
        self.emit(attempt, LaneEvent::Failed(step, failure));
    }

    /// A command of this attempt has come.
    pub(super) fn heed(&self, attempt: Attempt) {
        self.latest.fetch_max(attempt.0, Ordering::Relaxed);
    }

    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// Whoever holds this still runs.
    pub(super) fn liveness(&self) -> Liveness {
        Arc::clone(&self.liveness)
    }

    /// Starts a thread of this lane; it counts as running until `work` is dropped. If it breaks, `step` has failed
    /// and nobody knows what was done.
    pub(super) fn spawn(
        &self,
        attempt: Attempt,
        step: Step,
        what: &str,
        work: impl FnOnce() + Send + 'static,
    ) {
        self.heed(attempt);
        let liveness = self.liveness();
        let body = move || {
            work();
            drop(liveness);
        };
        let emits = self.clone();
        threads::start(&format!("lane-{}-{what}", self.lane), body, move |why| {
            let latest = Attempt(emits.latest.load(Ordering::Relaxed));
            tracing::error!(lane = %emits.lane, attempt = %latest, ?step, why, "a thread of a lane broke");
            emits.failed(latest, step, Failure::Unknown(why));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_thread_that_breaks_fails_its_step_in_the_latest_attempt() {
        let (events, mut seen) = unbounded_channel();
        let emitter = Emitter::new(LaneId(2), events);
        let (go, gone) = channel::<()>();
        emitter.spawn(Attempt(3), Step::Open, "test", move || {
            gone.recv().unwrap();
            panic!("broken");
        });
        emitter.heed(Attempt(5));
        go.send(()).unwrap();
        let (lane, attempt, event) = seen.blocking_recv().unwrap();
        assert_eq!((lane, attempt), (LaneId(2), Attempt(5)));
        assert!(
            matches!(event, LaneEvent::Failed(Step::Open, Failure::Unknown(why)) if why.contains("broken"))
        );
    }

    #[test]
    fn what_an_abandoned_thread_has_to_say_goes_nowhere() {
        let (events, mut seen) = unbounded_channel();
        let emitter = Emitter::new(LaneId(2), events);
        emitter.abandon();
        emitter.spawn(Attempt(1), Step::Open, "test", || panic!("broken"));
        let running = emitter.liveness();
        drop(emitter);
        while 1 < Arc::strong_count(&running) {
            std::thread::yield_now();
        }
        assert!(seen.try_recv().is_err());
    }
}
