use super::clusters::{Clusters, Producer, Side};
use bytes::Bytes;
use kafka_types::{Header, Record, TopicId, TopicPartition, TransactionResult};
use serde_json::json;

/// How a copier of a few lines goes wrong, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    Correct,
    SkipsARecord,
    RepeatsARecord,
    SwapsTwoRecords,
    ChangesAValue,
    DropsAKey,
    DropsHeaders,
    ChangesATimestamp,
    CopiesAborted,
    WrongPartition,
    ForgetsTheEntry,
    /// The position says what is still to be sent: KIP-3's own bug.
    PositionAhead,
    PositionBehind,
    PassesOverAGap,
    WrongOffsetMap,
    FalseHalt,
    ClaimsNothing,
    PassesAnOpenTransaction,
}

/// Copies one partition in transactions of a few records, over raw requests.
pub struct Copier {
    pub habit: Habit,
    producer: Producer,
    tp: TopicPartition,
    pub source_id: TopicId,
    next: i64,
    records: u64,
    target_end: i64,
    pub target_id: TopicId,
}

const LEDGER: &str = "verbatim.sim.ledger.internal";

impl Copier {
    pub fn new(clusters: &mut Clusters, habit: Habit, tp: TopicPartition) -> Copier {
        let producer = clusters.init(Side::Target, "verbatim-sim-0");
        let source_id = clusters.topic_id(Side::Source, tp.topic.as_str());
        let target_id = clusters.topic_id(Side::Target, tp.topic.as_str());
        let mut copier =
            Copier { habit, producer, tp, source_id, next: 0, records: 0, target_end: 0, target_id };
        if habit != Habit::ClaimsNothing {
            copier.claim(clusters);
        }
        copier
    }

    fn claim(&mut self, clusters: &mut Clusters) {
        let value = json!({"version": 1, "incarnation": "i-1", "attempt": 1, "lanes": 1});
        let ledger = TopicPartition::new(LEDGER, 0);
        clusters.send(
            Side::Target,
            &mut self.producer,
            &ledger,
            vec![note(&json!({"kind": "claim"}), &value)],
        );
        clusters.end(Side::Target, &self.producer, TransactionResult::Commit);
    }

    /// Copies up to `count` records in one transaction.
    pub fn copy(&mut self, clusters: &mut Clusters, count: usize) {
        self.copy_and(clusters, count, |_, _, _| {});
    }

    /// As `copy`; something happens before the commit, which is given what was sent.
    pub fn copy_and(
        &mut self,
        clusters: &mut Clusters,
        count: usize,
        before_commit: impl FnOnce(&mut Clusters, &mut Producer, &[Record]),
    ) {
        let mut found = if self.habit == Habit::CopiesAborted {
            everything(clusters, &self.tp, self.next)
        } else {
            clusters.committed(Side::Source, &self.tp, self.next)
        };
        found.truncate(count);
        let Some((last, _)) = found.last() else { return };
        let mut next = last + 1;
        let source_first = found[0].0;
        let mut copies: Vec<Record> = found.into_iter().map(|(_, record)| record).collect();
        self.spoil(&mut copies);
        let mut target = self.tp.clone();
        if self.habit == Habit::WrongPartition {
            target.partition = kafka_types::Partition(1);
        }
        let sent = copies.len();
        let first = clusters.cluster(Side::Target).partition_view(&target).expect("it exists").log_end_offset;
        if !copies.is_empty() {
            clusters.send(Side::Target, &mut self.producer, &target, copies.clone());
        }
        match self.habit {
            Habit::PositionBehind => next -= 1,
            Habit::PassesAnOpenTransaction => next = clusters.last_stable(Side::Source, &self.tp) + 1,
            _ => {}
        }
        self.next = next;
        self.records += sent as u64;
        self.target_end = first + sent as i64;
        if self.habit != Habit::ForgetsTheEntry {
            let shift = i64::from(self.habit == Habit::WrongOffsetMap);
            let run = json!({
                "source_first": source_first, "target_first": first + shift, "target_last": self.target_end - 1,
            });
            self.settle(clusters, &run, &json!(null));
        }
        before_commit(clusters, &mut self.producer, &copies);
        clusters.end(Side::Target, &self.producer, TransactionResult::Commit);
    }

    /// Says where copying starts, with the first settlement of the flow or without.
    pub fn pin(&mut self, clusters: &mut Clusters, starts: &[i64], is_flow_start: bool) {
        let starts: Vec<_> = starts.iter().map(|offset| json!({"offset": offset, "epoch": 0})).collect();
        let key = json!({"kind": "topic", "topic": self.tp.topic.as_str()});
        let value = json!({"source_id": self.source_id.to_string(), "starts": starts, "target": null});
        let mut notes = vec![note(&key, &value)];
        if is_flow_start {
            notes.insert(0, note(&json!({"kind": "flow-start"}), &json!({"at": 0})));
        }
        clusters.send(Side::Target, &mut self.producer, &TopicPartition::new(LEDGER, 0), notes);
        clusters.end(Side::Target, &self.producer, TransactionResult::Commit);
    }

    pub fn halt(&mut self, clusters: &mut Clusters, reason: &str, detail: &str) {
        let halt = json!({"reason": reason, "offset": self.next, "detail": detail, "at": 0});
        self.settle(clusters, &json!(null), &halt);
        clusters.end(Side::Target, &self.producer, TransactionResult::Commit);
    }

    /// As when a lane that was taken again finds that what halted it is over.
    pub fn settle_nothing(&mut self, clusters: &mut Clusters) {
        self.settle(clusters, &json!(null), &json!(null));
        clusters.end(Side::Target, &self.producer, TransactionResult::Commit);
    }

    fn settle(&mut self, clusters: &mut Clusters, run: &serde_json::Value, halted: &serde_json::Value) {
        let topic = self.tp.topic.as_str().to_owned();
        let key = json!({"kind": "entry", "topic": topic, "partition": self.tp.partition.0});
        let value = json!({
            "version": 1, "next": self.next, "epoch": 0, "start": 0,
            "source_id": self.source_id.to_string(),
            "target_topic": topic,
            "target_id": self.target_id.to_string(),
            "target_start": 0, "run": run, "target_end": self.target_end, "records": self.records,
            "bytes": 0, "digest": "0:0", "timestamp": null, "settled_at": 0, "halted": halted,
        });
        let ledger = TopicPartition::new(LEDGER, 0);
        clusters.send(Side::Target, &mut self.producer, &ledger, vec![note(&key, &value)]);
    }

    fn spoil(&self, copies: &mut Vec<Record>) {
        let last = copies.len() - 1;
        match self.habit {
            Habit::SkipsARecord => {
                copies.remove(0);
            }
            Habit::PositionAhead => {
                copies.pop();
            }
            Habit::RepeatsARecord => copies.push(copies[last].clone()),
            Habit::SwapsTwoRecords => copies.swap(0, last),
            Habit::ChangesAValue => copies[0].value = Some(Bytes::from_static(b"changed")),
            Habit::DropsAKey => copies[0].key = None,
            Habit::DropsHeaders => copies[0].headers = Vec::<Header>::new().into(),
            Habit::ChangesATimestamp => copies[0].timestamp += 1,
            Habit::Correct
            | Habit::CopiesAborted
            | Habit::WrongPartition
            | Habit::ForgetsTheEntry
            | Habit::PositionBehind
            | Habit::PassesOverAGap
            | Habit::WrongOffsetMap
            | Habit::FalseHalt
            | Habit::ClaimsNothing
            | Habit::PassesAnOpenTransaction => {}
        }
    }
}

fn note(key: &serde_json::Value, value: &serde_json::Value) -> Record {
    Record::new(0, Some(Bytes::from(key.to_string())), Some(Bytes::from(value.to_string())))
}

/// As a reader of uncommitted records sees it.
fn everything(clusters: &mut Clusters, tp: &TopicPartition, from: i64) -> Vec<(i64, Record)> {
    let batches = clusters.cluster(Side::Source).fates(tp, from);
    let mut found = Vec::new();
    for (batch, _) in batches {
        found.extend(batch.records.iter().map(|record| (batch.offset_of(record), record.clone())));
    }
    found.retain(|(offset, _)| from <= *offset);
    found
}
