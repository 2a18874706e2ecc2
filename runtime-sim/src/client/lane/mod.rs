//! One lane's data plane: source consumer, batch store, transactional producer, and readers of the target.
//!
//! Each taking of a lane (`Open`) has its own clients. Taking it anew, or closing it, only cuts the old ones off.

mod failure;
mod flight;
mod know;
mod ledger_reader;
mod outbox;
mod prepare;
mod run;
mod settle;
mod source;
mod store;
mod transaction;

use super::io::Io;
use super::library::Place;
use super::marks::Mark;
use crate::moments::Moment;
use kafka_model::Millis;
use kafka_types::TopicName;
use ledger_reader::{LedgerReader, ReadUntil};
use outbox::{Outbox, OutboxCommand};
use prepare::Preparing;
use source::{Source, SourceCommand};
use std::collections::VecDeque;
use store::BatchStore;
use verbatim_core::batch::BatchId;
use verbatim_core::command::LaneCommand;
use verbatim_core::event::{LaneEvent, LedgerRecord, Step};
use verbatim_core::failure::Failure;
use verbatim_core::{Attempt, LaneId};

/// What a lane is made from.
#[derive(Clone)]
pub(super) struct LanePlace {
    pub(super) lane: LaneId,
    pub(super) ledger: TopicName,
    pub(super) transactional_id: String,
    pub(super) source: Place,
    pub(super) target: Place,
}

/// Events of one part of a lane, in the order in which it noticed them. Parts are not ordered among each other.
#[derive(Default)]
pub(super) struct LaneOut {
    events: VecDeque<(Attempt, LaneEvent)>,
    marks: Vec<Mark>,
    batches: u64,
}

impl LaneOut {
    fn emit(&mut self, attempt: Attempt, event: LaneEvent) {
        self.events.push_back((attempt, event));
    }

    fn failed(&mut self, attempt: Attempt, step: Step, failure: Failure) {
        self.emit(attempt, LaneEvent::Failed(step, failure));
    }

    fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    /// An id that no other batch of this lane ever has.
    fn new_batch(&mut self) -> BatchId {
        self.batches += 1;
        BatchId(self.batches)
    }
}

/// One taking of the lane, from `Open` to the next `Open` or `Close`.
struct Taking {
    outbox: Outbox,
    store: BatchStore,
    /// Made when the first partition is assigned.
    source: Option<Source>,
    replays: Vec<LedgerReader>,
    preparing: Vec<Preparing>,
    /// For a mutant: what the ledger held before the lane was opened.
    read_before: Vec<LedgerRecord>,
}

pub(super) struct Lane {
    place: LanePlace,
    taking: Option<Taking>,
    /// Asked for also once the lane is lost.
    claims: Vec<LedgerReader>,
    /// For a mutant: reads the ledger, and only then is the lane opened.
    reading_before: Option<LedgerReader>,
    /// What producer and source say, each in its order.
    producer_out: LaneOut,
    source_out: LaneOut,
    /// A command was given since it was last looked at.
    is_dirty: bool,
    wake: Option<Millis>,
}

impl Lane {
    pub(super) fn new(place: LanePlace) -> Lane {
        // No two batches of a process share an id.
        let batches = u64::from(place.lane.0) << 40;
        let (producer_out, source_out) = (LaneOut::default(), LaneOut { batches, ..LaneOut::default() });
        Lane {
            place,
            taking: None,
            claims: Vec::new(),
            reading_before: None,
            producer_out,
            source_out,
            is_dirty: true,
            wake: None,
        }
    }

    /// Whether there is something to do although nothing has arrived.
    pub(super) fn must_look_at(&self, now: Millis) -> bool {
        self.is_dirty || self.wake.is_some_and(|at| at <= now)
    }

    pub(super) fn looked_at(&mut self, wake: Option<Millis>) {
        self.is_dirty = false;
        self.wake = wake;
    }

    pub(super) fn wake_at(&self) -> Option<Millis> {
        self.wake
    }

    pub(super) fn submit(&mut self, io: &mut Io, attempt: Attempt, command: LaneCommand) {
        self.is_dirty = true;
        match command {
            LaneCommand::Open => {
                let held = self.taking.as_mut().map(|taking| std::mem::take(&mut taking.store));
                let held = held.filter(|_| io.mutants.batches_outlive_their_attempt);
                self.abandon(io);
                if io.mutants.ledger_is_read_before_fencing {
                    let reader = LedgerReader::start(io, &self.place, attempt, ReadUntil::PresentEnd);
                    self.reading_before = Some(reader);
                } else {
                    self.open(io, attempt, held.unwrap_or_default(), Vec::new());
                }
            }
            LaneCommand::Close => {
                self.abandon(io);
                io.wire.mark(Mark::Moment(Moment::LaneClosed));
                self.producer_out.emit(attempt, LaneEvent::Closed);
            }
            LaneCommand::ReadClaims => {
                self.claims.push(LedgerReader::start(io, &self.place, attempt, ReadUntil::PresentEnd));
            }
            command => match &mut self.taking {
                Some(taking) => taking.submit(io, &self.place, attempt, command),
                None => self.refuse(attempt, &command),
            },
        }
    }

    fn open(&mut self, io: &mut Io, attempt: Attempt, store: BatchStore, read_before: Vec<LedgerRecord>) {
        self.taking = Some(Taking {
            outbox: Outbox::open(io, &self.place, attempt),
            store,
            source: None,
            replays: Vec::new(),
            preparing: Vec::new(),
            read_before,
        });
    }

    /// For a mutant: opens the lane once the ledger is read.
    fn open_when_read(&mut self, io: &mut Io) {
        let Some(reader) = &mut self.reading_before else { return };
        let attempt = reader.attempt;
        let Some(outcome) = reader.advance(io) else { return };
        reader.close(io);
        self.reading_before = None;
        match outcome {
            Ok(LaneEvent::Claims(records)) => self.open(io, attempt, BatchStore::default(), records),
            Ok(_) => {}
            Err(failure) => self.producer_out.failed(attempt, Step::Open, failure),
        }
    }

    /// Cuts the present taking off. What it has still to say goes nowhere.
    fn abandon(&mut self, io: &mut Io) {
        self.reading_before.take().into_iter().for_each(|reader| reader.close(io));
        if let Some(taking) = self.taking.take() {
            taking.close(io);
            self.producer_out.events.clear();
            self.source_out.events.clear();
        }
    }

    pub(super) fn close(&mut self, io: &mut Io) {
        self.abandon(io);
        self.claims.drain(..).for_each(|reader| reader.close(io));
    }

    /// Work for a lane that is not open.
    fn refuse(&mut self, attempt: Attempt, command: &LaneCommand) {
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
        self.producer_out.failed(attempt, step, Failure::Unknown("the lane is not open".into()));
    }

    pub(super) fn advance(&mut self, io: &mut Io) {
        let mut read = Vec::new();
        self.open_when_read(io);
        if let Some(taking) = &mut self.taking {
            taking.advance(io, &self.place, &mut self.producer_out, &mut self.source_out);
        }
        for mut reader in self.claims.drain(..) {
            match reader.advance(io) {
                None => read.push(reader),
                Some(outcome) => {
                    reader.close(io);
                    tell(&mut self.producer_out, reader.attempt, Step::ReadClaims, outcome);
                }
            }
        }
        self.claims = read;
        self.producer_out.marks.drain(..).for_each(|mark| io.wire.mark(mark));
    }

    /// The next event of the lane. `first`: of which part, if both have one.
    pub(super) fn next_event(&mut self, first: bool) -> Option<(Attempt, LaneEvent)> {
        let (one, other) = match first {
            true => (&mut self.producer_out, &mut self.source_out),
            false => (&mut self.source_out, &mut self.producer_out),
        };
        one.events.pop_front().or_else(|| other.events.pop_front())
    }

    pub(super) fn has_event(&self) -> bool {
        !self.producer_out.events.is_empty() || !self.source_out.events.is_empty()
    }
}

fn tell(out: &mut LaneOut, attempt: Attempt, step: Step, outcome: Result<LaneEvent, Failure>) {
    match outcome {
        Ok(event) => out.emit(attempt, event),
        Err(failure) => out.failed(attempt, step, failure),
    }
}

/// For a mutant: of what was replayed only the claim counts where the ledger was read before.
fn as_read_before(before: &[LedgerRecord], event: LaneEvent) -> LaneEvent {
    match event {
        LaneEvent::Replayed { log_start, mut records } if !before.is_empty() => {
            let claim = records.pop();
            let records = before.iter().cloned().chain(claim).collect();
            LaneEvent::Replayed { log_start, records }
        }
        event => event,
    }
}

impl Taking {
    fn close(self, io: &mut Io) {
        self.outbox.close(io);
        self.source.iter().for_each(|source| source.close(io));
        self.replays.iter().for_each(|reader| reader.close(io));
        self.preparing.iter().for_each(|preparing| preparing.close(io));
    }

    fn submit(&mut self, io: &mut Io, place: &LanePlace, attempt: Attempt, command: LaneCommand) {
        let to_source = match command {
            LaneCommand::Open | LaneCommand::Close | LaneCommand::ReadClaims => {
                unreachable!("the lane's own")
            }
            LaneCommand::Replay { until } => {
                let until = ReadUntil::Record(until);
                self.replays.push(LedgerReader::start(io, place, attempt, until));
                return;
            }
            LaneCommand::Prepare { targets } => {
                return self.outbox.submit(attempt, OutboxCommand::Prepare(targets));
            }
            LaneCommand::Produce { batch, target, alone } => {
                let held = self.store.take(batch);
                return self.outbox.submit(attempt, OutboxCommand::Produce { batch, held, target, alone });
            }
            LaneCommand::Settle { records } => {
                return self.outbox.submit(attempt, OutboxCommand::Settle(records));
            }
            LaneCommand::Abort => return self.outbox.submit(attempt, OutboxCommand::Abort),
            LaneCommand::Assign { positions } => SourceCommand::Assign(positions),
            LaneCommand::Rewind { positions } => SourceCommand::Rewind(positions),
            LaneCommand::Unassign { partitions } => SourceCommand::Unassign(partitions),
            LaneCommand::Credit { bytes, batch_max } => SourceCommand::Credit { bytes, batch_max },
        };
        self.source.get_or_insert_with(|| Source::start(io, place, attempt)).submit(attempt, to_source);
    }

    fn advance(
        &mut self,
        io: &mut Io,
        place: &LanePlace,
        producer_out: &mut LaneOut,
        source_out: &mut LaneOut,
    ) {
        while let Some(known) = self.outbox.advance(io, producer_out) {
            self.preparing.push(Preparing::start(io, place, known));
        }
        if let Some(source) = &mut self.source {
            source.advance(io, &mut self.store, source_out);
        }
        let mut read = Vec::new();
        for mut reader in self.replays.drain(..) {
            match reader.advance(io) {
                None => read.push(reader),
                Some(outcome) => {
                    reader.close(io);
                    let outcome = outcome.map(|event| as_read_before(&self.read_before, event));
                    tell(producer_out, reader.attempt, Step::Replay, outcome);
                }
            }
        }
        self.replays = read;
        let mut prepared = Vec::new();
        for mut preparing in self.preparing.drain(..) {
            match preparing.advance(io) {
                None => prepared.push(preparing),
                Some(answers) => {
                    preparing.close(io);
                    producer_out.emit(preparing.attempt, LaneEvent::Prepared(answers));
                }
            }
        }
        self.preparing = prepared;
    }
}
