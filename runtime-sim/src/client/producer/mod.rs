//! A transactional producer, as librdkafka's: records go out in idempotent batches, several in flight to a broker;
//! partitions are registered with the coordinator before anything is sent to them; EndTxn is sent again by the
//! library itself until it is answered.
//!
//! Sources followed: rdkafka_txnmgr.c, rdkafka_idempotence.c and rdkafka_request.c of librdkafka 2.12.1.

mod ending;
mod identity;
mod queue;
mod registering;
mod sending;

pub(super) use queue::Tag;

use super::error::{Code, LibraryError};
use super::io::Io;
use super::library::Library;
use super::marks::Mark;
use ending::Ending;
use identity::Identity;
use kafka_model::{BrokerId, Millis, TransactionalId};
use kafka_types::{Record, TopicPartition};
use queue::{Message, Queue};
use registering::Registering;
use std::collections::{BTreeMap, VecDeque};

/// The end of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) tag: Tag,
    /// Its offset, negative where the broker recognised a repeat.
    pub(super) outcome: Result<i64, LibraryError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Initialising,
    Ready,
    InTransaction,
    /// The transaction failed and must be aborted.
    Failed,
    Fatal,
}

pub(super) struct Producer {
    pub(super) library: Library,
    transactional_id: TransactionalId,
    transaction_timeout_ms: Millis,
    state: State,
    identity: Identity,
    queues: BTreeMap<TopicPartition, Queue>,
    in_flight: BTreeMap<BrokerId, usize>,
    registering: Registering,
    ending: Option<Ending>,
    /// The error that made the state what it is.
    error: Option<LibraryError>,
    /// Sequence numbers have gaps: an abort must take a new epoch.
    needs_epoch: bool,
    undelivered: u64,
    deliveries: VecDeque<Delivery>,
    end_txns_sent: u64,
    end_txns_answered: u64,
}

impl Producer {
    pub(super) fn new(library: Library, transactional_id: &str, transaction_timeout_ms: Millis) -> Producer {
        Producer {
            library,
            transactional_id: transactional_id.into(),
            transaction_timeout_ms,
            state: State::Initialising,
            identity: Identity::default(),
            queues: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            registering: Registering::default(),
            ending: None,
            error: None,
            needs_epoch: false,
            undelivered: 0,
            deliveries: VecDeque::new(),
            end_txns_sent: 0,
            end_txns_answered: 0,
        }
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.library.close(io);
    }

    /// `init_transactions`: its outcome, once it has one.
    pub(super) fn initialised(&self) -> Option<Result<(), LibraryError>> {
        match (self.state, &self.error) {
            (State::Initialising, _) => None,
            (State::Fatal, Some(error)) => Some(Err(error.clone())),
            _ => Some(Ok(())),
        }
    }

    pub(super) fn fatal_error(&self) -> Option<&LibraryError> {
        self.error.as_ref().filter(|error| error.is_fatal)
    }

    /// Why the open transaction can only be aborted, if that is so.
    pub(super) fn abort_cause(&self) -> Option<&LibraryError> {
        self.error.as_ref().filter(|_| self.state == State::Failed)
    }

    /// Requests to end a transaction, sent and answered, since the producer was made.
    pub(super) fn end_txns(&self) -> (u64, u64) {
        (self.end_txns_sent, self.end_txns_answered)
    }

    pub(super) fn begin(&mut self) -> Result<(), LibraryError> {
        match self.state {
            State::Ready => {
                self.state = State::InTransaction;
                self.error = None;
                self.undelivered = 0;
                Ok(())
            }
            State::Initialising | State::InTransaction | State::Failed => Err(LibraryError::new(Code::State)),
            State::Fatal => Err(self.error.clone().unwrap_or_else(|| LibraryError::new(Code::State).fatal())),
        }
    }

    /// Takes one record; an error says that it was not taken.
    pub(super) fn produce(
        &mut self,
        now: Millis,
        partition: &TopicPartition,
        record: Record,
        tag: Tag,
    ) -> Result<(), LibraryError> {
        if self.state != State::InTransaction || self.ending.is_some() {
            return Err(LibraryError::new(Code::State));
        }
        let known = self.library.metadata.partitions(&partition.topic);
        if 0 < known && known <= partition.partition.index() {
            return Err(LibraryError::new(Code::UnknownPartition));
        }
        self.library.metadata.want(&partition.topic);
        let queue = self.queues.entry(partition.clone()).or_insert_with(Queue::new);
        // `message.timeout.ms` follows the transaction's time-out.
        let deadline = now + self.transaction_timeout_ms;
        queue.waiting.push_back(Message { tag, record, deadline });
        Ok(())
    }

    pub(super) fn take_deliveries(&mut self) -> VecDeque<Delivery> {
        std::mem::take(&mut self.deliveries)
    }

    pub(super) fn has_deliveries(&self) -> bool {
        !self.deliveries.is_empty()
    }

    pub(super) fn advance(&mut self, io: &mut Io) {
        self.library.advance(io);
        if let Some(denied) = self.library.coordinator_denied() {
            self.fail_for_good(io, LibraryError::broker(denied));
        }
        self.advance_identity(io);
        self.take_registered(io);
        self.take_produced(io);
        self.time_out(io);
        self.register(io);
        self.send(io);
        self.advance_ending(io);
    }

    fn fail_record(&mut self, tag: Tag, code: Code) {
        self.undelivered += 1;
        self.deliveries.push_back(Delivery { tag, outcome: Err(LibraryError::new(code)) });
    }

    /// The transaction cannot be committed any more.
    fn fail_transaction(&mut self, error: LibraryError, needs_epoch: bool) {
        self.needs_epoch |= needs_epoch;
        if self.state == State::InTransaction {
            self.state = State::Failed;
            self.error = Some(error.requiring_abort());
        }
    }

    /// The producer is of no use any more; what it still holds is purged.
    fn fail_for_good(&mut self, io: &mut Io, error: LibraryError) {
        if self.state == State::Fatal {
            return;
        }
        if error.code == Code::Fenced {
            io.wire.mark(Mark::Fenced);
        }
        self.state = State::Fatal;
        self.error = Some(error.fatal());
        self.purge_queued(Code::PurgedFromQueue);
        for queue in self.queues.values_mut() {
            for in_flight in queue.in_flight.drain(..) {
                io.wire.forget(in_flight.pending);
                for tag in in_flight.batch.tags {
                    let outcome = Err(LibraryError::new(Code::PurgedInFlight));
                    self.deliveries.push_back(Delivery { tag, outcome });
                }
            }
        }
        self.in_flight.clear();
        io.look_again = true;
    }

    /// Whatever is not in flight fails.
    fn purge_queued(&mut self, code: Code) {
        let mut purged = Vec::new();
        for queue in self.queues.values_mut() {
            purged.extend(queue.retries.drain(..).flat_map(|batch| batch.tags));
            purged.extend(queue.waiting.drain(..).map(|message| message.tag));
        }
        self.needs_epoch |= !purged.is_empty();
        purged.into_iter().for_each(|tag| self.fail_record(tag, code));
    }

    fn has_outstanding(&self) -> bool {
        self.queues.values().any(|queue| !queue.is_empty())
    }
}
