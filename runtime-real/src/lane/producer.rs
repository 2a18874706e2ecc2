//! The thread of a lane's transactional producer.

use super::LaneSettings;
use super::client_config::{self, INIT_MAX};
use super::emitter::Emitter;
use super::failure::{self, Call};
use super::flight::Flight;
use super::lineup::Lineup;
use super::prepare::{self, Targets};
use super::store::Held;
use super::watchdog::Watchdog;
use crate::ffi::{Code, Delivery, OwnedMessage, RdError, TransactionalProducer, Waker};
use kafka_types::{SourceOffset, TargetPartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use verbatim_core::Attempt;
use verbatim_core::batch::BatchId;
use verbatim_core::command::NewLedgerRecord;
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::{Failure, Refusal};

pub(super) enum ProducerCommand {
    /// The records come with the command: once it is given, nothing that happens to their partition at the
    /// source may take them away.
    Produce {
        batch: BatchId,
        held: Option<Held>,
        target: TargetPartition,
        alone: bool,
    },
    Settle(Vec<NewLedgerRecord>),
    Abort,
    Prepare(Targets),
}

/// The sending end: commands for the producer's thread, which ends when this is dropped.
pub(super) struct Producer {
    commands: Sender<(Attempt, ProducerCommand)>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Producer {
    /// Starts the thread, which begins by initialising the lane's transactional id.
    pub(super) fn start(
        emitter: &Emitter,
        attempt: Attempt,
        watchdog: Watchdog,
        settings: Arc<LaneSettings>,
    ) -> Producer {
        let (sender, commands) = channel();
        let waker = Arc::new(Mutex::new(None));
        let (emits, shared) = (emitter.clone(), Arc::clone(&waker));
        emitter.spawn(attempt, Step::Open, "producer", move || {
            if let Some(mut outbox) = Outbox::open(attempt, emits, watchdog, settings) {
                *shared.lock().expect("no panic while locked") = Some(outbox.producer.waker());
                outbox.run(&commands);
            }
            // The waker holds the producer's client.
            shared.lock().expect("no panic while locked").take();
        });
        Producer { commands: sender, waker }
    }

    pub(super) fn send(&self, attempt: Attempt, command: ProducerCommand) {
        // A thread that has ended has said why.
        let _ = self.commands.send((attempt, command));
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.lock().expect("no panic while locked") {
            waker.wake();
        }
    }
}

/// The tag of ledger records; batches have their own ids, which begin at 1.
pub(super) const LEDGER: usize = 0;

/// How long a wait for one thing lasts before the next is looked at.
pub(super) const PACE: Duration = Duration::from_millis(100);

/// The watchdog has called the present step off, or the lane is abandoned: end without another word.
#[derive(Debug)]
pub(super) struct CalledOff;

pub(super) struct Outbox {
    pub(super) producer: TransactionalProducer,
    pub(super) emitter: Emitter,
    pub(super) watchdog: Watchdog,
    pub(super) settings: Arc<LaneSettings>,
    /// Batches that the client has not been given yet.
    pub(super) lineup: Lineup<Waiting>,
    /// Batches whose delivery reports are not all in.
    pub(super) flights: BTreeMap<BatchId, Flight>,
    /// Ledger records on their way, as one batch.
    pub(super) ledger: Option<Flight>,
    pub(super) transaction: Option<Transaction>,
    /// How long committing or aborting may take.
    pub(super) end_max: Duration,
}

pub(super) struct Waiting {
    attempt: Attempt,
    records: Vec<OwnedMessage>,
    /// To be sent one by one, each awaited before the next.
    alone: bool,
}

pub(super) struct Transaction {
    /// EndTxn requests sent before it began.
    pub(super) end_txn_sent_before: u64,
    /// Whether a refused record has left a gap in the producer's sequence numbers.
    pub(super) has_gap: bool,
    /// Where the records go that the client took. With none, the coordinator need not be asked to end it.
    pub(super) topics: BTreeSet<TopicName>,
}

impl Transaction {
    fn begun(end_txn_sent_before: u64) -> Transaction {
        Transaction { end_txn_sent_before, has_gap: false, topics: BTreeSet::new() }
    }

    pub(super) fn accepted(&mut self, topic: &TopicName) {
        if !self.topics.contains(topic) {
            self.topics.insert(topic.clone());
        }
    }
}

impl Outbox {
    fn open(
        attempt: Attempt,
        emitter: Emitter,
        watchdog: Watchdog,
        settings: Arc<LaneSettings>,
    ) -> Option<Outbox> {
        let id = &settings.transactional_id;
        let config = client_config::target_producer(&settings.target, id);
        let made = TransactionalProducer::new(&config, emitter.liveness());
        let initialised = made.and_then(|producer| {
            let init = || producer.init_transactions(INIT_MAX);
            match watchdog.guard(attempt, Step::Open, INIT_MAX, init) {
                None => Ok(None),
                Some(Ok(())) => Ok(Some(producer)),
                // Refused credentials show as a mere time-out.
                Some(Err(error)) => Err(match producer.last_error() {
                    Some(last) if last.code == Code::RD_KAFKA_RESP_ERR__AUTHENTICATION => last,
                    Some(last) => RdError { text: format!("{error}; last: {last}"), ..error },
                    None => error,
                }),
            }
        });
        match initialised {
            Ok(producer) => {
                let producer = producer?;
                emitter.emit(attempt, LaneEvent::Opened);
                Some(Outbox {
                    producer,
                    emitter,
                    watchdog,
                    lineup: Lineup::default(),
                    flights: BTreeMap::new(),
                    ledger: None,
                    transaction: None,
                    end_max: client_config::end_transaction_max(&settings.target),
                    settings,
                })
            }
            Err(error) => {
                let failure = failure::of_call(Call::Init, &error, error.fatal.then_some(&error), id);
                emitter.failed(attempt, Step::Open, failure);
                None
            }
        }
    }

    /// Until the lane lets go of it.
    fn run(&mut self, commands: &Receiver<(Attempt, ProducerCommand)>) {
        loop {
            let command = match self.flights.is_empty() {
                true => commands.recv_timeout(Duration::from_secs(1)),
                false => commands.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                }),
            };
            let obeyed = match command {
                Ok((attempt, command)) => self.obey(attempt, command),
                Err(RecvTimeoutError::Timeout) => {
                    let wait = if self.flights.is_empty() { Duration::ZERO } else { Duration::from_secs(1) };
                    self.producer.poll(wait);
                    Ok(())
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.land();
            if obeyed.and_then(|()| self.hand_over()).is_err() || self.emitter.is_abandoned() {
                return;
            }
        }
    }

    fn obey(&mut self, attempt: Attempt, command: ProducerCommand) -> Result<(), CalledOff> {
        match command {
            ProducerCommand::Produce { batch, held, target, alone } => {
                match held {
                    Some(Held { records, bytes, .. }) => {
                        let size = (records.len(), bytes);
                        self.lineup.push(batch, target, size, Waiting { attempt, records, alone });
                    }
                    None => {
                        let text = format!("batch {batch} is not held");
                        self.emitter.failed(attempt, Step::Produce, Failure::Abort(text));
                    }
                }
                Ok(())
            }
            ProducerCommand::Settle(records) => self.settle(attempt, records),
            ProducerCommand::Abort => self.abort(attempt),
            ProducerCommand::Prepare(targets) => {
                let known = prepare::know(&mut self.producer, &targets);
                prepare::look(&self.emitter, attempt, &self.settings, targets, known);
                Ok(())
            }
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

    pub(super) fn failure(&self, call: Call, error: &RdError) -> Failure {
        let fatal = self.producer.fatal_error();
        failure::of_call(call, error, fatal.as_ref(), &self.settings.transactional_id)
    }

    /// Why the client would not even queue a record.
    pub(super) fn refusal(&self, error: &RdError, target: &TopicName) -> Refusal {
        let fatal = self.producer.fatal_error();
        if fatal.is_none() && failure::is_echo(error) {
            let unknown = || Failure::Unknown(error.to_string());
            return Refusal::Collateral(self.doomed().unwrap_or_else(unknown));
        }
        failure::of_record(error, fatal.as_ref(), target, &self.settings.transactional_id)
    }

    /// Gives the client what it may have by now.
    fn hand_over(&mut self) -> Result<(), CalledOff> {
        while let Some((target, load)) = self.lineup.next() {
            for (batch, waiting) in load {
                self.produce(batch, &target, waiting)?;
            }
            // What cannot go out lands at once, and lets go what waits behind it.
            self.land();
        }
        Ok(())
    }

    fn produce(
        &mut self,
        batch: BatchId,
        target: &TargetPartition,
        waiting: Waiting,
    ) -> Result<(), CalledOff> {
        let Waiting { attempt, records, alone } = waiting;
        self.flights.insert(batch, Flight::new(attempt, target.topic.clone(), records.len() as u64));
        if let Err(failure) = self.begin() {
            self.flight(batch).not_queued(Refusal::Collateral(failure));
            return Ok(());
        }
        for mut record in records {
            self.queue(batch, target, &mut record)?;
            if alone {
                self.await_alone(batch, SourceOffset(record.offset()))?;
            }
            if self.flight(batch).is_refused() {
                break;
            }
        }
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    fn flight(&mut self, batch: BatchId) -> &mut Flight {
        self.flights.get_mut(&batch).expect("it has not landed")
    }

    /// Hands one record to the client, waiting while its queue is full.
    fn queue(
        &mut self,
        batch: BatchId,
        target: &TargetPartition,
        record: &mut OwnedMessage,
    ) -> Result<(), CalledOff> {
        let tag = usize::try_from(batch.0).expect("64 bits");
        loop {
            match self.producer.produce(&target.topic, target.partition.0, record, tag) {
                Ok(()) => {
                    self.flight(batch).accepted();
                    self.transaction.as_mut().expect("begun").accepted(&target.topic);
                    return Ok(());
                }
                Err(error) if error.code == Code::RD_KAFKA_RESP_ERR__QUEUE_FULL => {
                    self.producer.poll(Duration::from_millis(10));
                    self.count_deliveries();
                    if self.emitter.is_abandoned() {
                        return Err(CalledOff);
                    }
                }
                Err(error) => {
                    let refusal = self.refusal(&error, &target.topic);
                    self.flight(batch).not_queued(refusal);
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the one record in flight.
    fn await_alone(&mut self, batch: BatchId, record: SourceOffset) -> Result<(), CalledOff> {
        // Other batches of the transaction may be in flight too; they are counted, and land later.
        while !self.flight(batch).has_landed() {
            self.producer.flush(PACE);
            self.count_deliveries();
            if self.emitter.is_abandoned() {
                return Err(CalledOff);
            }
        }
        let flight = self.flight(batch);
        if flight.is_refused() {
            flight.name_record(record);
        }
        Ok(())
    }

    /// Books the delivery reports that the client has served.
    pub(super) fn count_deliveries(&mut self) {
        let deliveries = self.producer.take_deliveries();
        // A fatal error is the cause of all that fails after it, and what dooms the transaction that of purges.
        let failed = deliveries.iter().any(|delivery| delivery.outcome.is_err());
        let fatal = if failed { self.producer.fatal_error() } else { None };
        // An abort that has just ended leaves nothing in flight, and no transaction to ask about.
        let in_flight = !self.flights.is_empty() || self.ledger.is_some();
        let doomed = if failed && in_flight && fatal.is_none() { self.doomed() } else { None };
        for Delivery { tag, outcome } in deliveries {
            if let (Err(error), Some(transaction)) = (&outcome, &mut self.transaction) {
                transaction.has_gap |= failure::leaves_gap(error);
            }
            let flight = match tag {
                LEDGER => self.ledger.as_mut(),
                batch => self.flights.get_mut(&BatchId(batch as u64)),
            };
            // What an abort purged is no longer expected.
            let Some(flight) = flight else { continue };
            match outcome {
                Ok(offset) => flight.acknowledged(offset),
                Err(error) => {
                    let id = &self.settings.transactional_id;
                    flight.refused(match &doomed {
                        Some(cause) if failure::is_echo(&error) => Refusal::Collateral(cause.clone()),
                        _ => failure::of_record(&error, fatal.as_ref(), &flight.topic, id),
                    });
                }
            }
        }
    }

    /// Why the open transaction as a whole must be aborted, if librdkafka has decided that. To be asked only while a
    /// transaction is open there too: where none is, to ask would begin one.
    fn doomed(&self) -> Option<Failure> {
        let transaction = self.transaction.as_ref()?;
        let cause = self.producer.abort_cause()?;
        Some(failure::of_transaction(&cause, &transaction.topics, &self.settings.transactional_id))
    }

    /// Whether a batch was refused and the rest of its delivery reports will not come: once a transaction can only be
    /// aborted, librdkafka sends nothing more of it, also not what waits to be sent again.
    fn is_over(&self) -> bool {
        let waits = |flight: &Flight| flight.is_refused() && !flight.has_landed();
        self.transaction.is_some()
            && self.flights.values().any(waits)
            && self.producer.abort_cause().is_some()
    }

    /// Reports the batches whose last delivery report is in.
    fn land(&mut self) {
        self.count_deliveries();
        let is_over = self.is_over();
        let lands = |flight: &Flight| flight.has_landed() || (is_over && flight.is_refused());
        for (batch, flight) in self.flights.extract_if(.., |_, flight| lands(flight)) {
            self.lineup.landed(batch);
            self.emitter.emit(flight.attempt, LaneEvent::Acked(batch, flight.outcome()));
        }
    }
}
