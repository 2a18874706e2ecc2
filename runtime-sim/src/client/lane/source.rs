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
    /// The next offset to hand out.
    next: SourceOffset,
    last: Option<OffsetAndEpoch>,
    stop_before: Option<OffsetAndEpoch>,
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
        for Position { partition, offset, last, stop_before } in positions {
            self.unassign(std::slice::from_ref(&partition));
            // From the last record on, whose epoch is known, over whatever markers lie between it and the position.
            let checked = last.filter(|_| !io.mutants.start_without_epoch);
            let from = checked.map_or(offset, |last| last.offset.min(offset));
            let epoch = checked.and_then(|last| last.epoch);
            self.fetcher.assign([Start { partition: topic_partition(&partition), offset: from.0, epoch }]);
            self.partitions.insert(partition, Reading { next: offset, last, stop_before, run: None });
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
                    self.end(out, store, &source_partition(&partition), SourceOffset(end));
                }
                Read::OutOfRange(partition) => {
                    self.ask_for_ends(io, store, out, &source_partition(&partition))
                }
                Read::Truncated(partition, end) => {
                    let place = source_partition(&partition);
                    let Some(position) = self.partitions.get(&place).map(|reading| reading.next) else {
                        continue;
                    };
                    let diverges_at = end.map(SourceOffset);
                    self.stop(out, store, &place, SourceStop::Truncated { position, diverges_at });
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
        let offset = SourceOffset(record.offset);
        if offset < reading.next && reading.last.is_some_and(|last| last.offset <= offset) {
            // There was none when the position was settled: what stood here was cut off and written anew.
            let position = reading.next;
            self.stop(out, store, place, SourceStop::Truncated { position, diverges_at: Some(offset) });
            return 0;
        }
        if offset < reading.next {
            return 0;
        }
        if reading.stop_before.is_some_and(|stop| stop.is_of(record.place())) {
            self.stop(out, store, place, SourceStop::AtRefused { offset });
            return 0;
        }
        let facts = match facts_of(&record) {
            Ok(facts) => facts,
            Err(why) => {
                self.stop(out, store, place, SourceStop::Unsendable { offset, why });
                return 0;
            }
        };
        reading.next = offset.next();
        let last = record.epoch.map(|epoch| OffsetAndEpoch { offset: offset.next(), epoch: Some(epoch) });
        reading.last = last.or(reading.last);
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

    fn end(&mut self, out: &mut LaneOut, store: &mut BatchStore, place: &SourcePartition, end: SourceOffset) {
        self.hand_out(out, store, place);
        let Some(reading) = self.partitions.get_mut(place) else { return };
        if reading.next < end {
            reading.next = end;
            out.emit(self.attempt, LaneEvent::Caught(place.clone(), end));
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
        let (position, last, stop_before) = (reading.next, reading.last, reading.stop_before);
        let is_within =
            log_start.is_some_and(|start| start <= position) && log_end.is_some_and(|end| position <= end);
        if is_within {
            // What retention has taken cannot be checked any more.
            let last = last.filter(|last| log_start.is_some_and(|start| start <= last.offset));
            self.assign(io, vec![Position { partition: place, offset: position, last, stop_before }]);
            self.fetcher.advance(io);
        } else {
            self.stop(out, store, &place, SourceStop::OutOfRange { position, log_start, log_end });
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
