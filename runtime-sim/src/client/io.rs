use super::faults::{ClientFaults, ClientMutants};
use super::wire::Wire;
use crate::random::Random;
use kafka_model::Millis;

/// What every part of the library is given when it is looked at.
pub(super) struct Io<'a> {
    pub(super) now: Millis,
    /// The machine's wall clock.
    pub(super) wall: Millis,
    pub(super) wire: &'a mut Wire,
    pub(super) random: &'a mut Random,
    pub(super) faults: &'a ClientFaults,
    pub(super) mutants: &'a ClientMutants,
    /// When the process must look again even if nothing arrives.
    pub(super) wake: Option<Millis>,
    /// Something was done that others of the process may be waiting for: look again before waiting.
    pub(super) look_again: bool,
}

impl Io<'_> {
    /// Before a part is looked at.
    pub(super) fn begin_look(&mut self) {
        self.look_again = false;
        self.wake = None;
    }

    /// Whether the look has changed nothing that another look could go on from.
    pub(super) fn is_quiet(&mut self) -> bool {
        let anything_taken = self.wire.anything_taken();
        !anything_taken && !self.look_again
    }

    pub(super) fn wake_at(&mut self, at: Millis) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Whether `at` has come; if not, the process looks again then.
    pub(super) fn is_due(&mut self, at: Millis) -> bool {
        if at <= self.now {
            return true;
        }
        self.wake_at(at);
        false
    }
}
