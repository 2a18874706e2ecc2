//! How far each source partition has come, by what was decided so far.

use super::alignment::Alignment;
use super::ledger::{Entry, Halt, TopicRecord};
use super::log::{Lineage, Log};
use super::settlement::{Copies, Copy, Writer};
use super::shadow::Shadow;
use kafka_model::{Millis, Offset};
use kafka_types::{Partition, SourcePartition, TopicId, TopicName};
use std::collections::BTreeMap;

/// Where a source partition stands.
#[derive(Clone, Debug)]
pub struct Progress {
    pub source_id: TopicId,
    pub target_topic: TopicName,
    pub target_id: TopicId,
    /// Each position with the end of the mirror's records on the target then, where it is known.
    pub reached: Vec<(Offset, Offset)>,
    /// Where the flow's first record could stand on the target.
    pub target_start: Offset,
    /// The last record on the target that was settled, of which topic.
    pub last_copy: Option<(TopicId, Offset)>,
    pub lane: i32,
    pub start: Offset,
    pub next: Offset,
    pub records: u64,
    pub lineage: Lineage,
    /// The earliest state of the source's log in which what was copied last may have been read.
    pub read_since: Lineage,
    pub halted: Option<Halt>,
    /// When this was settled, the target topic with the copies had been deleted already.
    pub copy_is_gone: bool,
    /// When it was last said to halt, or that it goes on: a halt is lifted when its lane is taken, and shows again if its
    /// cause is still there.
    pub halt_told: Option<Millis>,
}

/// Who wrote a lane's last claim.
#[derive(Clone, Debug)]
pub struct Owner {
    pub incarnation: String,
    pub producer: Writer,
    pub at: Millis,
    /// The coordinator has forgotten the lane's transactional id since. Whoever held it last may recover under a
    /// producer id of its own; had anybody else taken the lane in between, the coordinator would refuse.
    pub is_forgotten: bool,
}

/// What one settlement does to one source partition.
#[derive(Clone, Debug)]
pub struct Advance {
    pub partition: SourcePartition,
    pub source_id: TopicId,
    /// The lane in whose ledger partition the entry stands; none if records came without an entry.
    pub lane: Option<i32>,
    pub before: Option<Progress>,
    pub from: Offset,
    pub to: Offset,
    pub entry: Option<Entry>,
    pub copies: Vec<Copy>,
    pub copies_id: Option<TopicId>,
    /// Records of the same transaction in other topics of that name.
    pub elsewhere: Vec<Copies>,
    pub alignment: Alignment,
    /// The state of the source's log that the copies fit.
    pub lineage: Lineage,
    /// The earliest that they may have been read in.
    pub read_since: Lineage,
    /// The first record below the new position whose transaction is open.
    pub first_open: Option<Offset>,
}

/// Its owner looks after topics.
const TOPICS_LANE: i32 = 0;

/// All progress of the flow.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    pub partitions: BTreeMap<SourcePartition, Progress>,
    pub owners: BTreeMap<i32, Owner>,
    pub topics: BTreeMap<TopicName, TopicRecord>,
    /// In which state a source log was when the flow's start in it was pinned.
    pub pins: BTreeMap<(TopicId, Partition), Lineage>,
    /// In which state it was, at the latest, when somebody asked where to start.
    pub asked_since: BTreeMap<(TopicId, Partition), Lineage>,
    /// In which states source logs were when the lane was claimed whose owner says where to start.
    claimed_in: BTreeMap<(TopicId, Partition), Lineage>,
    pub has_started: bool,
    /// Those that existed when the flow first started, with where it did.
    pub first_topics: BTreeMap<TopicName, TopicRecord>,
}

impl Standing {
    pub fn pin(&mut self, record: &TopicRecord, source: &Shadow) {
        let partitions = u32::try_from(record.starts.len()).unwrap_or(0);
        for partition in Partition::all(partitions) {
            let lineage = source.log(record.source_id, partition).map_or(0, Log::lineage);
            let place = (record.source_id, partition);
            self.pins.entry(place).or_insert(lineage);
            let claimed_in = self.claimed_in.get(&place).copied().unwrap_or(0);
            self.asked_since.entry(place).or_insert(claimed_in);
        }
    }

    pub fn claimed(&mut self, lane: i32, owner: Owner, source: &Shadow) {
        self.owners.insert(lane, owner);
        if lane == TOPICS_LANE {
            let states = source.logs().map(|(id, partition, log)| ((id, partition), log.lineage()));
            self.claimed_in = states.collect();
        }
    }

    pub fn take_in(&mut self, at: Millis, advance: &Advance, target: &Shadow) {
        let Some(entry) = &advance.entry else { return };
        let before = self.partitions.remove(&advance.partition);
        let stood_halted = before.as_ref().is_some_and(|before| before.halted.is_some());
        let told_before = before.as_ref().and_then(|before| before.halt_told);
        let halt_told = if stood_halted || entry.halted.is_some() { Some(at) } else { told_before };
        let last_copy = advance.copies_id.zip(advance.copies.last().map(|copy| copy.offset));
        let last_copy = last_copy.or(before.as_ref().and_then(|before| before.last_copy));
        let mut reached = before.map(|before| before.reached).unwrap_or_default();
        reached.extend(entry.target_end.map(|end| (entry.next, end)));
        let progress = Progress {
            source_id: entry.source_id,
            target_topic: entry.target_topic.clone(),
            target_id: entry.target_id,
            reached,
            target_start: entry.target_start,
            last_copy,
            lane: advance.lane.unwrap_or(-1),
            start: entry.start,
            next: entry.next,
            records: entry.records,
            lineage: advance.lineage,
            read_since: advance.read_since,
            halted: entry.halted.clone(),
            copy_is_gone: target.is_deleted(entry.target_id),
            halt_told,
        };
        self.partitions.insert(advance.partition.clone(), progress);
    }
}
