//! Which broker coordinates a group or a transactional id.
//!
//! Modelled: the partitions of `__consumer_offsets` and `__transaction_state` as slots that a broker holds and
//! that move, with an epoch that rises and a time of loading; what a coordinator was told before survives the
//! move, what waits for an answer does not.
//! Not modelled: those topics as logs that can be read.

use crate::{BrokerId, Cluster, ErrorCode, GroupId, Millis, Resource, TopicPartition, TransactionalId};
use kafka_types::{ProducerEpoch, ProducerId};
use std::collections::BTreeMap;

/// The topic whose partitions stand for the group coordinators in a transaction.
pub const GROUP_OFFSETS_TOPIC: &str = "__consumer_offsets";
pub const TRANSACTION_STATE_TOPIC: &str = "__transaction_state";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoordinatorKind {
    Group,
    Transaction,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub(crate) broker: Option<BrokerId>,
    /// Rises with every move; markers carry it.
    pub(crate) epoch: i32,
    loading_until: Millis,
    /// Of group slots: the epoch of each producer's last commit or marker, by which older ones are refused.
    pub(crate) producer_epochs: BTreeMap<ProducerId, ProducerEpoch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coordinators {
    groups: Vec<Slot>,
    transactions: Vec<Slot>,
}

impl Coordinators {
    pub(crate) fn new(count: i32, brokers: &[BrokerId]) -> Coordinators {
        let slots = |shift: usize| -> Vec<Slot> {
            let broker = |index: usize| brokers.get((index + shift) % brokers.len().max(1)).copied();
            (0..usize::try_from(count).unwrap_or(1).max(1))
                .map(|index| Slot {
                    broker: broker(index),
                    epoch: 0,
                    loading_until: Millis::MIN,
                    producer_epochs: BTreeMap::new(),
                })
                .collect()
        };
        Coordinators { groups: slots(0), transactions: slots(1) }
    }

    fn slots(&self, kind: CoordinatorKind) -> &[Slot] {
        match kind {
            CoordinatorKind::Group => &self.groups,
            CoordinatorKind::Transaction => &self.transactions,
        }
    }

    fn slots_mut(&mut self, kind: CoordinatorKind) -> &mut [Slot] {
        match kind {
            CoordinatorKind::Group => &mut self.groups,
            CoordinatorKind::Transaction => &mut self.transactions,
        }
    }

    pub(crate) fn index(&self, kind: CoordinatorKind, key: &str) -> usize {
        string_hash(key) % self.slots(kind).len()
    }

    pub(crate) fn slot(&self, kind: CoordinatorKind, key: &str) -> &Slot {
        &self.slots(kind)[self.index(kind, key)]
    }

    pub(crate) fn group_slot_mut(&mut self, group: &GroupId) -> &mut Slot {
        let index = self.index(CoordinatorKind::Group, group.as_str());
        &mut self.groups[index]
    }

    /// The partition of `__consumer_offsets` that holds the group.
    pub(crate) fn offsets_partition(&self, group: &GroupId) -> TopicPartition {
        let index = self.index(CoordinatorKind::Group, group.as_str());
        TopicPartition::new(GROUP_OFFSETS_TOPIC, i32::try_from(index).unwrap_or(i32::MAX))
    }

    pub(crate) fn group_slot_at(&mut self, partition: i32) -> Option<&mut Slot> {
        self.groups.get_mut(usize::try_from(partition).ok()?)
    }
}

/// Java's `String.hashCode` without its sign (Utils.abs), by which Kafka spreads keys over the slots.
fn string_hash(key: &str) -> usize {
    let hash =
        key.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    usize::try_from(hash & i32::MAX).unwrap_or(0)
}

impl Cluster {
    /// The broker to ask, as FindCoordinator answers it.
    pub fn coordinator(&self, kind: CoordinatorKind, key: &str) -> Option<BrokerId> {
        self.coordinators.slot(kind, key).broker
    }

    pub(crate) fn check_coordinator(
        &self,
        kind: CoordinatorKind,
        key: &str,
        broker: BrokerId,
    ) -> Result<(), ErrorCode> {
        let slot = self.coordinators.slot(kind, key);
        if slot.broker != Some(broker) {
            return Err(ErrorCode::NotCoordinator);
        }
        if self.now < slot.loading_until {
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        Ok(())
    }

    pub(crate) fn check_group_coordinator(&self, group: &GroupId, broker: BrokerId) -> Result<(), ErrorCode> {
        if group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        self.check_access(&Resource::Group(group.clone()))?;
        self.check_coordinator(CoordinatorKind::Group, group.as_str(), broker)
    }

    pub(crate) fn check_transaction_coordinator(
        &self,
        id: &TransactionalId,
        broker: BrokerId,
    ) -> Result<(), ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        self.check_access(&Resource::TransactionalId(id.clone()))?;
        self.check_coordinator(CoordinatorKind::Transaction, id.as_str(), broker)
    }

    /// Gives one slot to a broker, which begins to load it.
    pub(crate) fn move_slot(&mut self, kind: CoordinatorKind, index: usize, to: Option<BrokerId>) {
        let loading_until = self.now + self.config.coordinator_load_ms;
        let Some(slot) = self.coordinators.slots_mut(kind).get_mut(index) else { return };
        slot.broker = to;
        slot.epoch += 1;
        slot.loading_until = loading_until;
        if kind == CoordinatorKind::Group {
            self.reload_groups_of_slot(index);
        }
    }

    pub(crate) fn move_coordinators_away_from(&mut self, dead: BrokerId) {
        let alive = self.brokers.alive();
        for kind in [CoordinatorKind::Group, CoordinatorKind::Transaction] {
            for index in 0..self.coordinators.slots(kind).len() {
                if self.coordinators.slots(kind)[index].broker == Some(dead) {
                    let to = alive.get(index % alive.len().max(1)).copied();
                    self.move_slot(kind, index, to);
                }
            }
        }
    }

    /// Slots that nobody held while no broker was alive.
    pub(crate) fn assign_orphaned_coordinators(&mut self) {
        let alive = self.brokers.alive();
        for kind in [CoordinatorKind::Group, CoordinatorKind::Transaction] {
            for index in 0..self.coordinators.slots(kind).len() {
                if self.coordinators.slots(kind)[index].broker.is_none() {
                    let to = alive.get(index % alive.len().max(1)).copied();
                    self.move_slot(kind, index, to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_spread_over_slots_as_javas_hash_code_does() {
        for (key, hash) in [("", 0), ("a", 97), ("hello", 99_162_322), ("polygenelubricants", 0)] {
            assert_eq!(string_hash(key), hash, "{key:?}");
        }
    }
}
