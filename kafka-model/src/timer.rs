use crate::{BrokerId, GroupId, MemberId, Millis, RequestToken, TransactionalId};
use kafka_types::TopicPartition;
use std::collections::{BTreeMap, BTreeSet};

/// What is due at a moment. Each is set at most once at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Others take over what a crashed broker led.
    Failover(BrokerId),
    /// Followers fetch what they lack.
    Replication(TopicPartition),
    /// Followers that lag leave the in-sync replicas.
    ReplicaLag(TopicPartition),
    Markers(TransactionalId),
    TransactionTimeOuts,
    TransactionalIdExpiry,
    ProducerExpiry,
    GroupMember(GroupId, MemberId),
    GroupJoin(GroupId),
    GroupSync(GroupId),
    OffsetsExpiry,
    Retention,
    Cleaner,
    /// A waiting request is answered with what there is.
    Request(RequestToken),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Timers {
    due: BTreeSet<(Millis, Timer)>,
    times: BTreeMap<Timer, Millis>,
}

impl Timers {
    /// Sets the timer, whether or not it was set before.
    pub(crate) fn set(&mut self, timer: Timer, at: Millis) {
        if let Some(before) = self.times.insert(timer.clone(), at) {
            if before == at {
                return;
            }
            let mut entry = (before, timer);
            self.due.remove(&entry);
            entry.0 = at;
            self.due.insert(entry);
        } else {
            self.due.insert((at, timer));
        }
    }

    /// Sets the timer unless it is due earlier already.
    pub(crate) fn set_no_later(&mut self, timer: Timer, at: Millis) {
        if self.times.get(&timer).is_none_or(|before| at < *before) {
            self.set(timer, at);
        }
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        if let Some(at) = self.times.remove(&timer) {
            self.due.remove(&(at, timer));
        }
    }

    pub(crate) fn is_set(&self, timer: &Timer) -> bool {
        self.times.contains_key(timer)
    }

    pub(crate) fn next(&self) -> Option<Millis> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<(Millis, Timer)> {
        if now < self.next()? {
            return None;
        }
        let (at, timer) = self.due.pop_first()?;
        self.times.remove(&timer);
        Some((at, timer))
    }
}
