//! The judge: knows what both clusters ever held, believes nothing that the mirror says, and shares no code
//! with it.
//!
//! ```text
//! both clusters ─► History (all that happened) ─► Judge: Shadow (all that was ever there) ─┐
//!                                                 each decision to commit:                 ├─► invariants/
//!                                                 Settlement ─► Advance ─► Case ───────────┘   one file a promise
//! History once more ─► a Judge who takes what readers see for what was committed: audit
//! ```
//!
//! A transaction counts from the coordinator's decision, not from which of its markers are written: what is
//! wrong then will be wrong for every reader, and is found at its earliest.

mod alignment;
mod audit;
mod case;
mod content;
mod history;
mod invariants;
mod judge;
mod lag;
mod ledger;
mod left_open;
mod log;
mod progress;
mod readers;
mod settlement;
mod shadow;
mod shown;
mod violation;

pub use audit::Over;
pub use history::{History, Recorded, Side, What};
pub use invariants::exits_true::{self, Circumstances, Ended};
pub use invariants::nothing_pinned::pinned;
pub use invariants::status_true::{Said, Stands};
pub use invariants::{Standstill, unhealed};
pub use lag::{End, Ends, Lag};
pub use ledger::{Halt, HaltReason};
pub use violation::{Invariant, Violation};

use crate::plan::OddCopy;
use judge::Judge;
use kafka_model::{Cluster, LogEvent, Millis, Offset};
use kafka_types::{Partition, SourcePartition, TopicId, TopicName, TopicPartition};
use progress::Progress;
use std::collections::{BTreeMap, BTreeSet};

/// How the flow under test names things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowNames {
    pub ledger: String,
    /// Transactional ids are this and the lane.
    pub transactional_id_prefix: String,
    /// A target topic is this and the source topic's name.
    pub target_prefix: String,
    /// The largest batch that the copies of these source topics take, where it is not what most topics take.
    pub target_bytes_max: BTreeMap<TopicName, usize>,
    /// Copies that take not all records, or not as they are.
    pub odd_copies: BTreeMap<TopicName, OddCopy>,
    /// How far the target's clock is off.
    pub target_clock_ms: Millis,
    /// What the source held when the flow first started is not to be copied.
    pub starts_at_end: bool,
    /// Of that only what has this timestamp or a later one, and what lies behind it.
    pub starts_at: Option<Millis>,
}

impl FlowNames {
    pub fn of(flow: &str, target_prefix: &str) -> FlowNames {
        FlowNames {
            ledger: format!("verbatim.{flow}.ledger.internal"),
            transactional_id_prefix: format!("verbatim-{flow}-"),
            target_prefix: target_prefix.to_owned(),
            target_bytes_max: BTreeMap::new(),
            odd_copies: BTreeMap::new(),
            target_clock_ms: 0,
            starts_at_end: false,
            starts_at: None,
        }
    }

    pub fn target_bytes_max(&self, source: &TopicName) -> usize {
        self.target_bytes_max.get(source).copied().unwrap_or(1_048_588)
    }

    pub fn source_topic(&self, target: &TopicName) -> TopicName {
        let name = target.as_str();
        TopicName::from(name.strip_prefix(self.target_prefix.as_str()).unwrap_or(name))
    }
}

pub struct Oracle {
    judge: Judge,
    history: History,
    next_decision: u64,
    violations: Vec<Violation>,
}

impl Oracle {
    pub fn new(flow: FlowNames) -> Oracle {
        Oracle {
            judge: Judge::new(flow, None),
            history: History::default(),
            next_decision: 0,
            violations: Vec::new(),
        }
    }

    /// To be called after everything that may change the source.
    pub fn observe_source(&mut self, now: Millis, cluster: &mut Cluster) {
        self.observe_names(now, Side::Source, cluster);
        self.observe_logs(now, Side::Source, cluster);
        let next = cluster.decisions().next_number();
        cluster.decisions_mut().forget_before(next);
    }

    /// To be called after everything that may change the target, one request at a time: within one call,
    /// decisions come before the records that it appends.
    pub fn observe_target(&mut self, now: Millis, cluster: &mut Cluster) {
        self.observe_names(now, Side::Target, cluster);
        if self.next_decision < cluster.decisions().next_number() {
            for decision in cluster.decisions().since(self.next_decision) {
                self.tell(now, What::Decided(Box::new(decision.clone())));
            }
            self.next_decision = cluster.decisions().next_number();
            cluster.decisions_mut().forget_before(self.next_decision);
        }
        self.observe_logs(now, Side::Target, cluster);
    }

    /// No request both deletes and creates a topic.
    fn observe_names(&mut self, now: Millis, side: Side, cluster: &Cluster) {
        let shadow = match side {
            Side::Source => &self.judge.source,
            Side::Target => &self.judge.target,
        };
        for (topic, id) in shadow.new_names(cluster) {
            self.tell(now, What::Named { side, topic, id });
        }
    }

    fn observe_logs(&mut self, now: Millis, side: Side, cluster: &mut Cluster) {
        for ((id, partition), events) in cluster.history_mut().take() {
            let is_compacted = events.contains(&LogEvent::Compacted);
            for event in events {
                self.tell(now, What::Log { side, id, partition, event });
            }
            let left = if is_compacted { offsets_left(cluster, id, partition) } else { None };
            if let Some(left) = left {
                self.tell(now, What::Compacted { side, id, partition, left });
            }
        }
    }

    fn tell(&mut self, at: Millis, what: What) {
        self.history.keep(at, what);
        if let Some(recorded) = self.history.records().last() {
            self.judge.take(recorded);
        }
        self.violations.extend(self.judge.take_broken());
    }

    /// An election on the source is about to take away what readers of `tp` could see below `readable_below`.
    pub fn unclean_election_ahead(&mut self, now: Millis, tp: &TopicPartition, readable_below: Offset) {
        if let Some(id) = self.judge.source.id(&tp.topic) {
            self.tell(now, What::ElectionAhead { id, partition: tp.partition, readable_below });
        }
    }

    /// The coordinator forgets a lane's transactional id, as after a week without use.
    pub fn transactional_id_expired(&mut self, now: Millis, lane: i32) {
        self.tell(now, What::Forgotten { lane });
    }

    /// Somebody who is no part of the flow wrote a record to a copy.
    pub fn foreign_write(&mut self, now: Millis, tp: &TopicPartition, offset: Offset) {
        if let Some(id) = self.judge.target.id(&tp.topic) {
            self.tell(now, What::Foreign((id, tp.partition, offset)));
        }
    }

    pub fn topic_denied(&mut self, now: Millis, topic: TopicName) {
        self.tell(now, What::Denied(topic));
    }

    /// Whether a source topic was deleted at some time: what was read of it may stay unsettled.
    pub fn source_topics_were_deleted(&self) -> bool {
        self.judge.source.has_deleted()
    }

    /// Whether clients had no right to a source topic or its copy at some time.
    pub fn was_denied(&self, topic: &TopicName) -> bool {
        self.judge.denied.contains(topic)
    }

    /// Clients lose their right to a target topic.
    pub fn copy_denied(&mut self, now: Millis, topic: &TopicName) {
        let topic = self.judge.flow.source_topic(topic);
        self.tell(now, What::Denied(topic));
    }

    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Whatever was found since this was last called was found at this step of the run's trace.
    pub fn found_at(&mut self, step: u64) {
        self.violations.iter_mut().filter(|it| it.step == 0).for_each(|it| it.step = step);
    }

    pub fn report(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    pub fn settlements(&self) -> u64 {
        self.judge.settlements
    }

    /// Partitions whose copy is gone with its target topic, of which the ledger does not tell.
    pub fn untold(&self) -> impl Iterator<Item = &SourcePartition> {
        let standing = self.judge.standing.partitions.iter();
        let is_untold =
            |(_, it): &(_, &Progress)| it.halted.is_none() && self.judge.target.is_deleted(it.target_id);
        standing.filter(is_untold).map(|(partition, _)| partition)
    }

    /// Whether a source transaction held records of the partition at some time since then.
    pub fn was_open_since(&self, partition: &SourcePartition, since: Millis) -> bool {
        self.judge.source.ids(&partition.topic).into_iter().any(|id| {
            let place = (id, partition.partition);
            let is_open = self.judge.source.log(id, partition.partition).is_some_and(log::Log::has_open);
            is_open || self.judge.open_until.get(&place).is_some_and(|until| since <= *until)
        })
    }

    /// How many records the flow has settled, over all partitions.
    pub fn records_settled(&self) -> u64 {
        self.judge.standing.partitions.values().map(|progress| progress.records).sum()
    }

    /// Partitions that stand halted, by the last decided entry of each.
    pub fn halted(&self) -> impl Iterator<Item = (&SourcePartition, &Halt)> {
        let standing = self.judge.standing.partitions.iter();
        standing.filter_map(|(partition, it)| Some((partition, it.halted.as_ref()?)))
    }

    /// Whether the partition stood halted at some time since then, each time for a reason that was so.
    pub fn was_halted_since(&self, partition: &SourcePartition, since: Millis) -> bool {
        let progress = self.judge.standing.partitions.get(partition);
        progress.is_some_and(|it| it.halted.is_some() || it.halt_told.is_some_and(|told| since <= told))
    }
}

fn offsets_left(cluster: &Cluster, id: TopicId, partition: Partition) -> Option<BTreeSet<Offset>> {
    let (topic, _, _) = cluster.topic_names().find(|(_, it, _)| *it == id)?;
    let batches = cluster.fates(&TopicPartition { topic: topic.clone(), partition }, 0);
    let offsets = |(batch, _): &(std::sync::Arc<kafka_types::RecordBatch>, _)| {
        batch.records.iter().map(|record| batch.offset_of(record)).collect::<Vec<_>>()
    };
    Some(batches.iter().flat_map(offsets).collect())
}
