//! Lane 0's other duty: every source topic gets its record in the ledger and its topic on the target.
//!
//! One round at a time, each a straight line of questions about some topics:
//! ```text
//! pin:    starts -> note                                             (the topic was first seen)
//! make:   configs -> create -> look -> (grow -> look) -> judge -> measure -> note
//! grow:   grow                                                       (the source topic has grown)
//! ```
//! A topic that fails in a round is left out of it and tried again in a later one.

use super::making::Making;
use super::refusals::Refusals;
use crate::backoff::{SOON, earlier};
use crate::command::{Command, NewTopic, Place, Topics};
use crate::config::Start;
use crate::delivery::exactly_once::Lane;
use crate::event::{Ask, Event, Listing, TopicConfig};
use crate::failure::{Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::ledger::{FlowStart, Record, TargetPin, TopicRecord};
use crate::mirror::{Context, Knowledge};
use crate::target::{config_for_copy, would_alter_records};
use crate::time::Instant;
use kafka_types::{OffsetAndEpoch, Partition, SourcePartition, TargetOffset, TargetPartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// Topics in one round; more wait for the next one, so that no request grows without bound.
const ROUND_TOPICS_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetTopics {
    round: Option<Round>,
    again_at: Option<Instant>,
    pub(super) refusals: Refusals,
    /// Topics found unfit since the lane was taken: not judged again before the next take.
    unfit: BTreeSet<TopicName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    step: Step,
    ask: Ask,
    topics: BTreeMap<TopicName, Making>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Resolving where copying starts; `flow` when the flow itself starts.
    Pin {
        flow: bool,
    },
    Configs,
    Create,
    Look,
    Grow,
    Judge,
    Measure,
    /// The ledger's owner has the records; the round is over once it has none left.
    Note,
}

impl TargetTopics {
    /// Forgets a round of an earlier ownership.
    pub fn reset(&mut self) {
        *self = TargetTopics::default();
    }

    /// Why the target will not have a topic, if it said so.
    pub fn refusal(&self, topic: &TopicName) -> Option<&str> {
        self.refusals.why(topic)
    }

    /// Starts the next round when one is due.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>, know: &Knowledge, lane: &mut Lane) {
        if !lane.is_mirroring() {
            self.round = None;
            return;
        }
        // Until the ledger holds what was noted, it would be asked for again: a start pinned twice is two starts.
        if lane.has_notes() {
            return;
        }
        if let Some(Round { step: Step::Note, .. }) = self.round {
            self.round = None;
        }
        let waits = self.again_at.is_some_and(|at| ctx.now.instant < at);
        if self.round.is_none() && !waits {
            self.again_at = None;
            self.begin(ctx, know, lane);
        }
    }

    pub fn wake_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Takes in an answer to a question of its own. Whether it was one.
    pub fn handle(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        lane: &mut Lane,
        event: &Event,
    ) -> bool {
        let Some(Round { step, ask: asked, .. }) = &self.round else { return false };
        let (step, asked) = (*step, *asked);
        match (step, event) {
            (Step::Pin { flow }, Event::SourceOffsets { ask, answer }) if *ask == asked => {
                self.pinned(ctx, lane, flow, answer);
            }
            (Step::Configs, Event::Configs { ask, answer, .. }) if *ask == asked => {
                self.configured(ctx, answer);
            }
            (Step::Create, Event::TopicsCreated { ask, answer }) if *ask == asked => {
                self.created(ctx, answer);
            }
            (Step::Look, Event::Described { ask, answer, .. }) if *ask == asked => {
                self.looked(ctx, answer);
            }
            (Step::Grow, Event::TopicsGrown { ask, answer }) if *ask == asked => {
                know.discovery.look_soon(ctx.now.instant, Side::Target);
                self.grown(ctx, answer);
            }
            (Step::Judge, Event::Configs { ask, answer, .. }) if *ask == asked => self.judged(ctx, answer),
            (Step::Measure, Event::TargetEnds { ask, answer }) if *ask == asked => {
                self.measured(ctx, know, lane, answer);
            }
            _ => return false,
        }
        true
    }

    fn begin(&mut self, ctx: &mut Context<'_, impl Faults>, know: &Knowledge, lane: &mut Lane) {
        let ledger = lane.ledger();
        let waits = |topic: &TopicName| self.refusals.wait(topic, ctx.now.instant);
        let mut pin = BTreeMap::new();
        let mut make = BTreeMap::new();
        let mut grow = BTreeMap::new();
        for (topic, source) in know.discovery.source_topics() {
            if know.discovery.is_deleted(Side::Source, topic) {
                continue;
            }
            let record = ledger.topics.get(topic);
            let making = Making::new(source, record, know.discovery.is_new(topic));
            match record {
                Some(record) if record.source_id == source.id => match &record.target {
                    Some(pin) if pin.unfit.is_none() => {
                        let target = know.discovery.target_topic(&pin.topic);
                        let short =
                            target.is_some_and(|it| it.id == pin.id && it.partitions < source.partitions);
                        if short && !waits(topic) {
                            grow.insert(topic.clone(), making);
                        }
                    }
                    Some(_) | None if waits(topic) || self.unfit.contains(topic) => {}
                    Some(_) | None => {
                        make.insert(topic.clone(), making);
                    }
                },
                // Made again before anything was copied: it is a new topic.
                Some(TopicRecord { target: Some(_), .. }) => {}
                Some(TopicRecord { target: None, .. }) | None => {
                    pin.insert(topic.clone(), making);
                }
            }
        }
        if ledger.flow_start.is_none() {
            self.ask_pins(ctx, lane, pin, true);
        } else if !pin.is_empty() {
            self.ask_pins(ctx, lane, first(pin), false);
        } else if !make.is_empty() {
            self.ask_configs(ctx, first(make));
        } else if !grow.is_empty() {
            self.ask_grow(ctx, first(grow));
        }
    }

    fn ask(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        step: Step,
        topics: BTreeMap<TopicName, Making>,
    ) -> Ask {
        let ask = ctx.out.ask();
        self.round = Some(Round { step, ask, topics });
        ask
    }

    fn ask_pins(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        lane: &mut Lane,
        topics: BTreeMap<TopicName, Making>,
        flow: bool,
    ) {
        let at = match (flow, ctx.flow.start) {
            (true, Start::Latest) => Place::LastStable,
            (false, Start::Latest) if ctx.plants(Mutant::LaterTopicsStartLikeTheFlow) => Place::LastStable,
            (true, Start::Time(time)) => Place::Time(time),
            (true, Start::Earliest) | (false, _) => Place::Earliest,
        };
        let partitions: Vec<SourcePartition> =
            topics.iter().flat_map(|(topic, making)| making.partitions(topic)).collect();
        let ask = self.ask(ctx, Step::Pin { flow }, topics);
        if partitions.is_empty() {
            self.pinned(ctx, lane, flow, &BTreeMap::new());
        } else {
            ctx.out.push(Command::SourceOffsets { ask, partitions, at });
        }
    }

    fn pinned(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        lane: &mut Lane,
        flow: bool,
        answer: &BTreeMap<SourcePartition, Result<OffsetAndEpoch, Trouble>>,
    ) {
        let topics = self.end_round();
        let mut records = Vec::new();
        for (topic, making) in &topics {
            match starts(topic, making, answer) {
                Ok(starts) => {
                    let record = TopicRecord { source_id: making.source.id, starts, target: None };
                    records.push(Record::Topic(topic.clone(), record));
                }
                // No right to read it now: it will be a later topic once there is.
                Err(trouble @ Trouble::NotAuthorized { .. }) => {
                    tracing::error!(%topic, %trouble, "topic not taken");
                    self.try_again(ctx);
                }
                Err(trouble) => {
                    tracing::warn!(%topic, %trouble, "cannot find where to start");
                    self.try_again(ctx);
                    if flow {
                        return;
                    }
                }
            }
        }
        if flow {
            records.insert(0, Record::FlowStart(FlowStart { at: ctx.now.wall }));
        }
        self.note(lane, records);
    }

    fn ask_configs(&mut self, ctx: &mut Context<'_, impl Faults>, topics: BTreeMap<TopicName, Making>) {
        let names = topics.keys().cloned().collect();
        let ask = self.ask(ctx, Step::Configs, topics);
        ctx.out.push(Command::DescribeConfigs { side: Side::Source, ask, topics: names });
    }

    fn configured(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        answer: &Result<BTreeMap<TopicName, TopicConfig>, Trouble>,
    ) {
        let mut topics = self.end_round();
        let configs = match answer {
            Ok(configs) => configs,
            Err(trouble) => return self.round_failed(ctx, Side::Source, &topics, trouble),
        };
        topics.retain(|topic, _| configs.contains_key(topic));
        let new_topics = topics
            .iter_mut()
            .map(|(topic, making)| {
                making.config = configs[topic].clone();
                NewTopic {
                    name: ctx.flow.rename.target(topic),
                    partitions: making.source.partitions,
                    replication_factor: ctx.flow.replication_factor,
                    config: config_for_copy(&making.config),
                }
            })
            .collect();
        if topics.is_empty() {
            return self.try_again(ctx);
        }
        let ask = self.ask(ctx, Step::Create, topics);
        ctx.out.push(Command::CreateTopics { ask, topics: new_topics });
    }

    fn created(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        answer: &BTreeMap<TopicName, Result<(), Trouble>>,
    ) {
        let mut topics = self.end_round();
        topics.retain(|topic, making| match answer.get(&ctx.flow.rename.target(topic)) {
            Some(Ok(())) => true,
            Some(Err(trouble)) => {
                self.topic_failed(ctx, topic, making, trouble);
                false
            }
            None => false,
        });
        self.ask_look(ctx, topics);
    }

    fn ask_look(&mut self, ctx: &mut Context<'_, impl Faults>, topics: BTreeMap<TopicName, Making>) {
        if topics.is_empty() {
            return self.try_again(ctx);
        }
        let names = topics.keys().map(|topic| ctx.flow.rename.target(topic)).collect();
        let ask = self.ask(ctx, Step::Look, topics);
        ctx.out.push(Command::Describe { side: Side::Target, ask, topics: Topics::Named(names) });
    }

    fn looked(&mut self, ctx: &mut Context<'_, impl Faults>, answer: &Result<Listing, Trouble>) {
        let mut topics = self.end_round();
        let listing = match answer {
            Ok(listing) => listing,
            Err(trouble) => return self.round_failed(ctx, Side::Target, &topics, trouble),
        };
        for (topic, making) in &mut topics {
            let target = ctx.flow.rename.target(topic);
            making.target = listing.topics.get(&target).cloned();
            if let Some(trouble) = listing.trouble.get(&target) {
                self.topic_failed(ctx, topic, making, trouble);
            }
        }
        topics.retain(|_, making| making.target.is_some());
        if topics.is_empty() {
            self.try_again(ctx);
        } else if topics.values().any(Making::is_short) {
            self.ask_grow(ctx, topics);
        } else {
            self.ask_judge(ctx, topics);
        }
    }

    fn ask_grow(&mut self, ctx: &mut Context<'_, impl Faults>, topics: BTreeMap<TopicName, Making>) {
        let grow = topics
            .iter()
            .filter(|(_, making)| making.is_pinned() || making.is_short())
            .map(|(topic, making)| (ctx.flow.rename.target(topic), making.source.partitions))
            .collect();
        let ask = self.ask(ctx, Step::Grow, topics);
        ctx.out.push(Command::GrowTopics { ask, topics: grow });
    }

    fn grown(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        answer: &BTreeMap<TopicName, Result<(), Trouble>>,
    ) {
        let mut topics = self.end_round();
        topics.retain(|topic, making| match answer.get(&ctx.flow.rename.target(topic)) {
            Some(Err(trouble)) => {
                self.topic_failed(ctx, topic, making, trouble);
                false
            }
            Some(Ok(())) => {
                self.refusals.lift(topic);
                !making.is_pinned()
            }
            None => !making.is_pinned(),
        });
        self.try_again(ctx);
        if !topics.is_empty() {
            self.ask_look(ctx, topics);
        }
    }

    fn ask_judge(&mut self, ctx: &mut Context<'_, impl Faults>, topics: BTreeMap<TopicName, Making>) {
        let names = topics.keys().map(|topic| ctx.flow.rename.target(topic)).collect();
        let ask = self.ask(ctx, Step::Judge, topics);
        ctx.out.push(Command::DescribeConfigs { side: Side::Target, ask, topics: names });
    }

    fn judged(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        answer: &Result<BTreeMap<TopicName, TopicConfig>, Trouble>,
    ) {
        let mut topics = self.end_round();
        let configs = match answer {
            Ok(configs) => configs,
            Err(trouble) => return self.round_failed(ctx, Side::Target, &topics, trouble),
        };
        topics.retain(|topic, _| configs.contains_key(&ctx.flow.rename.target(topic)));
        for (topic, making) in &mut topics {
            let target = ctx.flow.rename.target(topic);
            making.unfit = would_alter_records(&configs[&target]).then(|| {
                format!(
                    "target topic {target} has message.timestamp.type=LogAppendTime, which would alter \
                         every timestamp; set it to CreateTime, then restart"
                )
            });
        }
        let partitions = topics
            .iter()
            .flat_map(|(topic, making)| {
                let target = ctx.flow.rename.target(topic);
                let count = making.target.as_ref().map_or(0, |info| info.partitions);
                Partition::all(count)
                    .map(move |partition| TargetPartition { topic: target.clone(), partition })
            })
            .collect();
        if topics.is_empty() {
            return self.try_again(ctx);
        }
        let ask = self.ask(ctx, Step::Measure, topics);
        ctx.out.push(Command::TargetEnds { ask, partitions });
    }

    fn measured(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        lane: &mut Lane,
        answer: &BTreeMap<TargetPartition, Result<crate::event::TargetEnd, Trouble>>,
    ) {
        let topics = self.end_round();
        let mut records = Vec::new();
        for (topic, making) in topics {
            let (Some(record), Some(info)) = (making.record.clone(), making.target.clone()) else { continue };
            let target = ctx.flow.rename.target(&topic);
            let ends: Result<Vec<_>, _> = Partition::all(info.partitions)
                .map(|partition| {
                    let place = TargetPartition { topic: target.clone(), partition };
                    let unanswered = Err(Trouble::Passing("no answer".into()));
                    answer.get(&place).cloned().unwrap_or(unanswered).map(|end| end.high_watermark)
                })
                .collect();
            match ends {
                Ok(ends) => {
                    self.refusals.lift(&topic);
                    if record.target.is_none() {
                        tell_of_foreign_records(&target, &ends);
                    }
                    if making.unfit.is_some() {
                        self.unfit.insert(topic.clone());
                    }
                    let pin = TargetPin { topic: target, id: info.id, ends, unfit: making.unfit.clone() };
                    if record.target.as_ref() != Some(&pin) {
                        let record = TopicRecord { target: Some(pin), ..record };
                        records.push(Record::Topic(topic, record));
                    }
                }
                Err(trouble) => {
                    self.topic_failed(ctx, &topic, &making, &trouble);
                }
            }
        }
        know.discovery.look_soon(ctx.now.instant, Side::Target);
        self.note(lane, records);
    }

    fn note(&mut self, lane: &mut Lane, records: Vec<Record>) {
        if !records.is_empty() {
            self.round = Some(Round { step: Step::Note, ask: Ask::default(), topics: BTreeMap::new() });
            lane.note(records);
        }
    }

    fn end_round(&mut self) -> BTreeMap<TopicName, Making> {
        self.round.take().map(|round| round.topics).unwrap_or_default()
    }

    pub(super) fn try_again(&mut self, ctx: &Context<'_, impl Faults>) {
        self.again_at = earlier(self.again_at, Some(ctx.now.instant + SOON));
    }
}

/// Another flow may have written them, or this one under a ledger that is gone; then all is copied twice.
fn tell_of_foreign_records(target: &TopicName, ends: &[TargetOffset]) {
    if ends.iter().any(|end| TargetOffset::ZERO < *end) {
        tracing::warn!(
            topic = %target,
            "the target topic held records before this flow's first; copies follow after them. If they are copies \
             of the same source, by a flow of another name or with a ledger that was deleted, they are doubled now"
        );
    }
}

fn starts(
    topic: &TopicName,
    making: &Making,
    answer: &BTreeMap<SourcePartition, Result<OffsetAndEpoch, Trouble>>,
) -> Result<Vec<OffsetAndEpoch>, Trouble> {
    let unanswered = || Err(Trouble::Passing("no answer".into()));
    making
        .partitions(topic)
        .map(|partition| answer.get(&partition).cloned().unwrap_or_else(unanswered))
        .collect()
}

fn first(topics: BTreeMap<TopicName, Making>) -> BTreeMap<TopicName, Making> {
    topics.into_iter().take(ROUND_TOPICS_MAX).collect()
}
