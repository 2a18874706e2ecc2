//! Some of librdkafka's calls ignore their time-out (librdkafka#5456, #4420). A watchdog calls such a step
//! off; the thread that is stuck in it stays behind with its client.

use super::emitter::Emitter;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use verbatim_core::Attempt;
use verbatim_core::event::Step;
use verbatim_core::failure::Failure;

/// How much longer than its own time-out a call may take.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Watchdog(Arc<(Mutex<State>, Condvar)>);

enum State {
    Idle,
    Watching {
        attempt: Attempt,
        step: Step,
        until: Instant,
    },
    /// The step was called off: its outcome no longer counts.
    Fired,
    Ended,
}

impl Watchdog {
    pub(super) fn start(emitter: Emitter, attempt: Attempt) -> Watchdog {
        let watchdog = Watchdog(Arc::new((Mutex::new(State::Idle), Condvar::new())));
        let watching = watchdog.clone();
        let emits = emitter.clone();
        emitter.spawn(attempt, Step::Open, "watchdog", move || watching.watch(&emits));
        watchdog
    }

    /// Runs `call`, which should take `limit` at most. `None` if it was called off meanwhile, as already said
    /// by a `Failed(step, Unknown)`: the caller must end without another word.
    pub(super) fn guard<T>(
        &self,
        attempt: Attempt,
        step: Step,
        limit: Duration,
        call: impl FnOnce() -> T,
    ) -> Option<T> {
        let (state, changed) = &*self.0;
        {
            let mut state = state.lock().expect("no panic while locked");
            match *state {
                State::Idle => {}
                State::Watching { .. } | State::Fired | State::Ended => return None,
            }
            *state = State::Watching { attempt, step, until: Instant::now() + limit + GRACE };
            changed.notify_all();
        }
        let outcome = call();
        let mut state = state.lock().expect("no panic while locked");
        match *state {
            State::Watching { .. } => {
                *state = State::Idle;
                Some(outcome)
            }
            State::Idle | State::Fired | State::Ended => None,
        }
    }

    /// Ends the watch: what is still running is nobody's any more.
    pub(super) fn end(&self) {
        *self.0.0.lock().expect("no panic while locked") = State::Ended;
        self.0.1.notify_all();
    }

    fn watch(&self, emitter: &Emitter) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().expect("no panic while locked");
        loop {
            state = match *state {
                State::Idle => changed.wait(state).expect("no panic while locked"),
                State::Fired | State::Ended => return,
                State::Watching { attempt, step, until } => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        *state = State::Fired;
                        let text = "the client library does not return: left behind".into();
                        emitter.failed(attempt, step, Failure::Unknown(text));
                        return;
                    }
                    changed.wait_timeout(state, left).expect("no panic while locked").0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;
    use verbatim_core::LaneId;
    use verbatim_core::event::LaneEvent;

    #[test]
    fn a_call_that_returns_keeps_its_outcome() {
        let (events, mut seen) = unbounded_channel();
        let emitter = Emitter::new(LaneId(0), events);
        let watchdog = Watchdog::start(emitter, Attempt(1));
        let guard = |value| watchdog.guard(Attempt(1), Step::Settle, Duration::from_secs(60), || value);
        assert_eq!(guard(7), Some(7));
        assert_eq!(guard(8), Some(8));
        watchdog.end();
        assert_eq!(guard(9), None);
        assert!(seen.try_recv().is_err());
    }

    #[test]
    fn a_call_that_hangs_is_called_off_once() {
        let (events, mut seen) = unbounded_channel();
        let watchdog = Watchdog::start(Emitter::new(LaneId(3), events), Attempt(1));
        let hang = || std::thread::sleep(GRACE + Duration::from_millis(300));
        assert_eq!(watchdog.guard(Attempt(2), Step::Abort, Duration::ZERO, hang), None);
        let (lane, attempt, event) = seen.try_recv().unwrap();
        assert_eq!((lane, attempt), (LaneId(3), Attempt(2)));
        assert!(matches!(event, LaneEvent::Failed(Step::Abort, Failure::Unknown(_))));
        assert_eq!(watchdog.guard(Attempt(2), Step::Abort, Duration::ZERO, || ()), None);
        assert!(seen.try_recv().is_err());
    }
}
