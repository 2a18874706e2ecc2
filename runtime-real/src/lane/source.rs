//! The thread of a lane's source consumer.

use super::bell::Bell;
use super::emitter::Emitter;
use super::run::{Facts, Run};
use super::source_error::{Heard, hear};
use super::store::{BatchStore, Held};
use crate::ffi::admin::{Isolation, Spec, list_offsets};
use crate::ffi::{AssignedConsumer, ClientError, OwnedMessage, StartAt};
use kafka_types::{OffsetAndEpoch, Partition, SourceOffset, SourcePartition, TopicName};
use rdkafka::ClientConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::time::Duration;
use verbatim_core::Attempt;
use verbatim_core::batch::RECORD_OVERHEAD;
use verbatim_core::command::Position;
use verbatim_core::digest::{RecordHash, RecordParts};
use verbatim_core::event::{LaneEvent, SourceStop, Step};
use verbatim_core::failure::{Failure, Trouble};
use verbatim_core::source::{Cursor, End, Judgement, Outside};

pub(super) enum SourceCommand {
    Assign(Vec<Position>),
    Rewind(Vec<Position>),
    Unassign(Vec<SourcePartition>),
    Credit { bytes: u64, batch_max: u64 },
}

/// Most messages taken in one go.
const BURST_MAX: usize = 1_000;
/// How far beyond the credit a burst may go on purpose.
const OVERDRAFT: u64 = 64 << 10;

/// The sending end: commands for the consumer's thread, which ends when this is dropped.
pub(super) struct Source {
    commands: Sender<(Attempt, SourceCommand)>,
    bell: Bell,
}

impl Source {
    pub(super) fn start(
        emitter: &Emitter,
        attempt: Attempt,
        store: Arc<BatchStore>,
        config: ClientConfig,
    ) -> Source {
        let (sender, commands) = channel();
        let bell = Bell::default();
        let (emits, rings) = (emitter.clone(), bell.clone());
        emitter.spawn(attempt, Step::Assign, "source", move || {
            match AssignedConsumer::new(&config, emits.liveness()) {
                Ok(consumer) => {
                    let _hung = rings.hang(consumer.waker());
                    Reader::new(consumer, emits, store, attempt).run(&commands);
                }
                Err(error) => {
                    let trouble = Trouble::Refused(error.to_string());
                    emits.failed(attempt, Step::Assign, Failure::Fatal(trouble));
                }
            }
        });
        Source { commands: sender, bell }
    }

    pub(super) fn send(&self, attempt: Attempt, command: SourceCommand) {
        // A thread that has ended has said why.
        let _ = self.commands.send((attempt, command));
        self.wake();
    }

    #[cfg(test)]
    pub(super) fn is_reading(&self) -> bool {
        self.bell.is_hung()
    }

    /// So that the thread looks at once whether there is a command, or whether its lane is abandoned.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }
}

/// A partition being read.
struct Reading {
    cursor: Cursor,
    /// What of it still comes in this burst belongs to a reading that is over.
    begins_anew: bool,
    /// What this burst has brought so far.
    run: Option<Run<OwnedMessage>>,
}

struct Reader {
    consumer: AssignedConsumer,
    emitter: Emitter,
    store: Arc<BatchStore>,
    attempt: Attempt,
    partitions: BTreeMap<SourcePartition, Reading>,
    /// How many bytes may still be brought; below zero when a burst went beyond.
    credit: i64,
    /// Most records of one batch.
    batch_max: usize,
    /// The mean size of what came last.
    message_bytes: u64,
}

impl Reader {
    fn new(consumer: AssignedConsumer, emitter: Emitter, store: Arc<BatchStore>, attempt: Attempt) -> Reader {
        let (partitions, batch_max, message_bytes) = (BTreeMap::new(), usize::MAX, 1024);
        Reader { consumer, emitter, store, attempt, partitions, credit: 0, batch_max, message_bytes }
    }

    /// Until the lane lets go of it.
    fn run(&mut self, commands: &Receiver<(Attempt, SourceCommand)>) {
        loop {
            // Without credit nothing is polled, the queue fills up, and librdkafka stops fetching.
            let idle = self.credit <= 0 || self.partitions.is_empty();
            let command = match idle {
                true => commands.recv().map_err(|RecvError| TryRecvError::Disconnected),
                false => commands.try_recv(),
            };
            match command {
                Ok((attempt, command)) => self.obey(attempt, command),
                Err(TryRecvError::Empty) => self.read(),
                Err(TryRecvError::Disconnected) => return,
            }
            if self.emitter.is_abandoned() {
                return;
            }
        }
    }

    fn obey(&mut self, attempt: Attempt, command: SourceCommand) {
        self.attempt = attempt;
        match command {
            SourceCommand::Credit { bytes, batch_max } => {
                self.credit = self.credit.saturating_add_unsigned(bytes);
                self.batch_max = usize::try_from(batch_max).unwrap_or(usize::MAX);
            }
            SourceCommand::Unassign(partitions) => {
                self.unassign(&partitions);
                self.store.drop_partitions(&partitions);
            }
            SourceCommand::Assign(positions) => self.assign(positions),
            SourceCommand::Rewind(positions) => {
                let all: Vec<_> = self.partitions.keys().cloned().collect();
                self.unassign(&all);
                self.store.drop_older_than(attempt);
                self.credit = 0;
                self.assign(positions);
            }
        }
    }

    fn assign(&mut self, positions: Vec<Position>) {
        let again: Vec<_> = positions.iter().map(|position| position.partition.clone()).collect();
        self.unassign(&again);
        let checkable =
            positions.iter().filter(|position| position.last.is_some_and(|last| last.epoch.is_some()));
        let assigned = self.consumer.assign(positions.iter().map(start_at));
        let checked = assigned.and_then(|()| self.consumer.check_epochs(checkable.map(start_at)));
        if let Err(error) = checked {
            self.emitter.failed(self.attempt, Step::Assign, Failure::Retry(error.to_string()));
            return;
        }
        for position in positions {
            let cursor = Cursor::new(&position);
            self.partitions.insert(position.partition, Reading { cursor, begins_anew: false, run: None });
        }
    }

    /// Of these, those that are being read.
    fn unassign(&mut self, partitions: &[SourcePartition]) {
        let read: Vec<_> =
            partitions.iter().filter(|partition| self.partitions.remove(partition).is_some()).collect();
        if read.is_empty() {
            return;
        }
        let names = read.iter().map(|partition| (partition.topic.as_str(), partition.partition.0));
        if let Err(error) = self.consumer.unassign(names) {
            // What still comes of them is dropped, since they are no longer in `partitions`.
            tracing::warn!(%error, "could not unassign");
        }
    }

    /// One burst: polls, cuts, hands out.
    fn read(&mut self) {
        // A little beyond the credit, lest its last bytes trickle in as batches of a record each.
        let affordable = u64::try_from(self.credit).unwrap_or(0).max(OVERDRAFT) / self.message_bytes;
        let count = usize::try_from(affordable).unwrap_or(BURST_MAX).clamp(1, BURST_MAX);
        let messages = self.consumer.poll(count, Duration::from_secs(1));
        // Neighbours are of one partition more often than not: its name is looked up once for each stretch.
        let stretches = messages.chunk_by(OwnedMessage::is_beside);
        let stretches: Vec<_> = stretches.map(|stretch| (place_of(&stretch[0]), stretch.len())).collect();
        let mut messages = messages.into_iter();
        let (mut records, mut bytes) = (0, 0);
        for (place, count) in stretches {
            for message in messages.by_ref().take(count) {
                if let Some(size) = self.take(place.as_ref(), message) {
                    (records, bytes) = (records + 1, bytes + size);
                }
            }
        }
        let brought = self.partitions.iter().filter(|(_, reading)| reading.run.is_some());
        for partition in brought.map(|(partition, _)| partition.clone()).collect::<Vec<_>>() {
            self.hand_out(&partition);
        }
        self.begin_anew();
        self.credit = self.credit.saturating_sub_unsigned(bytes);
        if let Some(mean) = bytes.checked_div(records) {
            self.message_bytes = mean;
        }
    }

    /// Takes one message in; what the record it brought weighs, if it did.
    fn take(&mut self, place: Option<&SourcePartition>, message: OwnedMessage) -> Option<u64> {
        let error = message.error();
        let Some(reading) = place.and_then(|place| self.partitions.get_mut(place)) else {
            // Of the client as a whole, or of a partition that is no longer read.
            if let Some(error) = error {
                tracing::debug!(lane = %self.emitter.lane(), %error, "source consumer");
            }
            return None;
        };
        let place = place.expect("there is a reading for it");
        if reading.begins_anew {
            return None;
        }
        if let Some(error) = error {
            let heard = hear(&error, message.offset(), reading.cursor.next());
            self.heard(place, heard, &error);
            return None;
        }
        let here = message.place();
        match reading.cursor.judge(here) {
            Judgement::Take => {}
            Judgement::Pass => return None,
            Judgement::Again => {
                reading.begins_anew = true;
                return None;
            }
            Judgement::Stop(stop) => {
                self.stop(place, stop);
                return None;
            }
        }
        let facts = match facts_of(&message, here) {
            Ok(facts) => facts,
            Err(why) => {
                self.stop(place, SourceStop::Unsendable { offset: here.offset, why });
                return None;
            }
        };
        reading.cursor.took(here);
        match &mut reading.run {
            Some(run) if run.has_room_for(facts.bytes, self.batch_max) => run.push(message, facts),
            _ => {
                self.hand_out(place);
                let reading = self.partitions.get_mut(place).expect("it is being read");
                reading.run = Some(Run::begin(message, facts));
            }
        }
        Some(facts.bytes + RECORD_OVERHEAD)
    }

    fn heard(&mut self, place: &SourcePartition, heard: Heard, error: &ClientError) {
        match heard {
            Heard::End(end) => {
                self.hand_out(place);
                let reading = self.partitions.get_mut(place).expect("it is being read");
                match reading.cursor.reach(end) {
                    End::Beyond => self.emitter.emit(self.attempt, LaneEvent::Caught(place.clone(), end)),
                    End::Here => {}
                    End::Again => reading.begins_anew = true,
                    End::Below => self.out_of_range(place),
                }
            }
            Heard::OutOfRange => self.out_of_range(place),
            Heard::Stop(stop) => self.stop(place, stop),
            Heard::Passing => tracing::warn!(%place, %error, "source partition"),
        }
    }

    /// Those whose last record was not where it was: by now nothing of the reading that is over is left.
    fn begin_anew(&mut self) {
        let again = self.partitions.iter().filter(|(_, reading)| reading.begins_anew);
        let again: Vec<_> = again.map(|(place, reading)| reading.cursor.position(place.clone())).collect();
        if !again.is_empty() {
            self.assign(again);
        }
    }

    fn out_of_range(&mut self, place: &SourcePartition) {
        self.hand_out(place);
        let cursor = self.partitions[place].cursor;
        let (log_start, log_end) = (self.end_of(place, Spec::Earliest), self.end_of(place, Spec::Latest));
        match cursor.outside(log_start, log_end) {
            Outside::Again(cursor) => {
                let position = cursor.next();
                tracing::warn!(%place, %position, "out of range, yet within the log: reading on from there");
                self.assign(vec![cursor.position(place.clone())]);
            }
            Outside::Stop(stop) => self.stop(place, stop),
        }
    }

    fn end_of(&self, place: &SourcePartition, end: Spec) -> Option<SourceOffset> {
        let (place, timeout) = ((place.topic.clone(), place.partition), Duration::from_secs(3));
        let answer =
            list_offsets(&**self.consumer.client(), [&place], end, Isolation::ReadUncommitted, timeout);
        let told = answer.ok()?.into_values().next()?.ok()??;
        Some(SourceOffset(told.offset))
    }

    /// Nothing more of this partition; what came before is handed out first.
    fn stop(&mut self, place: &SourcePartition, stop: SourceStop) {
        self.hand_out(place);
        self.unassign(std::slice::from_ref(place));
        self.emitter.emit(self.attempt, LaneEvent::Stopped(place.clone(), stop));
    }

    /// Makes a batch of what this burst has brought of a partition so far.
    fn hand_out(&mut self, place: &SourcePartition) {
        let run = self.partitions.get_mut(place).and_then(|reading| reading.run.take());
        let Some(run) = run else { return };
        let id = self.store.new_id();
        let ticket = run.ticket(id, place.clone());
        let (attempt, bytes) = (self.attempt, ticket.bytes);
        let held = Held { attempt, partition: place.clone(), records: run.records, bytes };
        self.store.insert(id, held);
        self.emitter.emit(self.attempt, LaneEvent::Fetched(ticket));
    }
}

/// From the last record on, whose epoch is known, over whatever markers lie between it and the position.
fn start_at(position: &Position) -> StartAt<'_> {
    let OffsetAndEpoch { offset, epoch } = position.beginning();
    StartAt {
        topic: position.partition.topic.as_str(),
        partition: position.partition.partition.0,
        offset: offset.0,
        epoch: epoch.map_or(-1, |epoch| epoch.0),
    }
}

fn place_of(message: &OwnedMessage) -> Option<SourcePartition> {
    let topic = TopicName::from(message.topic()?);
    Some(SourcePartition { topic, partition: Partition(message.partition()) })
}

/// What the core must know of a record, or why it cannot be sent as it is.
fn facts_of(message: &OwnedMessage, here: OffsetAndEpoch) -> Result<Facts, String> {
    let timestamp = message.timestamp();
    if timestamp == 0 {
        return Err("its timestamp is 0, which the client library would replace by the present time".into());
    }
    let mut header_bytes = 0;
    let headers = message.headers().map_err(|error| format!("its headers cannot be read: {error}"))?;
    let headers = headers.inspect(|(name, value)| header_bytes += name.len() + value.map_or(0, <[u8]>::len));
    let (key, value) = (message.key(), message.value());
    let hash = RecordHash::of(RecordParts { key, value, headers, timestamp });
    let length = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    Ok(Facts {
        offset: here.offset,
        epoch: here.epoch,
        timestamp,
        bytes: (length(key) + length(value) + header_bytes) as u64,
        hash,
    })
}
