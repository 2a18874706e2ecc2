//! The thread of a lane's transactional producer: records go out, delivery reports come in.

use super::LaneSettings;
use super::emitter::Emitter;
use super::failure::{self, Call};
use super::flight::Flight;
use super::lineup::Lineup;
use super::prepare;
use super::producer::ProducerCommand;
use super::store::Held;
use super::tag::Tag;
use super::transaction::Transaction;
use super::watchdog::Watchdog;
use crate::client_config::INIT_MAX;
use crate::ffi::{ClientError, Code, OwnedMessage, TransactionalProducer, Waker};
use crate::trouble::{Kind, kind};
use kafka_types::{TargetPartition, TopicName};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};
use verbatim_core::Attempt;
use verbatim_core::batch::BatchId;
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::{Failure, Refusal};

/// How long a wait for one thing lasts before the next is looked at.
pub(super) const PACE: Duration = Duration::from_millis(100);

/// How long a delivery report is waited for before the transaction itself is looked at, and how long a command.
const LULL: Duration = Duration::from_secs(1);

/// How long, and how often, the client is told to send what lingers.
const NUDGE: Duration = Duration::from_millis(1);
const NUDGE_EVERY: Duration = Duration::from_millis(20);

/// The thread's work is over: the watchdog has called the present step off, the lane is abandoned, or what was said
/// last leaves nothing to be done with this producer. It ends without another word.
#[derive(Debug)]
pub(super) struct Over;

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
    /// When the transaction was last looked at for whether it is doomed.
    looked_at: Instant,
}

pub(super) struct Waiting {
    attempt: Attempt,
    records: Vec<OwnedMessage>,
    /// To be sent when all before it has landed, and awaited.
    alone: bool,
}

impl Outbox {
    pub(super) fn open(
        attempt: Attempt,
        emitter: Emitter,
        watchdog: Watchdog,
        settings: Arc<LaneSettings>,
    ) -> Option<Outbox> {
        let id = &settings.transactional_id;
        let made = TransactionalProducer::new(&settings.producer, emitter.liveness());
        let initialised = made.and_then(|producer| {
            let init = || producer.init_transactions(INIT_MAX);
            match watchdog.guard(attempt, Step::Open, INIT_MAX, init) {
                None => Ok(None),
                Some(Ok(())) => Ok(Some(producer)),
                Some(Err(error)) => Err(with_cause(error, producer.last_error())),
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
                    looked_at: Instant::now(),
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

    pub(super) fn waker(&self) -> Waker {
        self.producer.waker()
    }

    /// Until the lane lets go of it, or there is nothing more to be done with this producer.
    pub(super) fn run(&mut self, commands: &Receiver<(Attempt, ProducerCommand)>) {
        loop {
            let command = match self.flights.is_empty() {
                true => commands.recv_timeout(LULL),
                false => commands.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                }),
            };
            let obeyed = match command {
                Ok((attempt, command)) => self.obey(attempt, command),
                Err(RecvTimeoutError::Timeout) => {
                    self.await_reports();
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

    fn await_reports(&mut self) {
        if self.flights.is_empty() {
            self.producer.poll(Duration::ZERO);
            return;
        }
        self.producer.poll(self.nudge());
        // A wake ends the wait too, and says nothing of the transaction.
        if LULL <= self.looked_at.elapsed() {
            self.looked_at = Instant::now();
            self.give_up_the_doomed();
        }
    }

    /// Has the client send what it has of a partition without waiting for more; how long to wait then. It is told so for
    /// a moment only, since it polls without a pause while it is told and an answer is still under way.
    fn nudge(&self) -> Duration {
        if !self.lineup.lingers() {
            return LULL;
        }
        self.producer.flush(NUDGE);
        NUDGE_EVERY
    }

    fn obey(&mut self, attempt: Attempt, command: ProducerCommand) -> Result<(), Over> {
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
                prepare::start(&mut self.producer, &self.emitter, attempt, &self.settings, targets);
                Ok(())
            }
        }
    }

    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        if self.transaction.is_none() {
            let (end_txn_sent_before, _) = self.producer.end_txns();
            let begun = self.producer.begin().map_err(|error| self.failure(Call::Begin, &error))?;
            self.transaction = Some(Transaction::new(begun, end_txn_sent_before));
        }
        Ok(())
    }

    pub(super) fn failure(&self, call: Call, error: &ClientError) -> Failure {
        let fatal = self.producer.fatal_error();
        failure::of_call(call, error, fatal.as_ref(), &self.settings.transactional_id)
    }

    /// Why the client would not even queue a record.
    pub(super) fn refusal(&self, error: &ClientError, target: &TopicName) -> Refusal {
        let fatal = self.producer.fatal_error();
        if fatal.is_none() && failure::is_echo(error) {
            let unknown = || Failure::Unknown(error.to_string());
            return Refusal::Collateral(self.doomed().unwrap_or_else(unknown));
        }
        failure::of_record(error, fatal.as_ref(), target, &self.settings.transactional_id)
    }

    /// Gives the client what it may have by now.
    fn hand_over(&mut self) -> Result<(), Over> {
        while let Some((target, load)) = self.lineup.next() {
            for (batch, waiting) in load {
                self.produce(batch, &target, waiting)?;
            }
            // What cannot go out lands at once, and lets go what waits behind it.
            self.land();
        }
        Ok(())
    }

    fn produce(&mut self, batch: BatchId, target: &TargetPartition, waiting: Waiting) -> Result<(), Over> {
        let Waiting { attempt, records, alone } = waiting;
        let single = match records.as_slice() {
            [record] if alone => Some(record.place()),
            _ => None,
        };
        if alone {
            self.await_landing()?;
        }
        self.flights.insert(batch, Flight::new(attempt, target.topic.clone(), records.len() as u64));
        if let Err(failure) = self.begin() {
            self.flight(batch).not_queued(Refusal::Collateral(failure));
            return Ok(());
        }
        for mut record in records {
            self.queue(batch, target, &mut record)?;
            if self.flight(batch).is_refused() {
                break;
            }
        }
        if alone {
            self.await_landing()?;
        }
        if let Some(record) = single
            && self.flight(batch).is_refused()
        {
            self.flight(batch).name_record(record);
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
    ) -> Result<(), Over> {
        let tag = Tag::Batch(batch).to_number();
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
                        return Err(Over);
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

    /// Waits until all that is in flight has landed, or it is certain that nothing more will be heard of it.
    fn await_landing(&mut self) -> Result<(), Over> {
        while self.flights.values().any(|flight| !flight.has_landed()) {
            self.producer.flush(PACE);
            self.count_deliveries();
            if self.emitter.is_abandoned() {
                return Err(Over);
            }
            if self.give_up_the_doomed() {
                break;
            }
        }
        Ok(())
    }
}

/// Refused credentials show as a mere time-out of the call that waits for a coordinator.
fn with_cause(error: ClientError, last: Option<ClientError>) -> ClientError {
    match last {
        Some(last) if kind(last.code) == Kind::Authentication => last,
        Some(last) => ClientError { text: format!("{error}; last: {last}"), ..error },
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_refuses_who_we_are_is_the_cause() {
        let timed_out = || ClientError::of_code(Code::RD_KAFKA_RESP_ERR__TIMED_OUT);
        for code in [
            Code::RD_KAFKA_RESP_ERR__AUTHENTICATION,
            Code::RD_KAFKA_RESP_ERR__SSL,
            Code::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_EXPIRED,
        ] {
            let last = ClientError::new(code, "no");
            assert_eq!(with_cause(timed_out(), Some(last.clone())), last);
        }
        let lost = ClientError::new(Code::RD_KAFKA_RESP_ERR__TRANSPORT, "connection refused");
        let told = with_cause(timed_out(), Some(lost));
        assert_eq!(told.code, Code::RD_KAFKA_RESP_ERR__TIMED_OUT);
        assert!(told.text.contains("connection refused"));
        assert_eq!(with_cause(timed_out(), None), timed_out());
    }
}
