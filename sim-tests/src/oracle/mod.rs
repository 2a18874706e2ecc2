//! The judge: knows what both clusters ever held, believes nothing that the mirror says, and shares no code
//! with it.
//!
//! ```text
//! observe_source ─► Shadow (all that was ever there) ─────────┐
//! observe_target ─► Shadow ─► each decision to commit:        ├─► invariants/  one file a promise
//!                             Settlement ─► Advance ─► Case ──┘
//! History (the same events, kept) ─► audit: the same question asked of what readers see in the end
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
mod lag;
mod ledger;
mod left_open;
mod log;
mod pinned;
mod progress;
mod settlement;
mod shadow;
mod violation;

pub use history::{History, Recorded, Side};
pub use lag::{Ends, Lag, ends};
pub use ledger::{Halt, HaltReason};
pub use pinned::pinned;
pub use violation::{Invariant, Violation};

use case::Case;
use kafka_model::{Cluster, Millis, Offset};
use kafka_types::{SourcePartition, TopicName, TopicPartition, TransactionResult};
use ledger::LedgerRecord;
use progress::{Owner, Progress, Standing};
use settlement::Settlement;
use shadow::Shadow;
use std::collections::BTreeMap;

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
    flow: FlowNames,
    source: Shadow,
    target: Shadow,
    standing: Standing,
    history: History,
    next_decision: u64,
    /// Source topics that clients were denied at some time.
    denied: Vec<TopicName>,
    violations: Vec<Violation>,
    /// That the target lost what was decided is said once.
    has_told_of_rollback: bool,
    pub settlements: u64,
    /// Transactions of the mirror that were aborted with some of their records stored, and others not.
    pub partial_sends: u64,
}

impl Oracle {
    pub fn new(flow: FlowNames) -> Oracle {
        Oracle {
            flow,
            source: Shadow::default(),
            target: Shadow::default(),
            standing: Standing::default(),
            history: History::default(),
            next_decision: 0,
            denied: Vec::new(),
            violations: Vec::new(),
            has_told_of_rollback: false,
            settlements: 0,
            partial_sends: 0,
        }
    }

    /// To be called after everything that may change the source.
    pub fn observe_source(&mut self, now: Millis, cluster: &mut Cluster) {
        self.source.learn_new_names(cluster);
        let events = cluster.history_mut().take();
        if !events.is_empty() {
            self.source.apply(cluster, &events);
            self.history.keep(now, Side::Source, &self.source, events);
        }
        let next = cluster.decisions().next_number();
        cluster.decisions_mut().forget_before(next);
    }

    /// To be called after everything that may change the target, one request at a time: within one call,
    /// decisions come before the records that it appends.
    pub fn observe_target(&mut self, now: Millis, cluster: &mut Cluster) {
        self.target.learn_new_names(cluster);
        if self.next_decision < cluster.decisions().next_number() {
            for decision in cluster.decisions().since(self.next_decision).to_vec() {
                self.decided(&decision);
            }
            self.next_decision = cluster.decisions().next_number();
            cluster.decisions_mut().forget_before(self.next_decision);
        }
        let events = cluster.history_mut().take();
        if !events.is_empty() {
            self.target.apply(cluster, &events);
            self.check_decided_is_kept(now);
            self.history.keep(now, Side::Target, &self.target, events);
        }
    }

    /// An election on the source is about to take away what readers of `tp` could see below `readable_below`.
    pub fn unclean_election_ahead(&mut self, tp: &TopicPartition, readable_below: Offset) {
        if let Some(id) = self.source.id(&tp.topic) {
            self.source.log_mut(id, tp.partition).readable_before_cut(readable_below);
        }
    }

    /// The coordinator forgets a lane's transactional id, as after a week without use.
    pub fn transactional_id_expired(&mut self, lane: i32) {
        if let Some(owner) = self.standing.owners.get_mut(&lane) {
            owner.is_forgotten = true;
        }
    }

    /// Whether a source topic was deleted at some time: what was read of it may stay unsettled.
    pub fn source_topics_were_deleted(&self) -> bool {
        self.source.has_deleted()
    }

    /// Clients lose their right to a source topic.
    pub fn topic_denied(&mut self, topic: TopicName) {
        self.denied.push(topic);
    }

    /// Whether clients had no right to a source topic or its copy at some time.
    pub fn was_denied(&self, topic: &TopicName) -> bool {
        self.denied.contains(topic)
    }

    /// Clients lose their right to a target topic.
    pub fn copy_denied(&mut self, topic: &TopicName) {
        self.denied.push(self.flow.source_topic(topic));
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

    /// Partitions whose copy is gone with its target topic, of which the ledger does not tell.
    pub fn untold(&self) -> impl Iterator<Item = &SourcePartition> {
        let standing = self.standing.partitions.iter();
        let is_untold =
            |(_, it): &(_, &Progress)| it.halted.is_none() && self.target.is_deleted(it.target_id);
        standing.filter(is_untold).map(|(partition, _)| partition)
    }

    /// How many records the flow has settled, over all partitions.
    pub fn records_settled(&self) -> u64 {
        self.standing.partitions.values().map(|progress| progress.records).sum()
    }

    /// Partitions that stand halted, by the last decided entry of each.
    pub fn halted(&self) -> impl Iterator<Item = (&SourcePartition, &Halt)> {
        self.standing.partitions.iter().filter_map(|(partition, it)| Some((partition, it.halted.as_ref()?)))
    }

    /// Whether the partition halted at some time, each time for a reason that was so.
    pub fn was_halted(&self, partition: &SourcePartition) -> bool {
        self.standing.partitions.get(partition).is_some_and(|progress| progress.was_halted)
    }

    fn decided(&mut self, decision: &kafka_model::transaction::Decision) {
        let settlement = Settlement::take(&mut self.target, decision, &self.flow.ledger);
        let is_ours = decision.transactional_id.as_str().starts_with(&self.flow.transactional_id_prefix);
        if !is_ours {
            return;
        }
        if decision.result == TransactionResult::Abort {
            self.partial_sends += u64::from(0 < settlement.stored && settlement.ledger.is_empty());
            return;
        }
        self.settlements += 1;
        let advances = case::advances(&self.flow, &settlement, &self.standing, &self.source);
        let case = Case {
            flow: &self.flow,
            settlement: &settlement,
            advances: &advances,
            standing: &self.standing,
            source: &self.source,
            target: &self.target,
            denied: &self.denied,
        };
        let mut broken = invariants::check_all(&case);
        broken.sort_by_key(|violation| violation.invariant);
        self.violations.extend(broken);
        let starts = settlement.ledger.iter().any(|it| it.record == Ok(LedgerRecord::FlowStart));
        let is_flow_start = starts && !self.standing.has_started;
        self.standing.has_started |= starts;
        for noted in &settlement.ledger {
            match &noted.record {
                Ok(LedgerRecord::Claim(claim)) => {
                    let owner = Owner {
                        incarnation: claim.incarnation.clone(),
                        producer: noted.producer,
                        at: settlement.at,
                        is_forgotten: false,
                    };
                    self.standing.claimed(noted.lane, owner, &self.source);
                }
                Ok(LedgerRecord::Topic(topic, record)) => {
                    if is_flow_start {
                        self.standing.first_topics.insert(topic.clone(), record.clone());
                    }
                    self.standing.pin(record, &self.source);
                    self.standing.topics.insert(topic.clone(), record.clone());
                }
                Ok(LedgerRecord::FlowStart | LedgerRecord::Entry(..)) | Err(_) => {}
            }
            if let Some(owner) = self.standing.owners.get_mut(&noted.lane).filter(|it| it.is_forgotten)
                && owner.producer.0 < noted.producer.0
            {
                (owner.producer, owner.is_forgotten) = (noted.producer, false);
            }
        }
        advances.iter().for_each(|advance| self.standing.take_in(advance, &self.target));
    }

    /// What was decided stays: an election that takes it away is a loss whoever is to blame.
    fn check_decided_is_kept(&mut self, now: Millis) {
        if self.has_told_of_rollback {
            return;
        }
        for (id, partition, log) in self.target.logs() {
            let (Some(offset), Some(topic)) = (log.lost_decided(), self.target.name(id)) else { continue };
            let place = SourcePartition { topic: self.flow.source_topic(topic), partition };
            let text = format!("the target lost committed records of {topic}/{partition}");
            let violation = Violation::new(Invariant::NothingLost, now, text);
            self.violations.push(violation.in_partition(&place).at_target(offset));
            self.has_told_of_rollback = true;
            return;
        }
    }
}
