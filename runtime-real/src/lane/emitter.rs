//! The way from a lane's threads to the World, which is cut when the lane is abandoned.

use super::LaneEvents;
use crate::ffi::Liveness;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::{Failure, Trouble};
use verbatim_core::{Attempt, LaneId};

/// One taking of a lane, shared by all that works for it. What is emitted after it was abandoned goes nowhere.
#[derive(Clone)]
pub(super) struct Emitter {
    lane: LaneId,
    events: LaneEvents,
    abandoned: Arc<AtomicBool>,
    liveness: Liveness,
}

impl Emitter {
    pub(super) fn new(lane: LaneId, events: LaneEvents) -> Emitter {
        Emitter { lane, events, abandoned: Arc::default(), liveness: Liveness::default() }
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

    /// Starts a thread of this lane; it counts as running until `work` is dropped.
    pub(super) fn spawn(
        &self,
        attempt: Attempt,
        step: Step,
        what: &str,
        work: impl FnOnce() + Send + 'static,
    ) {
        let name = format!("lane-{}-{what}", self.lane);
        let liveness = self.liveness();
        let body = move || {
            work();
            drop(liveness);
        };
        if let Err(error) = std::thread::Builder::new().name(name).spawn(body) {
            self.failed(attempt, step, Failure::Fatal(Trouble::Refused(format!("no thread: {error}"))));
        }
    }
}
