//! Batches on their way to the leaders, and what becomes of them.

use super::super::error::{Code, LibraryError};
use super::super::io::Io;
use super::super::marks::Mark;
use super::super::wire::{Answer, Lost};
use super::queue::{Batch, InFlight, Registration, next_after};
use super::{Delivery, Producer, State};
use crate::moments::Moment;
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{BrokerId, Millis, Response};
use kafka_types::{ErrorCode, TopicPartition};

/// `max.in.flight.requests.per.connection`
const IN_FLIGHT_MAX: usize = 5;
/// `retry.backoff.ms`
const RETRY_MS: Millis = 100;
/// `request.timeout.ms`: how long the leader waits for its followers.
const REQUEST_TIMEOUT_MS: Millis = 30_000;

/// What is done about a batch that was not acknowledged.
enum Then {
    /// Send it again, when nothing else of the partition is in flight; ask for the leader first.
    RetryElsewhere,
    Retry,
    /// The numbers no longer fit, or mean nothing to the broker: an earlier batch failed, or it has forgotten the producer.
    OutOfStep(ErrorCode),
    /// The producer was fenced, or its numbers mean nothing to the broker any more.
    GiveUp(LibraryError),
    /// The records fail, and the transaction with them.
    Fail(ErrorCode),
    /// The broker had it already.
    Duplicate,
}

impl Producer {
    pub(super) fn send(&mut self, io: &mut Io) {
        if self.state != State::InTransaction && self.state != State::Failed {
            return;
        }
        let Some(identity) = self.identity.assigned.filter(|_| !self.identity.wants_epoch) else { return };
        let (records_max, mut sent) = (io.faults.batch_records_max as usize, false);
        for (partition, queue) in &mut self.queues {
            if !queue.has_to_send() || queue.registration != Registration::Done {
                continue;
            }
            if queue.is_draining {
                if !queue.in_flight.is_empty() {
                    continue;
                }
                queue.is_draining = false;
            }
            if !io.is_due(queue.may_send_at) {
                continue;
            }
            let Some(broker) = self.library.metadata.leader(partition).and_then(|leader| leader.broker)
            else {
                self.library.metadata.doubt(&partition.topic);
                continue;
            };
            // What is in flight to the old leader comes to its end first, or order would be lost.
            if queue.in_flight.front().is_some_and(|it| it.broker != broker) {
                continue;
            }
            if io.mutants.sequence_resets_on_leader_change && queue.leader.is_some_and(|old| old != broker) {
                queue.reset_sequence();
            }
            queue.leader = Some(broker);
            let in_flight = self.in_flight.entry(broker).or_default();
            while *in_flight < IN_FLIGHT_MAX {
                let Some(mut batch) = queue.next_batch(records_max, identity) else { break };
                batch.was_sent = true;
                let request = ProduceRequest {
                    transactional_id: Some(self.transactional_id.clone()),
                    acks: ACKS_ALL,
                    timeout_ms: REQUEST_TIMEOUT_MS,
                    partitions: vec![ProducePartition {
                        topic_partition: partition.clone(),
                        topic_id: None,
                        batch: batch.batch.clone(),
                    }],
                };
                let pending = self.library.send(io, broker, request);
                queue.in_flight.push_back(InFlight { pending, broker, batch });
                *in_flight += 1;
                sent = true;
            }
        }
        if sent {
            io.wire.mark(Mark::Moment(Moment::ProduceSent));
        }
    }

    pub(super) fn take_produced(&mut self, io: &mut Io) {
        if !io.wire.has_answers() {
            return;
        }
        let in_flight = |queue: &super::Queue| !queue.in_flight.is_empty();
        let partitions: Vec<TopicPartition> =
            self.queues.iter().filter(|(_, queue)| in_flight(queue)).map(|it| it.0.clone()).collect();
        for partition in partitions {
            while let Some(queue) = self.queues.get_mut(&partition)
                && let Some(first) = queue.in_flight.front()
                && let Some(answer) = io.wire.take(first.pending)
                && let Some(InFlight { broker, batch, .. }) = queue.in_flight.pop_front()
            {
                self.landed(broker);
                self.produced(io, &partition, batch, answer);
                io.look_again = true;
            }
        }
    }

    fn landed(&mut self, broker: BrokerId) {
        if let Some(count) = self.in_flight.get_mut(&broker) {
            *count = count.saturating_sub(1);
        }
    }

    fn produced(&mut self, io: &mut Io, partition: &TopicPartition, batch: Batch, answer: Answer) {
        let outcome = match answer {
            Ok(Response::Produce(response)) => match response.partitions.into_iter().next() {
                Some(told) if told.error_code == ErrorCode::None => {
                    self.stored(partition, batch, told.base_offset);
                    return;
                }
                Some(told) => Ok(told.error_code),
                None => Err(Lost::Disconnected),
            },
            Ok(_) => Err(Lost::Disconnected),
            Err(lost) => Err(lost),
        };
        let next_acknowledged = self.queues.get(partition).map_or(0, |queue| queue.next_acknowledged);
        let then = match outcome {
            Ok(error) => Self::verdict(error, batch.batch.base_sequence, next_acknowledged),
            Err(Lost::TimedOut) if io.mutants.timed_out_is_not_written => {
                self.queue_anew(partition, batch, io.now);
                return;
            }
            Err(Lost::Disconnected) => Then::RetryElsewhere,
            Err(Lost::TimedOut | Lost::NeverSent) => Then::Retry,
        };
        match then {
            Then::RetryElsewhere => {
                self.library.metadata.doubt(&partition.topic);
                self.retry(io, partition, batch);
            }
            Then::Retry => self.retry(io, partition, batch),
            Then::OutOfStep(error) => {
                self.fail_transaction(LibraryError::broker(error), true);
                self.retry(io, partition, batch);
            }
            Then::GiveUp(error) => {
                batch.tags.iter().for_each(|tag| self.fail_record(*tag, error.code));
                self.fail_for_good(io, error);
            }
            Then::Fail(error) => {
                batch.tags.iter().for_each(|tag| self.fail_record(*tag, Code::Broker(error)));
                self.fail_transaction(LibraryError::broker(error), false);
            }
            Then::Duplicate => self.stored(partition, batch, -1),
        }
    }

    fn verdict(error: ErrorCode, sequence: i32, next_acknowledged: i32) -> Then {
        match error {
            ErrorCode::NotLeaderOrFollower
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::BrokerNotAvailable
            | ErrorCode::ReplicaNotAvailable
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::KafkaStorageError => Then::RetryElsewhere,
            ErrorCode::NotEnoughReplicas
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::RequestTimedOut
            | ErrorCode::CorruptMessage => Then::Retry,
            ErrorCode::OutOfOrderSequenceNumber if next_acknowledged < sequence => Then::OutOfStep(error),
            ErrorCode::UnknownProducerId => Then::OutOfStep(error),
            ErrorCode::OutOfOrderSequenceNumber => Then::GiveUp(LibraryError::broker(error)),
            ErrorCode::DuplicateSequenceNumber => Then::Duplicate,
            ErrorCode::InvalidProducerEpoch | ErrorCode::ProducerFenced => {
                Then::GiveUp(LibraryError::new(Code::Fenced))
            }
            other => Then::Fail(other),
        }
    }

    fn stored(&mut self, partition: &TopicPartition, batch: Batch, base_offset: i64) {
        if let Some(queue) = self.queues.get_mut(partition) {
            queue.next_acknowledged = next_after(batch.batch.last_sequence());
        }
        for (delta, tag) in (0..).zip(batch.tags) {
            let offset = if base_offset < 0 { -1 } else { base_offset + delta };
            self.deliveries.push_back(Delivery { tag, outcome: Ok(offset) });
        }
    }

    fn retry(&mut self, io: &mut Io, partition: &TopicPartition, batch: Batch) {
        if self.is_aborting() {
            // Nothing is sent again into a transaction that is being aborted.
            self.needs_epoch = true;
            batch.tags.iter().for_each(|tag| self.fail_record(*tag, Code::PurgedInFlight));
            return;
        }
        let Some(queue) = self.queues.get_mut(partition) else { return };
        queue.retry(batch);
        queue.is_draining = true;
        queue.may_send_at = io.now + RETRY_MS;
    }

    /// For a mutant: the records go out as if they had never been sent.
    fn queue_anew(&mut self, partition: &TopicPartition, batch: Batch, now: Millis) {
        let deadline = now + self.transaction_timeout_ms;
        let Some(queue) = self.queues.get_mut(partition) else { return };
        for (tag, record) in batch.tags.into_iter().zip(batch.batch.records.iter().cloned()).rev() {
            queue.waiting.push_front(super::Message { tag, record, deadline });
        }
    }

    /// Records that were not delivered within their time fail, and the transaction with them.
    pub(super) fn time_out(&mut self, io: &mut Io) {
        if self.state != State::InTransaction {
            return;
        }
        let mut failed = Vec::new();
        for queue in self.queues.values_mut() {
            while queue.retries.front().is_some_and(|batch| io.is_due(batch.deadline)) {
                failed.extend(queue.retries.pop_front().into_iter().flat_map(|batch| batch.tags));
            }
            while queue.waiting.front().is_some_and(|message| io.is_due(message.deadline)) {
                failed.extend(queue.waiting.pop_front().map(|message| message.tag));
            }
        }
        if failed.is_empty() {
            return;
        }
        failed.into_iter().for_each(|tag| self.fail_record(tag, Code::MessageTimedOut));
        self.fail_transaction(LibraryError::new(Code::MessageTimedOut), true);
        io.look_again = true;
    }
}
