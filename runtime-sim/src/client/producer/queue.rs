//! One target partition in a producer: records in order, from the call that took them to their delivery report.

use super::super::wire::Pending;
use kafka_model::{BrokerId, Millis};
use kafka_types::{ProducerEpoch, ProducerId, Record, RecordBatch};
use std::collections::VecDeque;

/// Whose records they are, for the delivery report.
pub(in crate::client) type Tag = u64;

/// Whether the coordinator knows that the transaction writes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registration {
    Not,
    Asked,
    Done,
}

pub(super) struct Message {
    pub(super) tag: Tag,
    pub(super) record: Record,
    pub(super) deadline: Millis,
}

/// A batch with its sequence numbers. A retry sends the very same again.
#[derive(Clone)]
pub(super) struct Batch {
    pub(super) tags: Vec<Tag>,
    pub(super) batch: RecordBatch,
    pub(super) deadline: Millis,
    /// It was sent at least once, so it may be stored.
    pub(super) was_sent: bool,
}

pub(super) struct InFlight {
    pub(super) pending: Pending,
    pub(super) broker: BrokerId,
    pub(super) batch: Batch,
}

pub(super) struct Queue {
    pub(super) registration: Registration,
    pub(super) waiting: VecDeque<Message>,
    /// Sent and not answered, in the order of their sequence numbers.
    pub(super) in_flight: VecDeque<InFlight>,
    /// To be sent again, in order, before anything new.
    pub(super) retries: VecDeque<Batch>,
    /// Nothing is sent until all that is in flight has come to an end.
    pub(super) is_draining: bool,
    pub(super) next_sequence: i32,
    /// The first sequence number that is not acknowledged.
    pub(super) next_acknowledged: i32,
    pub(super) may_send_at: Millis,
    pub(super) leader: Option<BrokerId>,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            registration: Registration::Not,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            retries: VecDeque::new(),
            is_draining: false,
            next_sequence: 0,
            next_acknowledged: 0,
            may_send_at: 0,
            leader: None,
        }
    }

    pub(super) fn has_to_send(&self) -> bool {
        !self.waiting.is_empty() || !self.retries.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_to_send() && self.in_flight.is_empty()
    }

    /// Numbers begin anew with a new epoch.
    pub(super) fn reset_sequence(&mut self) {
        self.next_sequence = 0;
        self.next_acknowledged = 0;
    }

    /// The next batch to send: one that was sent before, or new records.
    pub(super) fn next_batch(
        &mut self,
        records_max: usize,
        (id, epoch): (ProducerId, ProducerEpoch),
    ) -> Option<Batch> {
        if let Some(batch) = self.retries.pop_front() {
            return Some(batch);
        }
        if self.waiting.is_empty() {
            return None;
        }
        let count = self.waiting.len().min(records_max.max(1));
        let (mut tags, mut records) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut deadline = Millis::MAX;
        for message in self.waiting.drain(..count) {
            deadline = deadline.min(message.deadline);
            tags.push(message.tag);
            records.push(message.record);
        }
        let batch = RecordBatch::new(records).from_producer(id, epoch, self.next_sequence).transactional();
        self.next_sequence = next_after(batch.last_sequence());
        Some(Batch { tags, batch, deadline, was_sent: false })
    }

    /// Puts a batch back among those to be sent again, at its place.
    pub(super) fn retry(&mut self, batch: Batch) {
        let sequence = batch.batch.base_sequence;
        let at = self.retries.partition_point(|it| it.batch.base_sequence < sequence);
        self.retries.insert(at, batch);
    }
}

pub(super) fn next_after(sequence: i32) -> i32 {
    sequence.checked_add(1).unwrap_or(0)
}
