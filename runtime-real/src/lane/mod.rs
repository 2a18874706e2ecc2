//! The data plane: one lane's source consumer and transactional producer.
//!
//! ```text
//! source consumer's thread -> batch store -> producer's thread
//!            \ tickets                         / acknowledgements
//!             +---------> the World <---------+
//! ```
//!
//! Each taking of a lane (`Open`) has its own threads, clients and store. Taking it anew, or closing it, only
//! cuts the old ones off: nothing here waits for a client, and what an abandoned thread still has to say goes
//! nowhere.

mod bell;
mod deliveries;
mod emitter;
mod failure;
mod flight;
mod ledger_reader;
mod lineup;
mod outbox;
mod prepare;
mod producer;
mod run;
mod settle;
mod source;
mod source_error;
mod store;
mod tag;
mod target_reader;
#[cfg(test)]
mod tests;
mod transaction;
mod watchdog;

use crate::ffi::Liveness;
use crate::threads;
use emitter::Emitter;
use kafka_types::TopicName;
use producer::{Producer, ProducerCommand};
use rdkafka::ClientConfig;
use source::{Source, SourceCommand};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::BatchStore;
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::command::LaneCommand;
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::Failure;
use verbatim_core::{Attempt, LaneId};
use watchdog::Watchdog;

/// Where a lane's events go.
pub(crate) type LaneEvents = UnboundedSender<(LaneId, Attempt, LaneEvent)>;

/// What a lane is made from.
pub(crate) struct LaneSettings {
    pub(crate) ledger: TopicName,
    pub(crate) transactional_id: String,
    pub(crate) source_consumer: ClientConfig,
    pub(crate) target_reader: ClientConfig,
    pub(crate) producer: ClientConfig,
    /// How long committing or aborting may take.
    pub(crate) end_max: Duration,
}

/// One lane, as far as this process works in it.
pub(crate) struct Lane {
    lane: LaneId,
    settings: Arc<LaneSettings>,
    events: LaneEvents,
    taking: Option<Taking>,
}

/// One taking of the lane, from `Open` to the next `Open` or `Close`.
struct Taking {
    emitter: Emitter,
    store: Arc<BatchStore>,
    watchdog: Watchdog,
    producer: Producer,
    /// Made when the first partition is assigned.
    source: Option<Source>,
}

/// How long `Closed` waits for what is being closed.
const CLOSE_MAX: Duration = Duration::from_secs(3);

impl Lane {
    pub(crate) fn new(lane: LaneId, settings: LaneSettings, events: LaneEvents) -> Lane {
        Lane { lane, settings: Arc::new(settings), events, taking: None }
    }

    /// Carries `command` out; what comes of it is sent as events of the same attempt.
    pub(crate) fn submit(&mut self, attempt: Attempt, command: LaneCommand) {
        if let Some(taking) = &self.taking {
            taking.emitter.heed(attempt);
        }
        match command {
            LaneCommand::Open => self.open(attempt),
            LaneCommand::Close => self.close(attempt),
            LaneCommand::ReadClaims => {
                // Also asked for once the lane is lost.
                let emitter = match &self.taking {
                    Some(taking) => taking.emitter.clone(),
                    None => Emitter::new(self.lane, self.events.clone()),
                };
                ledger_reader::read_claims(&emitter, attempt, &self.settings);
            }
            command => match &mut self.taking {
                Some(taking) => taking.submit(attempt, command, &self.settings),
                None => self.refuse(attempt, &command),
            },
        }
    }

    fn open(&mut self, attempt: Attempt) {
        self.abandon();
        let emitter = Emitter::new(self.lane, self.events.clone());
        let store = Arc::new(BatchStore::default());
        let watchdog = Watchdog::start(emitter.clone(), attempt);
        let settings = Arc::clone(&self.settings);
        let producer = Producer::start(&emitter, attempt, watchdog.clone(), settings);
        self.taking = Some(Taking { emitter, store, watchdog, producer, source: None });
    }

    /// Cuts the present taking off; what may still run of it.
    fn abandon(&mut self) -> Option<Liveness> {
        let taking = self.taking.take()?;
        taking.emitter.abandon();
        taking.watchdog.end();
        taking.store.clear();
        // Whoever waits for a client looks up at once, or `Closed` would wait as long: lanes are shared out eagerly.
        taking.producer.wake();
        if let Some(source) = &taking.source {
            source.wake();
        }
        Some(taking.emitter.liveness())
        // Its threads end when they find their commands cut off, and destroy their clients on others.
    }

    fn close(&mut self, attempt: Attempt) {
        let emitter = Emitter::new(self.lane, self.events.clone());
        let Some(running) = self.abandon() else {
            emitter.emit(attempt, LaneEvent::Closed);
            return;
        };
        let emits = emitter.clone();
        let wait = move || {
            let until = Instant::now() + CLOSE_MAX;
            // This thread's own count is one.
            while 1 < Arc::strong_count(&running) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            emits.emit(attempt, LaneEvent::Closed);
        };
        // A lane that is closing listens to nothing else.
        threads::start(&format!("lane-{}-close", self.lane), wait, move |why| {
            tracing::error!(why, "a lane counts as closed without its threads being awaited");
            emitter.emit(attempt, LaneEvent::Closed);
        });
    }

    /// Work for a lane that is not open.
    fn refuse(&self, attempt: Attempt, command: &LaneCommand) {
        let step = match command {
            LaneCommand::Replay { .. } => Step::Replay,
            LaneCommand::Prepare { .. } => Step::Prepare,
            LaneCommand::Assign { .. } | LaneCommand::Rewind { .. } => Step::Assign,
            LaneCommand::Produce { .. } => Step::Produce,
            LaneCommand::Settle { .. } => Step::Settle,
            LaneCommand::Abort => Step::Abort,
            LaneCommand::Open
            | LaneCommand::Close
            | LaneCommand::ReadClaims
            | LaneCommand::Unassign { .. }
            | LaneCommand::Credit { .. } => return,
        };
        let emitter = Emitter::new(self.lane, self.events.clone());
        emitter.failed(attempt, step, Failure::Unknown("the lane is not open".into()));
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Taking {
    fn submit(&mut self, attempt: Attempt, command: LaneCommand, settings: &Arc<LaneSettings>) {
        let to_source = match command {
            LaneCommand::Open | LaneCommand::Close | LaneCommand::ReadClaims => {
                unreachable!("the lane's own")
            }
            LaneCommand::Replay { until } => {
                return ledger_reader::replay(&self.emitter, attempt, settings, until);
            }
            LaneCommand::Prepare { targets } => {
                return self.producer.send(attempt, ProducerCommand::Prepare(targets));
            }
            LaneCommand::Produce { batch, target, alone } => {
                let held = self.store.take(batch);
                let command = ProducerCommand::Produce { batch, held, target, alone };
                return self.producer.send(attempt, command);
            }
            LaneCommand::Settle { records } => {
                return self.producer.send(attempt, ProducerCommand::Settle(records));
            }
            LaneCommand::Abort => return self.producer.send(attempt, ProducerCommand::Abort),
            LaneCommand::Assign { positions } => SourceCommand::Assign(positions),
            LaneCommand::Rewind { positions } => SourceCommand::Rewind(positions),
            LaneCommand::Unassign { partitions } => SourceCommand::Unassign(partitions),
            LaneCommand::Credit { bytes, batch_max } => SourceCommand::Credit { bytes, batch_max },
        };
        let (emitter, store) = (&self.emitter, &self.store);
        let source = self.source.get_or_insert_with(|| {
            Source::start(emitter, attempt, Arc::clone(store), settings.source_consumer.clone())
        });
        source.send(attempt, to_source);
    }
}
