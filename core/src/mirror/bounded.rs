//! `--until`: the end of every partition is fixed at start, and the run is over once the whole flow's ledger
//! has reached it, whichever instance did the work, and the target shows it (S1, S2).

use crate::backoff::SOON;
use crate::command::{Command, Place, Topics};
use crate::config::{Flow, Until};
use crate::delivery::exactly_once::Lane;
use crate::event::{Ask, Event, LedgerRecord, Listing, TargetEnd};
use crate::exit::Exit;
use crate::failure::{Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::lane::{LaneId, lane_of};
use crate::ledger::Entry;
use crate::mirror::flow_progress::FlowProgress;
use crate::mirror::{Context, Knowledge};
use crate::target::TargetTopics;
use crate::time::Instant;
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundedRun {
    until: Until,
    started: Instant,
    step: Step,
    next: Option<Instant>,
    ends: BTreeMap<SourcePartition, SourceOffset>,
    /// Topics that the flow had copied from before this run, as first surveyed.
    copied_before: Option<BTreeSet<TopicName>>,
    /// The whole flow's progress as last surveyed.
    flow: FlowProgress,
    /// Since when all that is left is held back by open source transactions.
    held_since: Option<Instant>,
    done: u64,
}

/// What a bounded run looks at besides the ledger.
pub struct Surroundings<'a> {
    pub know: &'a Knowledge,
    pub lanes: &'a BTreeMap<LaneId, Lane>,
    pub topics: &'a TargetTopics,
}

type SourceOffsets = BTreeMap<SourcePartition, Result<OffsetAndEpoch, Trouble>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The ends are to be asked for again.
    Unfixed,
    Fixing(Ask),
    Idle,
    Surveying(Ask),
    /// Where read_committed readers of the source stand.
    ProbingSource(Ask),
    /// Whether the source holds anything beyond that. A topic that was made anew can be shorter than its end.
    ProbingBeyond {
        ask: Ask,
        stable: SourceOffsets,
    },
    /// Whether readers of the target see what is settled; what halted is judged by the same survey as the rest, since
    /// by the time of the answer its lane may be another instance's.
    ProbingTarget {
        ask: Ask,
        halted: BTreeMap<SourcePartition, String>,
    },
    /// Whether the copies that readers see are still in the topics that the ledger names: one made anew can be as long.
    ProvingTarget {
        ask: Ask,
        halted: BTreeMap<SourcePartition, String>,
    },
    NamingTransactions(Ask),
    Over,
}

impl BoundedRun {
    pub fn new(until: Until, started: Instant) -> BoundedRun {
        BoundedRun {
            until,
            started,
            step: Step::Unfixed,
            next: None,
            ends: BTreeMap::new(),
            copied_before: None,
            flow: FlowProgress::default(),
            held_since: None,
            done: 0,
        }
    }

    /// Asks what is due: first the ends, then, every second, whether they are reached.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>, know: &Knowledge) {
        if self.next.is_some_and(|at| ctx.now.instant < at) {
            return;
        }
        match self.step {
            Step::Unfixed => {
                self.next = Some(ctx.now.instant + SOON);
                let wanted = |it: &SourcePartition| is_there(know, &it.topic) && self.needs_end(it);
                let partitions = know.discovery.source_partitions().filter(wanted).collect();
                let at = match self.until {
                    Until::End => Place::HighWatermark,
                    Until::Time(time) => Place::Time(time),
                };
                let ask = ctx.out.ask();
                self.step = Step::Fixing(ask);
                ctx.out.push(Command::SourceOffsets { ask, partitions, at });
            }
            Step::Idle => {
                let ask = ctx.out.ask();
                self.step = Step::Surveying(ask);
                ctx.out.push(Command::Survey { ask });
            }
            Step::Fixing(_)
            | Step::Surveying(_)
            | Step::ProbingSource(_)
            | Step::ProbingBeyond { .. }
            | Step::ProbingTarget { .. }
            | Step::ProvingTarget { .. }
            | Step::NamingTransactions(_)
            | Step::Over => {}
        }
    }

    pub fn wake_at(&self) -> Option<Instant> {
        match self.step {
            Step::Unfixed | Step::Idle => self.next,
            _ => None,
        }
    }

    /// Source offsets below the ends that are settled, and all of them.
    pub fn progress(&self) -> (u64, u64) {
        let total = self
            .ends
            .iter()
            .map(|(partition, end)| {
                end.distance_from(self.flow.start(partition).unwrap_or(SourceOffset::ZERO))
            })
            .sum();
        (self.done, total)
    }

    /// Takes in an answer to a question of its own; how the run ends, once it is over.
    pub fn handle(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        around: &Surroundings<'_>,
        event: &Event,
    ) -> Option<Exit> {
        match (&self.step, event) {
            (Step::Fixing(asked), Event::SourceOffsets { ask, answer }) if asked == ask => {
                self.fixed(ctx, answer);
            }
            (Step::Surveying(asked), Event::Surveyed { ask, answer }) if asked == ask => {
                return self.surveyed(ctx, around, answer);
            }
            (Step::ProbingSource(asked), Event::SourceOffsets { ask, answer }) if asked == ask => {
                self.source_probed(ctx, answer);
            }
            (Step::ProbingBeyond { ask: asked, stable }, Event::SourceOffsets { ask, answer })
                if asked == ask =>
            {
                let stable = stable.clone();
                self.beyond_probed(ctx, &stable, answer);
            }
            (Step::ProbingTarget { ask: asked, halted }, Event::TargetEnds { ask, answer })
                if asked == ask =>
            {
                let halted = halted.clone();
                return self.target_probed(ctx, halted, answer);
            }
            (Step::ProvingTarget { ask: asked, halted }, Event::Described { ask, answer, .. })
                if asked == ask =>
            {
                let halted = halted.clone();
                return self.target_proved(ctx, halted, answer);
            }
            (Step::NamingTransactions(asked), Event::OpenTransactions { ask, answer }) if asked == ask => {
                self.step = Step::Over;
                return Some(Exit::OpenTransactions(answer.clone()));
            }
            _ => {}
        }
        None
    }

    fn fixed(&mut self, ctx: &Context<'_, impl Faults>, answer: &SourceOffsets) {
        if let Some((partition, trouble)) =
            answer.iter().find_map(|(partition, end)| Some((partition, end.as_ref().err()?)))
        {
            tracing::warn!(%partition, %trouble, "cannot fix where the run ends yet");
            self.step = Step::Unfixed;
            return self.pause(ctx);
        }
        let ends =
            answer.iter().filter_map(|(partition, end)| Some((partition.clone(), end.as_ref().ok()?.offset)));
        self.ends.extend(ends);
        self.step = Step::Idle;
    }

    /// Ends are fixed once for all there is. A listing can lack a topic that is there, though, and only the ledger
    /// tells that apart from a topic that has appeared since.
    fn needs_end(&self, partition: &SourcePartition) -> bool {
        let is_known = |topics: &BTreeSet<TopicName>| topics.contains(&partition.topic);
        !self.ends.contains_key(partition) && self.copied_before.as_ref().is_none_or(is_known)
    }

    fn surveyed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        around: &Surroundings<'_>,
        answer: &Result<Vec<LedgerRecord>, Trouble>,
    ) -> Option<Exit> {
        self.step = Step::Idle;
        self.pause(ctx);
        let before = self.done;
        match answer {
            Ok(records) => self.flow.replay(records),
            Err(trouble) => {
                tracing::warn!(%trouble, "cannot read the ledger");
                return None;
            }
        }
        let copied = || self.flow.entries.keys().map(|partition| partition.topic.clone()).collect();
        self.copied_before.get_or_insert_with(copied);
        if self.has_reappeared(around.know) {
            self.step = Step::Unfixed;
            return None;
        }
        self.done = self.ends.iter().map(|(partition, end)| self.flow.done(partition, *end)).sum();
        let left = self.left(ctx, around);
        if left.is_empty() {
            let partitions = self.copies().map(|(target, ..)| target).collect();
            let ask = ctx.out.ask();
            self.step = Step::ProbingTarget { ask, halted: self.halted(ctx, around) };
            ctx.out.push(Command::TargetEnds { ask, partitions });
        } else if self.done == before {
            let ask = ctx.out.ask();
            self.step = Step::ProbingSource(ask);
            let partitions = left.into_iter().collect();
            ctx.out.push(Command::SourceOffsets { ask, partitions, at: Place::LastStable });
        } else {
            self.held_since = None;
        }
        None
    }

    /// Nothing moved for a while: is all that is left held back by open transactions?
    fn source_probed(&mut self, ctx: &mut Context<'_, impl Faults>, answer: &SourceOffsets) {
        self.step = Step::Idle;
        let held = |(partition, stable): (&SourcePartition, &Result<OffsetAndEpoch, Trouble>)| match stable {
            Ok(OffsetAndEpoch { offset: stable, .. }) => {
                let end = self.ends.get(partition).copied().unwrap_or(SourceOffset::ZERO);
                *stable < end && self.flow.position(partition).is_some_and(|position| *stable <= position)
            }
            Err(_) => false,
        };
        if !answer.iter().all(held) {
            self.held_since = None;
            return;
        }
        let since = *self.held_since.get_or_insert(ctx.now.instant);
        if since + ctx.flow.wait_open <= ctx.now.instant {
            let ask = ctx.out.ask();
            self.step = Step::ProbingBeyond { ask, stable: answer.clone() };
            let partitions = answer.keys().cloned().collect();
            ctx.out.push(Command::SourceOffsets { ask, partitions, at: Place::HighWatermark });
        }
    }

    /// A transaction holds back what lies between where readers stand and the end of what is replicated.
    fn beyond_probed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        stable: &SourceOffsets,
        answer: &SourceOffsets,
    ) {
        let offset = |of: &SourceOffsets, partition| Some(of.get(partition)?.as_ref().ok()?.offset);
        let has_more = |partition| offset(stable, partition) < offset(answer, partition);
        if !stable.keys().all(has_more) {
            self.step = Step::Idle;
            self.held_since = None;
            return;
        }
        let ask = ctx.out.ask();
        self.step = Step::NamingTransactions(ask);
        let partitions = answer.keys().cloned().collect();
        ctx.out.push(Command::OpenTransactions { ask, partitions });
    }

    /// Everything is settled: do readers of the target see it?
    fn target_probed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        halted: BTreeMap<SourcePartition, String>,
        answer: &BTreeMap<TargetPartition, Result<TargetEnd, Trouble>>,
    ) -> Option<Exit> {
        let visible = self.copies().all(|(target, _, settled)| {
            let shown = answer.get(&target).and_then(|end| end.as_ref().ok()).map(|end| end.last_stable);
            Some(settled) <= shown
        });
        if !visible {
            self.step = Step::Idle;
            self.pause(ctx);
            return None;
        }
        let topics: BTreeSet<TopicName> = self.copies().map(|(target, ..)| target.topic).collect();
        if topics.is_empty() {
            return Some(self.over(ctx, halted));
        }
        let ask = ctx.out.ask();
        self.step = Step::ProvingTarget { ask, halted };
        let topics = Topics::Named(topics.into_iter().collect());
        ctx.out.push(Command::Describe { side: Side::Target, ask, topics });
        None
    }

    /// A topic that was deleted or made anew is its lane's to find out and to tell.
    fn target_proved(
        &mut self,
        ctx: &Context<'_, impl Faults>,
        halted: BTreeMap<SourcePartition, String>,
        answer: &Result<Listing, Trouble>,
    ) -> Option<Exit> {
        let is_same = |(target, entry, _): (TargetPartition, &Entry, _)| {
            let info = answer.as_ref().ok().and_then(|listing| listing.topics.get(&target.topic));
            info.is_some_and(|info| info.id == entry.target_id)
        };
        if !self.copies().all(is_same) && !ctx.plants(Mutant::ContinuesTopicsMadeAnew) {
            self.step = Step::Idle;
            self.pause(ctx);
            return None;
        }
        Some(self.over(ctx, halted))
    }

    fn over(&mut self, ctx: &Context<'_, impl Faults>, halted: BTreeMap<SourcePartition, String>) -> Exit {
        self.step = Step::Over;
        let is_done = halted.is_empty() || ctx.plants(Mutant::HaltedIsDone);
        if is_done { Exit::Done } else { Exit::Halted(halted) }
    }

    /// The run's target partitions, with what readers must see of them. What a halted one lacks on the target
    /// is what it halted for.
    fn copies(&self) -> impl Iterator<Item = (TargetPartition, &Entry, TargetOffset)> {
        self.ends.keys().filter_map(|source| {
            let entry = self.flow.entries.get(source).filter(|entry| entry.halted.is_none())?;
            let target = TargetPartition { topic: entry.target_topic.clone(), partition: source.partition };
            Some((target, entry, entry.target_end?))
        })
    }

    /// Partitions that have neither reached their end nor halted.
    fn left(&self, ctx: &Context<'_, impl Faults>, around: &Surroundings<'_>) -> BTreeSet<SourcePartition> {
        let halted = self.halted(ctx, around);
        let ahead = self.ends.iter().filter(|(partition, end)| {
            !self.flow.has_reached(partition, **end)
                || self.awaits_word(ctx, around, partition)
                || self.is_unwritten(ctx, around, partition)
                || self.is_another(ctx, around.know, partition)
        });
        let left = ahead.map(|(partition, _)| partition).chain(self.gone(ctx, around));
        let is_elsewhere = |partition: &SourcePartition| {
            ctx.plants(Mutant::DoneOnceOwnLanesAre) && own_lane(ctx, around, partition).is_none()
        };
        left.filter(|partition| !halted.contains_key(*partition) && !is_elsewhere(partition))
            .cloned()
            .collect()
    }

    /// Whether a topic of which no end is fixed was only missing from a listing.
    fn has_reappeared(&self, know: &Knowledge) -> bool {
        let lacks_ends = |topic: &&TopicName| !self.ends.keys().any(|partition| partition.topic == **topic);
        self.copied_before.iter().flatten().filter(lacks_ends).any(|topic| is_there(know, topic))
    }

    /// Partitions that were copied once and that the source has no more, so that no end was fixed for them. Their
    /// lanes are to say what has become of them.
    fn gone(
        &self,
        ctx: &Context<'_, impl Faults>,
        around: &Surroundings<'_>,
    ) -> impl Iterator<Item = &SourcePartition> {
        let is_gone = |partition: &&SourcePartition| {
            !self.ends.contains_key(*partition)
                && ctx.flow.filter.takes(&partition.topic)
                && !is_there(around.know, &partition.topic)
        };
        self.flow.entries.keys().filter(is_gone)
    }

    fn halted(
        &self,
        ctx: &Context<'_, impl Faults>,
        around: &Surroundings<'_>,
    ) -> BTreeMap<SourcePartition, String> {
        let reason = |partition: &SourcePartition, end: SourceOffset| {
            let entry = self.flow.entries.get(partition);
            if let Some(halt) = entry.and_then(|entry| entry.halted.as_ref()) {
                return self.is_present(ctx, around, partition).then(|| halt.to_string());
            }
            if self.flow.has_reached(partition, end) {
                return None;
            }
            let gone = entry.is_none() && around.know.discovery.is_deleted(Side::Source, &partition.topic);
            // A listing leaves out what this user may not see, as it does what is gone.
            let gone =
                gone.then(|| "the source no longer shows the topic: deleted, or not allowed".to_string());
            around.topics.refusal(&partition.topic).map(str::to_owned).or(gone)
        };
        let halted = |(partition, end): (&SourcePartition, SourceOffset)| {
            Some((partition.clone(), reason(partition, end)?))
        };
        let ends = self.ends.iter().map(|(partition, end)| (partition, *end));
        ends.chain(self.gone(ctx, around).map(|partition| (partition, SourceOffset::ZERO)))
            .filter_map(halted)
            .collect()
    }

    /// Whether a halt that the ledger shows is more than the trace of an earlier run, whose cause may be gone:
    /// the lane's owner says so where that is us, and has had the time to say otherwise where it is not.
    fn is_present(
        &self,
        ctx: &Context<'_, impl Faults>,
        around: &Surroundings<'_>,
        partition: &SourcePartition,
    ) -> bool {
        match own_lane(ctx, around, partition) {
            Some(lane) => lane.has_halted(partition),
            None => self.started + ctx.flow.limits.regroup_max <= ctx.now.instant,
        }
    }

    /// Whether another instance's lane has yet to say if a halt that the ledger shows still stands: its position can
    /// be one of a topic that is no more.
    fn awaits_word(
        &self,
        ctx: &Context<'_, impl Faults>,
        around: &Surroundings<'_>,
        partition: &SourcePartition,
    ) -> bool {
        let is_halted = self.flow.entries.get(partition).is_some_and(|entry| entry.halted.is_some());
        let is_elsewhere = own_lane(ctx, around, partition).is_none();
        is_halted && is_elsewhere && !self.is_present(ctx, around, partition)
    }

    /// Whether a partition has halted here and the ledger does not show it yet.
    fn is_unwritten(
        &self,
        ctx: &Context<'_, impl Faults>,
        around: &Surroundings<'_>,
        partition: &SourcePartition,
    ) -> bool {
        let has_halted = own_lane(ctx, around, partition).is_some_and(|lane| lane.has_halted(partition));
        has_halted && self.flow.entries.get(partition).is_some_and(|entry| entry.halted.is_none())
    }

    /// Whether the source's topic is not the one that the ledger speaks of: the position in that one says nothing of it,
    /// and its lane is to say so.
    fn is_another(
        &self,
        ctx: &Context<'_, impl Faults>,
        know: &Knowledge,
        partition: &SourcePartition,
    ) -> bool {
        let listed = know.discovery.source_topic(&partition.topic).map(|info| info.id);
        let is_another = listed.zip(self.flow.source_id(partition)).is_some_and(|(listed, it)| listed != it);
        is_another && !ctx.plants(Mutant::ContinuesTopicsMadeAnew)
    }

    fn pause(&mut self, ctx: &Context<'_, impl Faults>) {
        self.next = Some(ctx.now.instant + SOON);
    }
}

/// The partition's lane, where this instance has it.
fn own_lane<'a>(
    ctx: &Context<'_, impl Faults>,
    around: &Surroundings<'a>,
    partition: &SourcePartition,
) -> Option<&'a Lane> {
    around.lanes.get(&lane_of(partition, ctx.flow.lanes)).filter(|lane| !lane.is_closed())
}

/// Whether the source has the topic, as far as listings tell.
fn is_there(know: &Knowledge, topic: &TopicName) -> bool {
    know.discovery.source_topic(topic).is_some() && !know.discovery.is_deleted(Side::Source, topic)
}

impl BoundedRun {
    /// What stops before the end must say so.
    pub fn stopped_early(&self, flow: &Flow) -> Exit {
        let (done, total) = self.progress();
        Exit::Unsettled(format!(
            "flow {} stopped before its end: {done} of {total} offsets settled",
            flow.name
        ))
    }
}
