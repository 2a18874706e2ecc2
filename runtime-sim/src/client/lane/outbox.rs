//! The thread of a lane's transactional producer, as a state machine: commands in order, one at a time.

use super::failure::{self, Call};
use super::flight::Flight;
use super::know::Known;
use super::settle::Settling;
use super::store::Held;
use super::transaction::Transaction;
use super::{LaneOut, LanePlace};
use crate::client::error::{Code, LibraryError};
use crate::client::fetcher::ReadRecord;
use crate::client::io::Io;
use crate::client::library::Library;
use crate::client::marks::Mark;
use crate::client::producer::{Delivery, Producer, Tag};
use crate::random::Rate;
use bytes::Bytes;
use kafka_model::{CoordinatorKind, Millis};
use kafka_types::{OffsetAndEpoch, Record, TargetPartition, TopicName, TopicPartition};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use verbatim_core::Attempt;
use verbatim_core::batch::BatchId;
use verbatim_core::command::{NewLedgerRecord, PrepareFrom};
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::{Failure, Refusal};

pub(super) enum OutboxCommand {
    /// The records come with the command: once it is given, nothing may take them away.
    Produce {
        batch: BatchId,
        held: Option<Held>,
        target: TargetPartition,
        alone: bool,
    },
    Settle(Vec<NewLedgerRecord>),
    Abort,
    Prepare(BTreeMap<TargetPartition, PrepareFrom>),
}

/// The tag of ledger records; batches have their own ids, which begin at 1.
pub(super) const LEDGER: Tag = 0;

/// `socket.timeout.ms` of the producer: longer than a commit may take (H1).
const SOCKET_TIMEOUT_MS: Millis = 30_000;
pub(super) const TRANSACTION_TIMEOUT_MS: Millis = 60_000;
/// How long committing or aborting may take.
pub(super) const END_MAX_MS: Millis = 15_000;
const INIT_MAX_MS: Millis = 30_000;
/// How often the real World looks whether the transaction of what is in flight can only be aborted.
const LOOKS_EVERY_MS: Millis = 1_000;

/// What the thread is at.
pub(super) enum Work {
    Opening {
        attempt: Attempt,
        until: Millis,
    },
    Idle,
    /// A batch that goes when all before it has landed, and is awaited.
    Alone {
        batch: BatchId,
        target: TopicPartition,
        records: Vec<ReadRecord>,
        /// Its only record.
        single: Option<OffsetAndEpoch>,
    },
    Knowing {
        attempt: Attempt,
        targets: BTreeMap<TargetPartition, PrepareFrom>,
        seen: BTreeMap<TopicName, u64>,
        until: Millis,
    },
    Settling {
        attempt: Attempt,
        settling: Settling,
    },
    Aborting {
        attempt: Attempt,
        end_txn_sent_before: u64,
    },
    /// It came to an end that leaves nothing to work with.
    Ended,
}

pub(super) struct Outbox {
    pub(super) producer: Producer,
    pub(super) place: LanePlace,
    commands: VecDeque<(Attempt, OutboxCommand)>,
    pub(super) work: Work,
    pub(super) flights: BTreeMap<BatchId, Flight>,
    pub(super) ledger: Option<Flight>,
    pub(super) transaction: Option<Transaction>,
    /// Since when the open transaction can only be aborted.
    doomed_since: Option<Millis>,
    /// Until then the thread is at something that takes long.
    may_work_at: Millis,
}

impl Outbox {
    pub(super) fn open(io: &mut Io, place: &LanePlace, attempt: Attempt) -> Outbox {
        let id = &place.transactional_id;
        let library = Library::new(io, &place.target, SOCKET_TIMEOUT_MS);
        let library = library.coordinated(CoordinatorKind::Transaction, id);
        Outbox {
            producer: Producer::new(library, id, TRANSACTION_TIMEOUT_MS),
            place: place.clone(),
            commands: VecDeque::new(),
            work: Work::Opening { attempt, until: io.now + INIT_MAX_MS },
            flights: BTreeMap::new(),
            ledger: None,
            transaction: None,
            doomed_since: None,
            may_work_at: 0,
        }
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.producer.close(io);
    }

    pub(super) fn submit(&mut self, attempt: Attempt, command: OutboxCommand) {
        self.commands.push_back((attempt, command));
    }

    pub(super) fn advance(&mut self, io: &mut Io, out: &mut LaneOut) -> Option<Known> {
        self.producer.advance(io);
        loop {
            self.count_deliveries();
            let (known, goes_on) = self.step(io, out);
            if known.is_some() {
                return known;
            }
            if !goes_on {
                break;
            }
            // What was just handed to the producer goes out now.
            self.producer.advance(io);
        }
        self.land(out);
        self.give_up_the_doomed(io, out);
        None
    }

    /// One step of the present work; whether there is another to be taken at once.
    fn step(&mut self, io: &mut Io, out: &mut LaneOut) -> (Option<Known>, bool) {
        if matches!(self.work, Work::Idle) && self.commands.is_empty() {
            return (None, false);
        }
        match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Ended => {
                self.work = Work::Ended;
                (None, false)
            }
            Work::Idle if !self.may_begin(io) => (None, false),
            Work::Idle => match self.commands.pop_front() {
                None => (None, false),
                Some((attempt, command)) => {
                    // Landed batches are told of before the next command is begun.
                    self.land(out);
                    self.obey(io, out, attempt, command);
                    (None, true)
                }
            },
            Work::Opening { attempt, until } => (None, self.opening(io, out, attempt, until)),
            Work::Alone { batch, target, records, single } => {
                (None, self.alone(io, batch, target, records, single))
            }
            Work::Knowing { attempt, targets, seen, until } => {
                let known = self.knowing(io, attempt, targets, seen, until);
                let goes_on = known.is_some();
                (known, goes_on)
            }
            Work::Settling { attempt, settling } => (None, self.settling(io, out, attempt, settling)),
            Work::Aborting { attempt, end_txn_sent_before } => {
                (None, self.aborting(out, attempt, end_txn_sent_before))
            }
        }
    }

    /// Whether the thread comes to its next command now: one before can have taken long.
    fn may_begin(&mut self, io: &mut Io) -> bool {
        if io.is_due(self.may_work_at) && io.random.happens(io.faults.slow_step) {
            io.wire.mark(Mark::SlowStep);
            self.may_work_at = io.now + io.random.between(1, io.faults.slow_step_max_ms);
        }
        io.is_due(self.may_work_at)
    }

    fn opening(&mut self, io: &mut Io, out: &mut LaneOut, attempt: Attempt, until: Millis) -> bool {
        match self.producer.initialised() {
            Some(Ok(())) => {
                out.emit(attempt, LaneEvent::Opened);
                true
            }
            Some(Err(error)) => self.not_opened(out, attempt, &error),
            None if io.is_due(until) => {
                self.not_opened(out, attempt, &LibraryError::new(crate::client::error::Code::TimedOut))
            }
            None => {
                self.work = Work::Opening { attempt, until };
                false
            }
        }
    }

    fn not_opened(&mut self, out: &mut LaneOut, attempt: Attempt, error: &LibraryError) -> bool {
        let fatal = error.is_fatal.then_some(error);
        let failure = failure::of_call(Call::Init, error, fatal, &self.place.transactional_id);
        out.failed(attempt, Step::Open, failure);
        self.work = Work::Ended;
        false
    }

    fn obey(&mut self, io: &mut Io, out: &mut LaneOut, attempt: Attempt, command: OutboxCommand) {
        match command {
            OutboxCommand::Produce { batch, held, target, alone } => {
                self.produce(io, out, attempt, batch, held, &target, alone);
            }
            OutboxCommand::Settle(records) => self.settle(io, out, attempt, records),
            OutboxCommand::Abort => self.abort(io, out, attempt),
            OutboxCommand::Prepare(targets) => self.prepare(io, attempt, targets),
        }
    }

    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        if self.transaction.is_none() {
            let (end_txn_sent_before, _) = self.producer.end_txns();
            self.producer.begin().map_err(|error| self.failure(Call::Begin, &error))?;
            self.transaction = Some(Transaction::begun(end_txn_sent_before));
        }
        Ok(())
    }

    pub(super) fn failure(&self, call: Call, error: &LibraryError) -> Failure {
        failure::of_call(call, error, self.producer.fatal_error(), &self.place.transactional_id)
    }

    /// Why the producer would not even queue a record.
    pub(super) fn refusal(&self, error: &LibraryError, target: &TopicName) -> Refusal {
        if self.producer.fatal_error().is_none() && failure::is_echo(error) {
            let unknown = || Failure::Unknown(error.to_string());
            return Refusal::Collateral(self.doomed().unwrap_or_else(unknown));
        }
        failure::of_record(error, self.producer.fatal_error(), target, &self.place.transactional_id)
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of the command")]
    fn produce(
        &mut self,
        io: &mut Io,
        out: &mut LaneOut,
        attempt: Attempt,
        batch: BatchId,
        held: Option<Held>,
        target: &TargetPartition,
        alone: bool,
    ) {
        let Some(held) = held else {
            out.failed(attempt, Step::Produce, Failure::Abort(format!("batch {batch} is not held")));
            return;
        };
        let flight = Flight::new(attempt, target.topic.clone(), held.records.len() as u64);
        self.flights.insert(batch, flight);
        if let Err(failure) = self.begin() {
            self.not_queued(batch, Refusal::Collateral(failure));
            return;
        }
        let place = TopicPartition { topic: target.topic.clone(), partition: target.partition };
        if alone {
            let single = match held.records.as_slice() {
                [record] => Some(record.place()),
                _ => None,
            };
            self.work = Work::Alone { batch, target: place, records: held.records, single };
            return;
        }
        for record in held.records {
            if !self.queue(io, batch, &place, record) {
                break;
            }
        }
    }

    fn not_queued(&mut self, batch: BatchId, refusal: Refusal) {
        if let Some(flight) = self.flights.get_mut(&batch) {
            flight.not_queued(refusal);
        }
    }

    /// Hands one record to the producer; whether it took it.
    fn queue(&mut self, io: &mut Io, batch: BatchId, target: &TopicPartition, read: ReadRecord) -> bool {
        let mut record = read.record;
        record.timestamp = read.timestamp;
        spoil(io, &mut record);
        let is_refused = io.faults.send_refused != Rate::NEVER && io.random.happens(io.faults.send_refused);
        let queued = match is_refused {
            true => Err(LibraryError::new(Code::UnknownPartition)),
            false => self.producer.produce(io.now, target, record, batch.0),
        };
        match queued {
            Ok(()) => {
                if let Some(flight) = self.flights.get_mut(&batch) {
                    flight.accepted();
                }
                if let Some(transaction) = &mut self.transaction {
                    transaction.accepted(&target.topic);
                }
                true
            }
            Err(_) if io.mutants.send_errors_are_not_counted => {
                if let Some(flight) = self.flights.get_mut(&batch) {
                    flight.overlook();
                }
                true
            }
            Err(error) => {
                let refusal = self.refusal(&error, &target.topic);
                self.not_queued(batch, refusal);
                false
            }
        }
    }

    fn alone(
        &mut self,
        io: &mut Io,
        batch: BatchId,
        target: TopicPartition,
        records: Vec<ReadRecord>,
        single: Option<OffsetAndEpoch>,
    ) -> bool {
        let refused = self.flights.get_mut(&batch).filter(|flight| flight.is_refused());
        if let Some(flight) = refused {
            single.into_iter().for_each(|record| flight.name_record(record));
            return true;
        }
        if let Some(cause) = self.doomed() {
            // Nothing more is sent in this transaction, so nothing more is heard of it.
            self.not_queued(batch, Refusal::Collateral(cause));
            return true;
        }
        let waits = self.flights.values().any(|flight| !flight.has_landed());
        if waits {
            self.work = Work::Alone { batch, target, records, single };
            return false;
        }
        if !records.is_empty() {
            for record in records {
                if !self.queue(io, batch, &target, record) {
                    break;
                }
            }
            self.work = Work::Alone { batch, target, records: Vec::new(), single };
            return true;
        }
        true
    }

    /// Why the open transaction as a whole must be aborted, if the producer has decided that.
    fn doomed(&self) -> Option<Failure> {
        let transaction = self.transaction.as_ref()?;
        let cause = self.producer.abort_cause()?;
        Some(failure::of_transaction(cause, &transaction.topics, &self.place.transactional_id))
    }

    /// Why nothing more will be heard of what is in flight, once the transaction is doomed for so long: a record's own
    /// refusal dooms it a moment before it is reported.
    pub(super) fn given_up(&mut self, io: &mut Io, after: Millis) -> Option<Failure> {
        let Some(cause) = self.doomed() else {
            self.doomed_since = None;
            return None;
        };
        let since = *self.doomed_since.get_or_insert(io.now);
        io.is_due(since + after).then_some(cause)
    }

    /// Refuses whatever is in flight if nothing more will be heard of it.
    fn give_up_the_doomed(&mut self, io: &mut Io, out: &mut LaneOut) {
        if self.flights.is_empty() {
            self.doomed_since = None;
            return;
        }
        let Some(cause) = self.given_up(io, LOOKS_EVERY_MS) else { return };
        for flight in self.flights.values_mut().filter(|flight| !flight.has_landed()) {
            flight.not_queued(Refusal::Collateral(cause.clone()));
        }
        self.land(out);
    }

    /// Books the delivery reports.
    pub(super) fn count_deliveries(&mut self) {
        if !self.producer.has_deliveries() {
            return;
        }
        let doomed = if self.producer.fatal_error().is_none() { self.doomed() } else { None };
        for Delivery { tag, outcome } in self.producer.take_deliveries() {
            if let (Err(error), Some(transaction)) = (&outcome, &mut self.transaction) {
                transaction.has_gap |= failure::leaves_gap(error);
            }
            let flight = match tag {
                LEDGER => self.ledger.as_mut(),
                batch => self.flights.get_mut(&BatchId(batch)),
            };
            // What an abort purged is no longer expected.
            let Some(flight) = flight else { continue };
            match outcome {
                Ok(offset) => flight.acknowledged(offset),
                Err(error) => {
                    let (fatal, id) = (self.producer.fatal_error(), &self.place.transactional_id);
                    flight.refused(match &doomed {
                        Some(cause) if failure::is_echo(&error) => Refusal::Collateral(cause.clone()),
                        _ => failure::of_record(&error, fatal, &flight.topic, id),
                    });
                }
            }
        }
    }

    /// Reports the batches whose last delivery report is in. Of a refused one it may be long in coming: what went out
    /// behind the refused request is out of order, and not sent again in a transaction that can only be aborted.
    fn land(&mut self, out: &mut LaneOut) {
        let is_alone = |batch: &BatchId| matches!(&self.work, Work::Alone { batch: at, .. } if at == batch);
        let is_doomed = self.doomed().is_some();
        let landed = self.flights.extract_if(.., |batch, flight| {
            (flight.has_landed() || (is_doomed && flight.is_refused())) && !is_alone(batch)
        });
        for (batch, flight) in landed {
            out.emit(flight.attempt, LaneEvent::Acked(batch, flight.outcome()));
        }
    }
}

/// For mutants: what a client might do to a record.
fn spoil(io: &Io, record: &mut Record) {
    if io.mutants.tombstones_become_empty && record.value.is_none() {
        record.value = Some(Bytes::new());
    }
    if io.mutants.headers_are_dropped {
        record.headers = Arc::default();
    }
    if io.mutants.timestamps_are_renewed {
        record.timestamp = io.wall;
    }
}
