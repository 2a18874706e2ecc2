//! Markers go to the leaders of the partitions after the decision, and the transaction is complete when all of
//! them are replicated. A leader that is away makes them wait, and a new one without the marker gets it again.

use super::{MarkerProgress, TransactionState};
use crate::coordinators::{CoordinatorKind, GROUP_OFFSETS_TOPIC};
use crate::timer::Timer;
use crate::{Cluster, Millis, TransactionalId};
use kafka_types::{
    EndMarker, ErrorCode, ProducerEpoch, ProducerId, RecordBatch, TopicPartition, TransactionResult,
};

/// How long until a marker that could not be written is tried again.
const RETRY_MS: Millis = 100;

enum Written {
    /// In the leader's log and to be replicated.
    Appended,
    /// Nothing is left to do: no log, or one that has moved on.
    Done,
    NotYet,
}

impl Cluster {
    pub(crate) fn write_due_markers(&mut self, id: &TransactionalId) {
        let now = self.now;
        let Some(transaction) = self.transactions.by_id.get(id) else { return };
        let TransactionState::Prepare(result) = transaction.state else { return };
        let (producer_id, epoch) = (transaction.producer_id, transaction.epoch);
        let is_due = |progress: &MarkerProgress| matches!(progress, MarkerProgress::Due(at) if *at <= now);
        let due: Vec<TopicPartition> = transaction
            .markers
            .iter()
            .filter(|(_, progress)| is_due(progress))
            .map(|(tp, _)| tp.clone())
            .collect();
        // A coordinator that nobody holds, or that is dead, writes nothing.
        let slot = self.coordinators.slot(CoordinatorKind::Transaction, id.as_str());
        let is_served = slot.broker.is_some_and(|broker| self.brokers.is_alive(broker));
        let marker = EndMarker { result, coordinator_epoch: slot.epoch };
        for tp in due {
            let written = match is_served {
                true => self.write_marker(id, &tp, producer_id, epoch, marker),
                false => Written::NotYet,
            };
            let Some(transaction) = self.transactions.by_id.get_mut(id) else { return };
            match written {
                Written::Appended => {}
                Written::Done => {
                    transaction.markers.remove(&tp);
                }
                Written::NotYet => {
                    transaction.markers.insert(tp, MarkerProgress::Due(now + RETRY_MS));
                }
            }
        }
        self.complete_if_written(id);
    }

    fn write_marker(
        &mut self,
        id: &TransactionalId,
        tp: &TopicPartition,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        marker: EndMarker,
    ) -> Written {
        if tp.topic.as_str() == GROUP_OFFSETS_TOPIC {
            let slot = self.coordinators.group_slot_at(tp.partition.0);
            if !slot.and_then(|slot| slot.broker).is_some_and(|broker| self.brokers.is_alive(broker)) {
                return Written::NotYet;
            }
            self.end_offset_transaction(tp.partition.0, producer_id, epoch, marker.result);
            self.note_marker(id, tp);
            return Written::Done;
        }
        let now = self.now;
        let Some((config, partition)) = self.topics.config_and_partition_mut(tp) else {
            return Written::Done;
        };
        let Some(leader) = partition.leader.filter(|leader| self.brokers.is_alive(*leader)) else {
            return Written::NotYet;
        };
        if self.brokers.is_disk_full(leader) {
            return Written::NotYet;
        }
        let batch = RecordBatch::end_marker(producer_id, epoch, marker, now);
        match partition.log.producers.check_marker(&batch) {
            Ok(()) => {}
            // The coordinator or the producer has moved on: this marker has nothing left to end.
            Err(ErrorCode::InvalidProducerEpoch | ErrorCode::TransactionCoordinatorFenced) => {
                return Written::Done;
            }
            Err(_) => return Written::NotYet,
        }
        let offset = partition.log.append(batch, partition.leader_epoch, config).base_offset;
        partition.waiting_markers.insert(id.clone(), offset);
        if let Some(transaction) = self.transactions.by_id.get_mut(id) {
            transaction.markers.insert(tp.clone(), MarkerProgress::Written(offset));
        }
        self.note_marker(id, tp);
        self.batch_appended(tp);
        Written::Appended
    }

    fn note_marker(&mut self, id: &TransactionalId, tp: &TopicPartition) {
        let now = self.now;
        let Some(transaction) = self.transactions.by_id.get(id) else { return };
        let decision = self.transactions.decisions.get_mut(transaction.decision);
        if let Some(written) = decision.and_then(|decision| decision.markers.get_mut(tp)) {
            *written = Some(now);
        }
    }

    /// The partition's high watermark may have passed markers.
    pub(crate) fn markers_replicated(&mut self, tp: &TopicPartition) {
        let Some(partition) = self.topics.partition_mut(tp) else { return };
        let high_watermark = partition.high_watermark;
        let replicated: Vec<TransactionalId> = partition
            .waiting_markers
            .extract_if(.., |_, offset| *offset < high_watermark)
            .map(|(id, _)| id)
            .collect();
        for id in replicated {
            if let Some(transaction) = self.transactions.by_id.get_mut(&id)
                && matches!(transaction.markers.get(tp), Some(MarkerProgress::Written(_)))
            {
                transaction.markers.remove(tp);
            }
            self.complete_if_written(&id);
        }
    }

    /// A new leader may lack what the old one had: the markers are sent again.
    pub(crate) fn markers_lost_their_leader(&mut self, tp: &TopicPartition) {
        let now = self.now;
        let Some(partition) = self.topics.partition_mut(tp) else { return };
        for (id, offset) in std::mem::take(&mut partition.waiting_markers) {
            let Some(transaction) = self.transactions.by_id.get_mut(&id) else { continue };
            let Some(progress) = transaction.markers.get_mut(tp) else { continue };
            if partition.log.has_marker_at(offset, transaction.producer_id) {
                partition.waiting_markers.insert(id, offset);
            } else {
                *progress = MarkerProgress::Due(now);
                self.timers.set_no_later(Timer::Markers(id), now);
            }
        }
    }

    /// The topic was deleted: nothing replicates its markers any more, and nothing is left to write.
    pub(crate) fn markers_lost_their_log(&mut self, tp: &TopicPartition, ids: Vec<TransactionalId>) {
        let now = self.now;
        for id in ids {
            let Some(transaction) = self.transactions.by_id.get_mut(&id) else { continue };
            if let Some(progress) = transaction.markers.get_mut(tp) {
                *progress = MarkerProgress::Due(now);
                self.timers.set_no_later(Timer::Markers(id), now);
            }
        }
    }

    fn complete_if_written(&mut self, id: &TransactionalId) {
        let now = self.now;
        let Some(transaction) = self.transactions.by_id.get_mut(id) else { return };
        let TransactionState::Prepare(result) = transaction.state else { return };
        if transaction.markers.is_empty() {
            transaction.state = TransactionState::Complete(result);
            transaction.partitions.clear();
            transaction.updated_at = now;
            if let Some(decision) = self.transactions.decisions.get_mut(transaction.decision) {
                decision.completed_at = Some(now);
            }
            return;
        }
        let due = |progress: &MarkerProgress| match progress {
            MarkerProgress::Due(at) => Some(*at),
            MarkerProgress::Written(_) => None,
        };
        if let Some(next) = transaction.markers.values().filter_map(due).min() {
            self.timers.set(Timer::Markers(id.clone()), next);
        }
    }

    /// What has been decided for a producer's records in a partition that hold no marker yet.
    pub(crate) fn decided_without_marker(
        &self,
        tp: &TopicPartition,
        producer_id: ProducerId,
    ) -> Option<TransactionResult> {
        let of_producer = |it: &&super::Transaction| it.producer_id == producer_id;
        let transaction = self.transactions.by_id.values().find(of_producer)?;
        match transaction.state {
            TransactionState::Prepare(result) if transaction.markers.contains_key(tp) => Some(result),
            TransactionState::Prepare(_)
            | TransactionState::Empty
            | TransactionState::Ongoing
            | TransactionState::Complete(_) => None,
        }
    }
}
