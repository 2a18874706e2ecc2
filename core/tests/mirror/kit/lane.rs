use super::clusters::{Clusters, Record, Slot, State};
use kafka_types::{
    LeaderEpoch, OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition,
};
use std::collections::{BTreeMap, VecDeque};
use verbatim_core::batch::{Acknowledged, Batch, BatchId, TargetRun};
use verbatim_core::command::{LaneCommand, Position, PrepareFrom};
use verbatim_core::digest::Digest;
use verbatim_core::event::{LaneEvent, Refused, SourceStop, Step, TargetState};
use verbatim_core::failure::{Failure, Refusal};
use verbatim_core::ledger::{Record as LedgerKind, decode};
use verbatim_core::time::Timestamp;
use verbatim_core::{Attempt, LaneId};

/// A lane's two clients: a transactional producer and a source consumer, each with its own queue of commands.
#[derive(Debug)]
pub struct LaneSim {
    id: LaneId,
    epoch: u64,
    pub producer: VecDeque<(Attempt, LaneCommand)>,
    pub reader: VecDeque<(Attempt, LaneCommand)>,
    pub events: [VecDeque<(Attempt, LaneEvent)>; 2],
    attempt: Attempt,
    pub credit: i64,
    batch_max: usize,
    reading: BTreeMap<SourcePartition, Reading>,
    batches: BTreeMap<BatchId, Held>,
    pub positions: Vec<Position>,
}

/// A batch's partition, the attempt it was fetched under, and its records with their offsets.
type Held = (SourcePartition, Attempt, Vec<(i64, Record)>);

#[derive(Debug)]
struct Reading {
    next: i64,
    caught: i64,
    stop_before: Option<i64>,
    stopped: bool,
}

/// Which of a lane's clients carries out a command.
pub fn is_for_reader(command: &LaneCommand) -> bool {
    matches!(
        command,
        LaneCommand::Assign { .. }
            | LaneCommand::Rewind { .. }
            | LaneCommand::Unassign { .. }
            | LaneCommand::Credit { .. }
    )
}

impl LaneSim {
    pub fn new(id: LaneId) -> LaneSim {
        LaneSim {
            id,
            epoch: 0,
            producer: VecDeque::new(),
            reader: VecDeque::new(),
            events: [VecDeque::new(), VecDeque::new()],
            attempt: Attempt::default(),
            credit: 0,
            batch_max: usize::MAX,
            reading: BTreeMap::new(),
            batches: BTreeMap::new(),
            positions: Vec::new(),
        }
    }

    /// Bytes that are held and not yet acknowledged.
    pub fn held(&self) -> u64 {
        self.batches.values().flat_map(|(_, _, records)| records).map(|(_, record)| record.bytes).sum()
    }

    pub fn submit(&mut self, attempt: Attempt, command: LaneCommand) {
        if matches!(command, LaneCommand::Open | LaneCommand::Close) {
            self.reader.clear();
            self.producer.clear();
            self.reading.clear();
            self.batches.clear();
            self.credit = 0;
        }
        if is_for_reader(&command) {
            self.reader.push_back((attempt, command));
        } else {
            self.producer.push_back((attempt, command));
        }
    }

    /// Carries out one command of the producer; its outcome.
    pub fn produce(
        &mut self,
        clusters: &mut Clusters,
        attempt: Attempt,
        command: LaneCommand,
    ) -> Vec<(Attempt, LaneEvent)> {
        let fenced = || Failure::Fenced("a newer producer".into());
        let is_fenced = clusters.epochs.get(&self.id) != Some(&self.epoch);
        let event = match command {
            LaneCommand::Open => {
                self.epoch = clusters.fence(self.id);
                LaneEvent::Opened
            }
            LaneCommand::Settle { .. } if is_fenced => LaneEvent::Failed(Step::Settle, fenced()),
            LaneCommand::Abort if is_fenced => LaneEvent::Failed(Step::Abort, fenced()),
            LaneCommand::Settle { records } => {
                assert!(!records.is_empty(), "an empty transaction is committed");
                let last = clusters.write_ledger(self.id, records);
                clusters.end_transaction(self.id, State::Committed);
                LaneEvent::Settled { last }
            }
            LaneCommand::Abort => {
                clusters.end_transaction(self.id, State::Aborted);
                LaneEvent::Aborted
            }
            LaneCommand::Replay { until } => {
                let all = clusters.ledger.get(&self.id).cloned().unwrap_or_default();
                let records = all.into_iter().take_while(|record| record.offset <= until).collect();
                LaneEvent::Replayed { log_start: TargetOffset::ZERO, records }
            }
            LaneCommand::ReadClaims => {
                let all = clusters.ledger.get(&self.id).cloned().unwrap_or_default();
                let is_claim = |record: &_| matches!(decode(record), Ok(LedgerKind::Claim(_)));
                LaneEvent::Claims(all.into_iter().filter(is_claim).collect())
            }
            LaneCommand::Prepare { targets } => {
                let state = |(target, from)| {
                    let state = state_of(clusters, &target, from);
                    (target, state.ok_or(Failure::Retry("unknown partition".into())))
                };
                LaneEvent::Prepared(targets.into_iter().map(state).collect())
            }
            LaneCommand::Produce { batch, .. } if is_fenced => {
                let refusal = Refusal::Collateral(fenced());
                LaneEvent::Acked(batch, Err(Refused { refusal, record: None }))
            }
            LaneCommand::Produce { batch, target, alone } => {
                LaneEvent::Acked(batch, self.send(clusters, batch, &target, alone))
            }
            LaneCommand::Close => LaneEvent::Closed,
            other => panic!("not the producer's: {other:?}"),
        };
        vec![(attempt, event)]
    }

    fn send(
        &mut self,
        clusters: &mut Clusters,
        batch: BatchId,
        target: &TargetPartition,
        alone: bool,
    ) -> Result<Acknowledged, Refused> {
        let Some((_, _, records)) = self.batches.remove(&batch) else {
            return Ok(Acknowledged { accepted: 0, acknowledged: 0, run: None });
        };
        let limit =
            clusters.target.get(&target.topic).and_then(|topic| topic.config.get("max.message.bytes"));
        let limit: u64 = limit.map_or(u64::MAX, |limit| limit.parse().expect("a number"));
        let lane = self.id;
        let log = clusters.target_log(target).expect("the producer was made to know the partition");
        let first = TargetOffset(log.len() as i64);
        let refusal = || Refusal::TooLarge("the request is too large".into());
        if !alone && limit < records.iter().map(|(_, record)| record.bytes).sum() {
            return Err(Refused { refusal: refusal(), record: None });
        }
        let count = records.len() as u64;
        for (offset, record) in records {
            if limit < record.bytes {
                return Err(Refused {
                    refusal: refusal(),
                    record: Some(OffsetAndEpoch {
                        offset: SourceOffset(offset),
                        epoch: Some(LeaderEpoch(3)),
                    }),
                });
            }
            log.push(Slot { record: Some(record), lane: Some(lane), state: State::Pending });
        }
        let run = TargetRun { first, last: TargetOffset(log.len() as i64 - 1) };
        Ok(Acknowledged { accepted: count, acknowledged: count, run: Some(run) })
    }

    /// Carries out one command of the consumer.
    pub fn obey(&mut self, attempt: Attempt, command: LaneCommand) {
        self.attempt = attempt;
        match command {
            LaneCommand::Credit { bytes, batch_max } => {
                self.credit += bytes as i64;
                self.batch_max = batch_max as usize;
            }
            LaneCommand::Assign { positions } => self.assign(positions),
            LaneCommand::Rewind { positions } => {
                self.reading.clear();
                self.batches.retain(|_, (_, of, _)| attempt <= *of);
                self.credit = 0;
                self.assign(positions);
            }
            LaneCommand::Unassign { partitions } => {
                self.reading.retain(|partition, _| !partitions.contains(partition));
                self.batches.retain(|_, (partition, ..)| !partitions.contains(partition));
            }
            other => panic!("not the reader's: {other:?}"),
        }
    }

    fn assign(&mut self, positions: Vec<Position>) {
        for position in positions {
            let reading = Reading {
                next: position.offset.0,
                caught: position.offset.0,
                stop_before: position.stop_before.map(|record| record.offset.0),
                stopped: false,
            };
            self.reading.insert(position.partition.clone(), reading);
            self.positions.push(position);
        }
    }

    /// Reads one thing from the source, if there is one and credit for it.
    pub fn fetch(
        &mut self,
        clusters: &Clusters,
        ids: &mut u64,
        records_max: usize,
    ) -> Option<(Attempt, LaneEvent)> {
        if self.credit <= 0 {
            return None;
        }
        for (partition, reading) in &mut self.reading {
            if reading.stopped {
                continue;
            }
            let stopped = |stop| LaneEvent::Stopped(partition.clone(), stop);
            let topic = clusters.source.get(&partition.topic);
            let Some(log) = topic.and_then(|topic| topic.logs.get(partition.partition.index())) else {
                reading.stopped = true;
                return Some((self.attempt, stopped(SourceStop::Gone)));
            };
            if reading.next < log.start || log.end() < reading.next {
                reading.stopped = true;
                let stop = SourceStop::OutOfRange {
                    position: SourceOffset(reading.next),
                    log_start: Some(SourceOffset(log.start)),
                    log_end: Some(SourceOffset(log.end())),
                };
                return Some((self.attempt, stopped(stop)));
            }
            let end = reading.stop_before.map_or(log.stable(), |stop| stop.min(log.stable()));
            let mut records = Vec::new();
            while reading.next < end && records.len() < records_max.min(self.batch_max) {
                let offset = reading.next;
                reading.next += 1;
                records.extend(log.slots[offset as usize].map(|record| (offset, record)));
            }
            if !records.is_empty() {
                *ids += 1;
                let batch = ticket(BatchId(*ids), partition, &records, clusters);
                reading.next = batch.next.0;
                reading.caught = batch.next.0;
                self.credit -= batch.weight() as i64;
                self.batches.insert(batch.id, (partition.clone(), self.attempt, records));
                return Some((self.attempt, LaneEvent::Fetched(batch)));
            }
            let ordered = reading.stop_before == Some(reading.next);
            if reading.caught < reading.next || ordered {
                reading.caught = reading.next;
                reading.stopped = ordered;
                let offset = SourceOffset(reading.next);
                let caught = || LaneEvent::Caught(partition.clone(), offset);
                let refused = || LaneEvent::Stopped(partition.clone(), SourceStop::AtRefused { offset });
                return Some((self.attempt, if ordered { refused() } else { caught() }));
            }
        }
        None
    }
}

fn ticket(id: BatchId, partition: &SourcePartition, records: &[(i64, Record)], clusters: &Clusters) -> Batch {
    let (first, last) = (records[0], records[records.len() - 1]);
    Batch {
        id,
        partition: partition.clone(),
        first: SourceOffset(first.0),
        next: SourceOffset(last.0 + 1),
        epoch: Some(clusters.epoch_at(partition)),
        records: records.len() as u64,
        bytes: records.iter().map(|(_, record)| record.bytes).sum(),
        digest: records.iter().fold(Digest::EMPTY, |digest, (_, record)| digest.push(record.hash())),
        timestamp: Timestamp(last.1.time),
    }
}

fn state_of(clusters: &Clusters, target: &TargetPartition, from: PrepareFrom) -> Option<TargetState> {
    let log = clusters.target.get(&target.topic)?.logs.get(target.partition.index())?;
    let stray = match from {
        PrepareFrom::Nowhere => None,
        PrepareFrom::Offset(from) => (from.0.max(0) as usize..log.len())
            .find(|at| log[*at].record.is_some() && log[*at].state == State::Committed)
            .map(|at| TargetOffset(at as i64)),
    };
    let high_watermark = TargetOffset(log.len() as i64);
    Some(TargetState { log_start: TargetOffset::ZERO, high_watermark, stray })
}
