//! Takes in one thing after the other that happened, and asks at each decision to commit whether every promise is kept.

use super::case::{self, Case};
use super::history::{Recorded, Side, What};
use super::invariants;
use super::ledger::LedgerRecord;
use super::log::Log;
use super::progress::{Owner, Standing};
use super::readers::Readers;
use super::settlement::{Place, Settlement};
use super::shadow::Shadow;
use super::{FlowNames, Invariant, Violation};
use kafka_model::transaction::Decision;
use kafka_model::{LogEvent, Millis};
use kafka_types::{Partition, SourcePartition, TopicId, TopicName, TransactionResult};
use std::collections::{BTreeMap, BTreeSet};

pub struct Judge {
    pub flow: FlowNames,
    pub source: Shadow,
    pub target: Shadow,
    pub standing: Standing,
    /// If all is over, those who read the target: what none of them sees was not committed, whatever was decided.
    readers: Option<Readers>,
    /// What came with a settlement so far.
    settled: BTreeSet<Place>,
    /// Records that nobody of the flow wrote.
    pub foreign: BTreeSet<Place>,
    /// Source topics that clients were denied at some time.
    pub denied: Vec<TopicName>,
    /// When a transaction was last seen open in a source partition that something happened to.
    pub open_until: BTreeMap<(TopicId, Partition), Millis>,
    /// That the target lost what was decided is said once.
    has_told_of_rollback: bool,
    broken: Vec<Violation>,
    pub settlements: u64,
}

impl Judge {
    pub fn new(flow: FlowNames, readers: Option<Readers>) -> Judge {
        Judge {
            flow,
            source: Shadow::default(),
            target: Shadow::default(),
            standing: Standing::default(),
            readers,
            settled: BTreeSet::new(),
            foreign: BTreeSet::new(),
            denied: Vec::new(),
            open_until: BTreeMap::new(),
            has_told_of_rollback: false,
            broken: Vec::new(),
            settlements: 0,
        }
    }

    pub fn take(&mut self, recorded: &Recorded) {
        match &recorded.what {
            What::Named { side, topic, id } => self.shadow(*side).name_topic(topic, *id),
            What::Log { side, id, partition, event } => {
                if *side == Side::Source && self.source.log(*id, *partition).is_some_and(Log::has_open) {
                    self.open_until.insert((*id, *partition), recorded.at);
                }
                self.shadow(*side).apply(*id, *partition, event);
                if *side == Side::Target && matches!(event, LogEvent::Truncated { .. }) {
                    self.check_decided_is_kept(recorded.at, *id, *partition);
                }
            }
            What::Compacted { side, id, partition, left } => {
                let log = self.shadow(*side).log_mut(*id, *partition);
                log.keep_only(log.start, left);
            }
            What::Decided(decision) => self.decided(recorded.at, decision),
            What::ElectionAhead { id, partition, readable_below } => {
                self.source.log_mut(*id, *partition).readable_before_cut(*readable_below);
            }
            What::Forgotten { lane } => {
                if let Some(owner) = self.standing.owners.get_mut(lane) {
                    owner.is_forgotten = true;
                }
            }
            What::Foreign(place) => drop(self.foreign.insert(*place)),
            What::Denied(topic) => self.denied.push(topic.clone()),
        }
    }

    /// What was found since the last call.
    pub fn take_broken(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.broken)
    }

    pub fn tell(&mut self, violation: Violation) {
        self.broken.push(violation);
    }

    pub fn readers(&self) -> Option<&Readers> {
        self.readers.as_ref()
    }

    pub fn is_settled(&self, place: Place) -> bool {
        self.settled.contains(&place)
    }

    fn shadow(&mut self, side: Side) -> &mut Shadow {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }

    fn decided(&mut self, at: Millis, decision: &Decision) {
        let readers = self.readers.as_ref();
        let is_seen = |place| readers.is_none_or(|readers| readers.see(place));
        let settlement = Settlement::take(&mut self.target, at, decision, &self.flow.ledger, is_seen);
        let is_ours = decision.transactional_id.as_str().starts_with(&self.flow.transactional_id_prefix);
        if !is_ours {
            return;
        }
        if decision.result == TransactionResult::Abort {
            return;
        }
        if self.readers.is_some() {
            self.settled.extend(settlement.places.iter().copied());
        }
        self.settlements += 1;
        self.settle(&settlement);
    }

    /// Judges what has been committed, and takes it in.
    pub fn settle(&mut self, settlement: &Settlement) {
        let advances = case::advances(&self.flow, settlement, &self.standing, &self.source);
        let case = Case {
            flow: &self.flow,
            settlement,
            advances: &advances,
            standing: &self.standing,
            source: &self.source,
            target: &self.target,
            denied: &self.denied,
        };
        let mut broken = invariants::check_all(&case);
        broken.sort_by_key(|violation| violation.invariant);
        self.broken.extend(broken);
        self.note(settlement);
        advances.iter().for_each(|advance| self.standing.take_in(settlement.at, advance, &self.target));
    }

    /// Takes in the ledger's records.
    fn note(&mut self, settlement: &Settlement) {
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
    }

    /// What was decided stays: an election that takes it away is a loss whoever is to blame.
    fn check_decided_is_kept(&mut self, now: Millis, id: TopicId, partition: Partition) {
        let lost = self.target.log(id, partition).and_then(Log::lost_decided);
        let (Some(offset), Some(topic)) = (lost, self.target.name(id)) else { return };
        if self.has_told_of_rollback {
            return;
        }
        let place = SourcePartition { topic: self.flow.source_topic(topic), partition };
        let text = format!("the target lost committed records of {topic}/{partition}");
        let violation = Violation::new(Invariant::NothingLost, now, text);
        self.broken.push(violation.in_partition(&place).at_target(offset));
        self.has_told_of_rollback = true;
    }
}
