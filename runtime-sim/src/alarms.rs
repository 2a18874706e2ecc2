//! Who must be woken when.

use crate::trace::Trace;
use kafka_model::Millis;
use std::collections::BTreeMap;
use std::task::Waker;

/// Names one alarm until it has rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlarmId(Millis, u64);

#[derive(Default)]
pub struct Alarms {
    set: BTreeMap<AlarmId, Waker>,
    last: u64,
}

impl Alarms {
    pub fn set(&mut self, at: Millis, waker: Waker) -> AlarmId {
        self.last += 1;
        let id = AlarmId(at, self.last);
        self.set.insert(id, waker);
        id
    }

    pub fn cancel(&mut self, id: AlarmId) {
        self.set.remove(&id);
    }

    pub fn next_at(&self) -> Option<Millis> {
        self.set.first_key_value().map(|(id, _)| id.0)
    }

    pub fn ring(&mut self, now: Millis, trace: &mut Trace) {
        while let Some(alarm) = self.set.first_entry().filter(|it| it.key().0 <= now) {
            trace.note(now, "rings", &"alarm", alarm.key());
            alarm.remove().wake();
        }
    }
}
