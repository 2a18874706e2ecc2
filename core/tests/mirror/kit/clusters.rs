use kafka_types::{LeaderEpoch, SourcePartition, TargetOffset, TargetPartition, TopicId, TopicName};
use std::collections::BTreeMap;
use verbatim_core::LaneId;
use verbatim_core::command::{NewLedgerRecord, NewTopic};
use verbatim_core::digest::{RecordHash, RecordParts};
use verbatim_core::event::LedgerRecord;

/// A source record: its content is its origin, so any loss, repeat or swap shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub origin: u64,
    pub bytes: u64,
    pub time: i64,
}

impl Record {
    pub fn hash(&self) -> RecordHash {
        RecordHash::of(RecordParts {
            key: None,
            value: Some(&self.origin.to_le_bytes()),
            headers: std::iter::empty(),
            timestamp: self.time,
        })
    }
}

#[derive(Clone, Debug)]
pub struct SourceTopic {
    pub id: TopicId,
    /// Each slot a record, or a hole that markers and compaction left.
    pub logs: Vec<SourceLog>,
}

#[derive(Clone, Debug, Default)]
pub struct SourceLog {
    pub start: i64,
    pub slots: Vec<Option<Record>>,
    /// Where a transaction is open, its first offset.
    pub open_from: Option<i64>,
}

impl SourceLog {
    pub fn end(&self) -> i64 {
        self.slots.len() as i64
    }

    pub fn stable(&self) -> i64 {
        self.open_from.unwrap_or(self.end())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Committed,
    Aborted,
}

/// A slot of a target partition.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Absent for a marker.
    pub record: Option<Record>,
    pub lane: Option<LaneId>,
    pub state: State,
}

#[derive(Clone, Debug)]
pub struct TargetTopic {
    pub id: TopicId,
    pub config: BTreeMap<String, String>,
    pub logs: Vec<Vec<Slot>>,
}

/// All that survives a process.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    pub source_id: String,
    pub source: BTreeMap<TopicName, SourceTopic>,
    pub target: BTreeMap<TopicName, TargetTopic>,
    pub ledger: BTreeMap<LaneId, Vec<LedgerRecord>>,
    /// Who may produce under each lane's transactional id: the latest to have initialised it.
    pub epochs: BTreeMap<LaneId, u64>,
    /// Of whoever leads the source's partitions now.
    pub leader_epoch: i32,
    ids: u128,
    origins: u64,
}

impl Clusters {
    pub fn new() -> Clusters {
        Clusters { source_id: "source".into(), leader_epoch: 3, ..Clusters::default() }
    }

    fn next_id(&mut self) -> TopicId {
        self.ids += 1;
        TopicId(self.ids)
    }

    /// Makes a source topic, or makes it anew.
    pub fn source_topic(&mut self, name: &str, partitions: usize) {
        let id = self.next_id();
        self.source.insert(name.into(), SourceTopic { id, logs: vec![SourceLog::default(); partitions] });
    }

    pub fn log(&mut self, topic: &str, partition: i32) -> &mut SourceLog {
        let topic = self.source.get_mut(&TopicName::from(topic)).expect("a source topic");
        &mut topic.logs[partition as usize]
    }

    /// Appends records of 100 bytes.
    pub fn append(&mut self, topic: &str, partition: i32, count: usize) {
        for _ in 0..count {
            self.append_sized(topic, partition, 100);
        }
    }

    pub fn append_sized(&mut self, topic: &str, partition: i32, bytes: u64) {
        self.origins += 1;
        let origin = self.origins;
        let log = self.log(topic, partition);
        let time = 1_000 + log.end();
        log.slots.push(Some(Record { origin, bytes, time }));
    }

    /// Offsets without records: a marker, or what compaction took.
    pub fn append_holes(&mut self, topic: &str, partition: i32, count: usize) {
        let log = self.log(topic, partition);
        log.slots.extend(std::iter::repeat_n(None, count));
    }

    pub fn create(&mut self, topic: &NewTopic) {
        if !self.target.contains_key(&topic.name) {
            let id = self.next_id();
            let logs = vec![Vec::new(); topic.partitions as usize];
            self.target.insert(topic.name.clone(), TargetTopic { id, config: topic.config.clone(), logs });
        }
    }

    pub fn target_log(&mut self, partition: &TargetPartition) -> Option<&mut Vec<Slot>> {
        self.target.get_mut(&partition.topic)?.logs.get_mut(partition.partition.index())
    }

    /// Ends what is open under a lane's transactional id.
    pub fn end_transaction(&mut self, lane: LaneId, state: State) {
        for log in self.target.values_mut().flat_map(|topic| &mut topic.logs) {
            let open = |slot: &&mut Slot| slot.lane == Some(lane) && slot.state == State::Pending;
            let mut touched = false;
            for slot in log.iter_mut().filter(open) {
                slot.state = state;
                touched = true;
            }
            if touched {
                log.push(Slot { record: None, lane: Some(lane), state: State::Committed });
            }
        }
    }

    /// Appends committed ledger records; the last one's offset. Odd offsets are markers.
    pub fn write_ledger(&mut self, lane: LaneId, records: Vec<NewLedgerRecord>) -> Option<TargetOffset> {
        let log = self.ledger.entry(lane).or_default();
        for NewLedgerRecord { key, value } in records {
            let offset = TargetOffset(log.last().map_or(0, |record| record.offset.0 + 2));
            log.push(LedgerRecord { lane, offset, key, value });
        }
        log.last().map(|record| record.offset)
    }

    /// Fences whoever had the lane, and ends its transaction.
    pub fn fence(&mut self, lane: LaneId) -> u64 {
        self.end_transaction(lane, State::Aborted);
        let epoch = self.epochs.entry(lane).or_insert(0);
        *epoch += 1;
        *epoch
    }

    pub fn epoch_at(&self, _: &SourcePartition) -> LeaderEpoch {
        LeaderEpoch(self.leader_epoch)
    }
}
