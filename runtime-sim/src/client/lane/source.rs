//! The thread of a lane's source consumer, as a state machine.

use super::run::{Run, facts_of};
use super::store::{BatchStore, Held};
use super::{LaneOut, LanePlace};
use crate::client::fetcher::{Fetcher, Read, ReadRecord, Start};
use crate::client::io::Io;
use crate::client::library::{Library, SOCKET_TIMEOUT_MS};
use crate::client::offsets::Offsets;
use kafka_model::Millis;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TopicPartition};
use std::collections::{BTreeMap, VecDeque};
use verbatim_core::Attempt;
use verbatim_core::batch::{BatchId, RECORD_OVERHEAD};
use verbatim_core::command::Position;
use verbatim_core::event::{LaneEvent, SourceStop};
use verbatim_core::source::{Cursor, End, Judgement, Outside};

pub(super) enum SourceCommand {
    Assign(Vec<Position>),
    Rewind(Vec<Position>),
    Unassign(Vec<SourcePartition>),
    Credit { bytes: u64, batch_max: u64 },
}

/// Records that one partition's queue holds before fetching stops.
const QUEUE_MAX: usize = 2_000;
/// How long the log's ends are asked for when a position is out of range.
const ENDS_MAX_MS: Millis = 3_000;

/// A partition being read.
struct Reading {
    cursor: Cursor,
    /// What of it still comes in this burst belongs to a reading that is over.
    begins_anew: bool,
    run: Option<Run>,
}

/// A position that is out of range: both ends of the log are asked for, and the thread waits for them.
struct OutOfRange {
    place: SourcePartition,
    start: Offsets,
    log_start: Option<Option<SourceOffset>>,
    end: Offsets,
    log_end: Option<Option<SourceOffset>>,
}

pub(super) struct Source {
    fetcher: Fetcher,
    commands: VecDeque<(Attempt, SourceCommand)>,
    attempt: Attempt,
    partitions: BTreeMap<SourcePartition, Reading>,
    credit: i64,
    /// Most records of one batch.
    batch_max: usize,
    out_of_range: Option<Box<OutOfRange>>,
    may_read_at: Millis,
}

impl Source {
    pub(super) fn start(io: &mut Io, place: &LanePlace, attempt: Attempt) -> Source {
        let fetcher = Fetcher::new(Library::new(io, &place.source, SOCKET_TIMEOUT_MS), QUEUE_MAX);
        Source {
            fetcher: fetcher.uncommitted_if(io.mutants.source_is_read_uncommitted),
            commands: VecDeque::new(),
            attempt,
            partitions: BTreeMap::new(),
            credit: 0,
            batch_max: usize::MAX,
            out_of_range: None,
            may_read_at: 0,
        }
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.fetcher.close(io);
    }

    pub(super) fn submit(&mut self, attempt: Attempt, command: SourceCommand) {
        self.commands.push_back((attempt, command));
    }

    pub(super) fn advance(&mut self, io: &mut Io, store: &mut BatchStore, out: &mut LaneOut) {
        self.fetcher.advance(io);
        loop {
            if self.out_of_range.is_some() {
                if !self.look_at_ends(io, store, out) {
                    return;
                }
            } else if let Some((attempt, command)) = self.commands.pop_front() {
                self.obey(io, store, attempt, command);
                self.fetcher.advance(io);
            } else if self.credit <= 0
                || self.partitions.is_empty()
                || !self.fetcher.has_queued()
                || !io.is_due(self.may_read_at)
            {
                return;
            } else {
                if io.random.happens(io.faults.slow_step) {
                    io.wire.mark(crate::client::marks::Mark::SlowStep);
                    self.may_read_at = io.now + io.random.between(1, io.faults.slow_step_max_ms);
                    continue;
                }
                self.read(io, store, out);
                self.fetcher.advance(io);
            }
        }
    }

    fn obey(&mut self, io: &mut Io, store: &mut BatchStore, attempt: Attempt, command: SourceCommand) {
        self.attempt = attempt;
        match command {
            SourceCommand::Credit { bytes, batch_max } => {
                self.credit = self.credit.saturating_add_unsigned(bytes);
                self.batch_max = usize::try_from(batch_max).unwrap_or(usize::MAX);
            }
            SourceCommand::Unassign(partitions) => {
                self.unassign(&partitions);
                store.drop_partitions(&partitions);
            }
            SourceCommand::Assign(positions) => self.assign(io, positions),
            SourceCommand::Rewind(positions) => {
                self.partitions.clear();
                self.fetcher.unassign_all();
                if !io.mutants.batches_outlive_their_attempt {
                    store.drop_older_than(attempt);
                }
                self.credit = 0;
                self.assign(io, positions);
            }
        }
    }

    fn assign(&mut self, io: &mut Io, positions: Vec<Position>) {
        for mut position in positions {
            self.unassign(std::slice::from_ref(&position.partition));
            if io.mutants.start_without_epoch {
                (position.last, position.last_record) = (None, None);
            }
            let OffsetAndEpoch { offset, epoch } = position.beginning();
            let partition = topic_partition(&position.partition);
            self.fetcher.assign([Start { partition, offset: offset.0, epoch }]);
            let cursor = Cursor::new(&position);
            self.partitions.insert(position.partition, Reading { cursor, begins_anew: false, run: None });
        }
    }

    fn unassign(&mut self, partitions: &[SourcePartition]) {
        for partition in partitions {
            if self.partitions.remove(partition).is_some() {
                self.fetcher.unassign(&topic_partition(partition));
            }
        }
    }

    /// One burst: polls, cuts, hands out.
    fn read(&mut self, io: &mut Io, store: &mut BatchStore, out: &mut LaneOut) {
        let mut left = (io.faults.fetch_records_max as usize).max(1);
        let mut brought = 0;
        while 0 < left
            && brought < self.credit
            && self.out_of_range.is_none()
            && let Some(read) = self.fetcher.poll(left)
        {
            match read {
                Read::Records(partition, records) => {
                    let place = source_partition(&partition);
                    left -= records.len();
                    for record in records {
                        brought += self.take(out, store, &place, record);
                    }
                }
                Read::End(partition, end) => {
                    self.end(io, out, store, &source_partition(&partition), SourceOffset(end));
                }
                Read::OutOfRange(partition) => {
                    self.ask_for_ends(io, store, out, &source_partition(&partition))
                }
                Read::Truncated(partition, end) => {
                    let place = source_partition(&partition);
                    let Some(position) = self.partitions.get(&place).map(|reading| reading.cursor.next())
                    else {
                        continue;
                    };
                    let diverges_at = end.map(SourceOffset);
                    self.stop(out, store, &place, SourceStop::Truncated { position, diverges_at });
                }
                Read::Unreadable(partition, offset) => {
                    let (offset, why) = (Some(SourceOffset(offset)), "the batch is damaged".to_owned());
                    let stop = SourceStop::Unreadable { offset, why };
                    self.stop(out, store, &source_partition(&partition), stop);
                }
                Read::NotAuthorized(partition) => {
                    self.stop(out, store, &source_partition(&partition), SourceStop::NotAuthorized);
                }
                Read::Gone(partition) => {
                    self.stop(out, store, &source_partition(&partition), SourceStop::Gone);
                }
            }
        }
        let places: Vec<_> = self
            .partitions
            .iter()
            .filter(|(_, reading)| reading.run.is_some())
            .map(|it| it.0.clone())
            .collect();
        places.iter().for_each(|place| self.hand_out(out, store, place));
        let again = self.partitions.iter().filter(|(_, reading)| reading.begins_anew);
        let again: Vec<_> = again.map(|(place, reading)| reading.cursor.position(place.clone())).collect();
        self.assign(io, again);
        self.credit -= brought;
    }

    /// Takes one record in; its size, if it is wanted.
    fn take(
        &mut self,
        out: &mut LaneOut,
        store: &mut BatchStore,
        place: &SourcePartition,
        record: ReadRecord,
    ) -> i64 {
        let Some(reading) = self.partitions.get_mut(place) else { return 0 };
        let here = record.place();
        if reading.begins_anew {
            return 0;
        }
        match reading.cursor.judge(here) {
            Judgement::Take => {}
            Judgement::Pass => return 0,
            Judgement::Again => {
                reading.begins_anew = true;
                return 0;
            }
            Judgement::Stop(stop) => {
                self.stop(out, store, place, stop);
                return 0;
            }
        }
        let facts = match facts_of(&record) {
            Ok(facts) => facts,
            Err(why) => {
                self.stop(out, store, place, SourceStop::Unsendable { offset: here.offset, why });
                return 0;
            }
        };
        reading.cursor.took(here);
        match &mut reading.run {
            Some(run) if run.has_room_for(facts.bytes, self.batch_max) => run.push(record, facts),
            _ => {
                self.hand_out(out, store, place);
                if let Some(reading) = self.partitions.get_mut(place) {
                    reading.run = Some(Run::begin(record, facts));
                }
            }
        }
        (facts.bytes + RECORD_OVERHEAD).cast_signed()
    }

    fn end(
        &mut self,
        io: &mut Io,
        out: &mut LaneOut,
        store: &mut BatchStore,
        place: &SourcePartition,
        end: SourceOffset,
    ) {
        self.hand_out(out, store, place);
        let Some(reading) = self.partitions.get_mut(place).filter(|reading| !reading.begins_anew) else {
            return;
        };
        match reading.cursor.reach(end) {
            End::Beyond => out.emit(self.attempt, LaneEvent::Caught(place.clone(), end)),
            End::Here => {}
            End::Again => reading.begins_anew = true,
            End::Below => self.ask_for_ends(io, store, out, place),
        }
    }

    fn ask_for_ends(
        &mut self,
        io: &mut Io,
        store: &mut BatchStore,
        out: &mut LaneOut,
        place: &SourcePartition,
    ) {
        self.hand_out(out, store, place);
        let until = io.now + ENDS_MAX_MS;
        let mut ask = |spec| {
            let asked = [topic_partition(place)];
            Offsets::ask(&mut self.fetcher.library, asked, spec, IsolationLevel::ReadUncommitted, until)
        };
        self.out_of_range = Some(Box::new(OutOfRange {
            place: place.clone(),
            start: ask(OffsetSpec::Earliest),
            log_start: None,
            end: ask(OffsetSpec::Latest),
            log_end: None,
        }));
    }

    /// Where the position does lie in the log, reading begins there anew. Whether the ends are known.
    fn look_at_ends(&mut self, io: &mut Io, store: &mut BatchStore, out: &mut LaneOut) -> bool {
        let Some(asked) = &mut self.out_of_range else { return true };
        let only = |found: crate::client::offsets::Found| {
            found.into_values().next().and_then(Result::ok).map(|told| SourceOffset(told.offset))
        };
        if asked.log_start.is_none() {
            asked.log_start = asked.start.advance(io, &mut self.fetcher.library).map(only);
        }
        if asked.log_end.is_none() {
            asked.log_end = asked.end.advance(io, &mut self.fetcher.library).map(only);
        }
        let (Some(log_start), Some(log_end)) = (asked.log_start, asked.log_end) else { return false };
        let place = asked.place.clone();
        self.out_of_range = None;
        let Some(reading) = self.partitions.get(&place) else { return true };
        match reading.cursor.outside(log_start, log_end) {
            Outside::Again(cursor) => {
                self.assign(io, vec![cursor.position(place)]);
                self.fetcher.advance(io);
            }
            Outside::Stop(stop) => self.stop(out, store, &place, stop),
        }
        true
    }

    /// Nothing more of this partition; what came before is handed out first.
    fn stop(&mut self, out: &mut LaneOut, store: &mut BatchStore, place: &SourcePartition, stop: SourceStop) {
        if !self.partitions.contains_key(place) {
            return;
        }
        self.hand_out(out, store, place);
        self.unassign(std::slice::from_ref(place));
        out.emit(self.attempt, LaneEvent::Stopped(place.clone(), stop));
    }

    fn hand_out(&mut self, out: &mut LaneOut, store: &mut BatchStore, place: &SourcePartition) {
        let run = self.partitions.get_mut(place).and_then(|reading| reading.run.take());
        let Some(run) = run else { return };
        let id: BatchId = out.new_batch();
        let ticket = run.ticket(id, place.clone());
        store.insert(id, Held { attempt: self.attempt, partition: place.clone(), records: run.records });
        out.emit(self.attempt, LaneEvent::Fetched(ticket));
    }
}

fn topic_partition(place: &SourcePartition) -> TopicPartition {
    TopicPartition { topic: place.topic.clone(), partition: place.partition }
}

fn source_partition(place: &TopicPartition) -> SourcePartition {
    SourcePartition { topic: place.topic.clone(), partition: place.partition }
}
