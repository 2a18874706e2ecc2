//! How a partition joins its lane: nothing is copied before both topics are proved to be the right ones.

use super::halting::verdict_on;
use super::{Lane, Share, Stage, Transaction, Verdict};
use crate::backoff::SOON;
use crate::command::{LaneCommand, Position, PrepareFrom};
use crate::event::{SourceStop, TargetState};
use crate::failure::{Failure, Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::identity::Identity;
use crate::lane::lane_of;
use crate::ledger::{Entry, Halt, HaltReason, LastRecord};
use crate::mirror::{Context, Knowledge};
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetPartition, TopicId, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a waiting partition may be copied.
enum Readiness {
    Wait,
    Ready(TargetPartition, PrepareFrom),
    /// As the ledger has it.
    Stays(Halt),
    Halt(HaltReason, String),
}

/// Whether a topic is the one that was read or written before.
enum Same {
    Yes,
    NotYetKnown,
    No(HaltReason, String),
}

impl Lane {
    /// Lets waiting partitions join that may.
    pub(super) fn join(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if !self.join_due || !self.is_mirroring() || self.leaving.is_some() {
            return;
        }
        self.join_due = false;
        self.doubt_reading(ctx, know);
        let lane_has = |partition: &SourcePartition| lane_of(partition, ctx.flow.lanes) == self.id;
        let mut wanted: BTreeSet<SourcePartition> =
            know.discovery.source_partitions().filter(lane_has).collect();
        // Topics that are gone, or shrank, are known from the ledger alone.
        let takes = |partition: &&SourcePartition| ctx.flow.filter.takes(&partition.topic);
        wanted.extend(self.ledger.entries.keys().filter(takes).cloned());
        for partition in wanted {
            self.shares.entry(partition).or_insert(Share::Waiting);
        }
        for (partition, share) in &mut self.shares {
            let record = know.topic_table.get(&partition.topic);
            let fit = record.and_then(|it| it.target.as_ref()).is_some_and(|pin| pin.unfit.is_none());
            if fit && matches!(share, Share::Halted(Halt { reason: HaltReason::Unfit, .. })) {
                *share = Share::Waiting;
            }
        }
        let waiting: Vec<SourcePartition> = self
            .shares
            .iter()
            .filter(|(_, share)| **share == Share::Waiting)
            .map(|(partition, _)| partition.clone())
            .collect();
        let mut targets = BTreeMap::new();
        let mut again = false;
        for partition in waiting {
            match self.readiness(ctx, know, &partition) {
                Readiness::Wait => self.join_soon(ctx),
                Readiness::Ready(target, from) => match self.stopped.get(&partition).cloned() {
                    Some(Some(verdict)) => self.halt_for(ctx, &partition, verdict),
                    Some(None) => again = true,
                    None => {
                        self.shares.insert(partition, Share::Preparing);
                        targets.insert(target, from);
                    }
                },
                Readiness::Stays(halt) => {
                    self.shares.insert(partition, Share::Halted(halt));
                }
                Readiness::Halt(reason, detail) => self.halt(ctx, &partition, reason, None, detail),
            }
        }
        if !targets.is_empty() {
            ctx.out.lane(self.id, self.attempt, LaneCommand::Prepare { targets });
        }
        if again {
            self.read_again(ctx);
        }
    }

    /// Partitions that stopped can be read after all, which takes a new attempt.
    fn read_again(&mut self, ctx: &mut Context<'_, impl Faults>) {
        match self.stage {
            Stage::Mirroring(
                Transaction::Collecting | Transaction::Flushing { .. } | Transaction::Proving { .. },
            ) => {
                self.abort(ctx, "partitions that had stopped are read again");
            }
            // Its outcome is near, and must not be put in doubt.
            _ => self.join_soon(ctx),
        }
    }

    /// A client that reads, or waits at the end of, a topic that was made anew notices nothing (H6).
    fn doubt_reading(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if ctx.plants(Mutant::ProvesTopicsAtTakeOnly) {
            return;
        }
        let reading = self.shares.iter().filter(|(_, share)| matches!(share, Share::Reading { .. }));
        let mut doubts = Vec::new();
        for (partition, _) in reading {
            let Some(base) = self.base(know, partition) else { continue };
            let sides = [
                (Side::Source, partition.topic.clone(), base.source_id),
                (Side::Target, base.target_topic, base.target_id),
            ];
            let doubted = sides.into_iter().find(|(side, topic, id)| {
                let listed = know.discovery.topic(*side, topic);
                let since = know.discovery.listed_at(*side);
                (listed.is_some_and(|info| info.id != *id) || know.discovery.is_deleted(*side, topic))
                    && know.identity.since(*side, topic, since) != Identity::Is(*id)
            });
            doubts.extend(doubted.map(|(side, topic, _)| (partition.clone(), side, topic)));
        }
        for (partition, side, topic) in doubts {
            self.suspect(ctx, know, &partition, side, topic);
        }
    }

    /// The lane has looked at target partitions.
    pub(super) fn prepared(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        states: BTreeMap<TargetPartition, Result<TargetState, Failure>>,
    ) {
        let preparing: Vec<SourcePartition> = self
            .shares
            .iter()
            .filter(|(_, share)| **share == Share::Preparing)
            .map(|(partition, _)| partition.clone())
            .collect();
        let mut positions = Vec::new();
        for partition in preparing {
            let Some(base) = self.base(know, &partition) else { continue };
            let target = TargetPartition { topic: base.target_topic.clone(), partition: partition.partition };
            match states.get(&target) {
                None => {}
                Some(Ok(state)) => match check_target(&base, state) {
                    Ok(()) => positions.push(self.start_reading(ctx, know, &partition, &base)),
                    // A target topic that was made anew looks just so.
                    Err((reason, detail)) => {
                        self.suspect(ctx, know, &partition, Side::Target, target.topic);
                        self.stopped.insert(partition, Some(Verdict { reason, offset: None, detail }));
                    }
                },
                Some(Err(Failure::Fatal(Trouble::NotAuthorized { resource, operation }))) => {
                    let detail = format!("the target cluster refuses {operation} on {resource}");
                    self.halt(ctx, &partition, HaltReason::NotAuthorized, None, detail);
                }
                Some(Err(failure)) => {
                    tracing::warn!(lane = %self.id, %partition, %failure, "target partition not ready");
                    self.shares.insert(partition, Share::Waiting);
                    self.join_soon(ctx);
                }
            }
        }
        if !positions.is_empty() {
            ctx.out.lane(self.id, self.attempt, LaneCommand::Assign { positions });
        }
        if self.run.is_empty() && self.stage == Stage::Mirroring(Transaction::Collecting) {
            // A preparation that had failed is made good; there is nothing to settle that could say so.
            self.unable_since = None;
        }
    }

    /// Where to read `partition` from, its share set accordingly.
    pub(super) fn start_reading(
        &mut self,
        ctx: &Context<'_, impl Faults>,
        know: &Knowledge,
        partition: &SourcePartition,
        base: &Entry,
    ) -> Position {
        // What halted it before may be over: the ledger says so once the partition is seen to move.
        self.halts.remove(partition);
        self.shares.insert(partition.clone(), Share::Reading { next: base.next });
        self.began_under.extend(know.leaders.latest(partition).map(|epoch| (partition.clone(), epoch)));
        let stop_before = self.poison.get(partition).map(|poison| poison.record);
        let is_unchecked =
            ctx.plants(Mutant::PositionsWithoutEpoch) || ctx.plants(Mutant::TruncationIsIgnored);
        let last = beginning(base).filter(|_| !is_unchecked);
        let last_record = last_record(base).filter(|_| !is_unchecked);
        Position { partition: partition.clone(), offset: base.next, last, last_record, stop_before }
    }

    /// For tests: a planted bug reads on from a place of its own choice.
    pub(super) fn read_on(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &Knowledge,
        partition: &SourcePartition,
        from: SourceOffset,
    ) {
        let Some(base) = self.base(know, partition) else { return };
        let position = self.start_reading(ctx, know, partition, &Entry { next: from, last: None, ..base });
        ctx.out.lane(self.id, self.attempt, LaneCommand::Assign { positions: vec![position] });
    }

    /// The partition's last entry; for one never copied, what its first entry will build on.
    pub(super) fn base(&self, know: &Knowledge, partition: &SourcePartition) -> Option<Entry> {
        if let Some(entry) = self.ledger.entries.get(partition) {
            return Some(entry.clone());
        }
        let record = know.topic_table.get(&partition.topic)?;
        let target = record.target.as_ref()?;
        let start = record.start(partition.partition);
        let target_start = target.end(partition.partition);
        Some(Entry::first(start, record.source_id, target.topic.clone(), target.id, target_start))
    }

    /// Tries waiting partitions again within a second.
    pub(super) fn join_soon(&mut self, ctx: &Context<'_, impl Faults>) {
        self.join_at.get_or_insert(ctx.now.instant + SOON);
    }

    /// The source gives no more of a partition.
    pub(super) fn source_stopped(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        partition: &SourcePartition,
        stop: SourceStop,
    ) {
        match &stop {
            SourceStop::OutOfRange { log_start: Some(start), .. }
                if ctx.plants(Mutant::OutOfRangeGoesOnFromStart) =>
            {
                self.read_on(ctx, know, partition, *start);
            }
            SourceStop::OutOfRange { log_end: Some(end), .. }
                if ctx.plants(Mutant::OutOfRangeGoesOnFromEnd) =>
            {
                self.read_on(ctx, know, partition, *end);
            }
            // A topic that was made anew looks just so: the stop is judged once the topic is known to be the same.
            SourceStop::OutOfRange { .. } | SourceStop::Truncated { .. } | SourceStop::Gone => {
                self.suspect(ctx, know, partition, Side::Source, partition.topic.clone());
                let verdict = verdict_on(partition, stop);
                let verdict = verdict.filter(|it| !ignores(ctx, it));
                self.stopped.insert(partition.clone(), verdict);
            }
            SourceStop::AtRefused { offset } => self.at_refused(ctx, know, partition, *offset),
            SourceStop::Unsendable { .. } | SourceStop::Unreadable { .. } | SourceStop::NotAuthorized => {
                if let Some(verdict) = verdict_on(partition, stop) {
                    self.halt_for(ctx, partition, verdict);
                }
            }
        }
    }

    /// The partition, or its copy, seems to be gone or another: it is read again once answers from now on
    /// say otherwise.
    pub(super) fn suspect(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        partition: &SourcePartition,
        side: Side,
        topic: TopicName,
    ) {
        self.suspects.insert((side, topic.clone()), ctx.out.asked());
        self.shares.insert(partition.clone(), Share::Waiting);
        self.unassign(ctx, partition);
        know.identity.want(ctx, side, [topic]);
        self.join_soon(ctx);
    }

    fn readiness(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        partition: &SourcePartition,
    ) -> Readiness {
        let Some(record) = know.topic_table.get(&partition.topic).cloned() else { return Readiness::Wait };
        let entry = self.ledger.entries.get(partition);
        if entry.is_none() && record.target.is_none() {
            // Not even a target topic yet: should the source topic be gone or another, it is as if it had
            // never been seen, and the owner of lane 0 makes its record anew.
            return Readiness::Wait;
        }
        let source_id = entry.map_or(record.source_id, |entry| entry.source_id);
        match self.same_source(ctx, know, &partition.topic, source_id) {
            Same::Yes => {}
            Same::NotYetKnown => return Readiness::Wait,
            Same::No(reason, detail) => return Readiness::Halt(reason, detail),
        }
        let Some(pin) = &record.target else { return Readiness::Wait };
        if let Some(why) = &pin.unfit {
            return Readiness::Halt(HaltReason::Unfit, why.clone());
        }
        let entry = self.ledger.entries.get(partition);
        let (topic, id) = entry.map_or((&pin.topic, pin.id), |entry| (&entry.target_topic, entry.target_id));
        let topic = topic.clone();
        match self.same_target(ctx, know, &topic, id, partition) {
            Same::Yes => {}
            Same::NotYetKnown => return Readiness::Wait,
            Same::No(reason, detail) => return Readiness::Halt(reason, detail),
        }
        let entry = self.ledger.entries.get(partition);
        // What a log has lost it does not show for ever: it can grow beyond the position again, and compaction and
        // replication can wear away what its history says.
        let stays = entry.and_then(|entry| entry.halted.clone()).filter(stays_truncated);
        if let Some(halt) = stays.filter(|_| !ctx.plants(Mutant::TruncationIsIgnored)) {
            return Readiness::Stays(halt);
        }
        let end = entry.map_or(Some(pin.end(partition.partition)), |entry| entry.target_end);
        let target = TargetPartition { topic, partition: partition.partition };
        Readiness::Ready(target, end.map_or(PrepareFrom::Nowhere, PrepareFrom::Offset))
    }

    fn same_source(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        topic: &TopicName,
        expected: TopicId,
    ) -> Same {
        let listed = know.discovery.source_topic(topic).map(|info| info.id);
        let found = self.find(ctx, know, Side::Source, topic, listed, expected);
        same(ctx, know, Side::Source, topic, expected, found)
    }

    fn same_target(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        topic: &TopicName,
        expected: TopicId,
        partition: &SourcePartition,
    ) -> Same {
        let listed = know.discovery.target_topic(topic).cloned();
        let found = self.find(ctx, know, Side::Target, topic, listed.as_ref().map(|info| info.id), expected);
        let is_there = listed.is_some_and(|info| {
            info.id == expected && partition.partition.index() < info.partitions as usize
        });
        if !is_there {
            // It is to be created or grown by the owner of lane 0, or was since the last listing.
            know.discovery.look_soon(ctx.now.instant, Side::Target);
        }
        match same(ctx, know, Side::Target, topic, expected, found) {
            Same::Yes if !is_there => Same::NotYetKnown,
            other => other,
        }
    }

    /// A listing may be older than what the ledger says, so it proves that a topic is the expected one, and
    /// raises doubt where it is not; only an answer to a question asked since then proves that it is another.
    fn find(
        &mut self,
        ctx: &Context<'_, impl Faults>,
        know: &Knowledge,
        side: Side,
        topic: &TopicName,
        listed: Option<TopicId>,
        expected: TopicId,
    ) -> Identity {
        let key = (side, topic.clone());
        let suspected = self.suspects.get(&key).copied();
        if suspected.is_none() && listed == Some(expected) && !know.discovery.is_deleted(side, topic) {
            return Identity::Is(expected);
        }
        let since = *self.suspects.entry(key).or_insert(ctx.out.asked());
        // What was answered before the latest listing says nothing against it.
        let contradicted = listed.is_some_and(|id| id != expected);
        let since = if contradicted { since.max(know.discovery.listed_at(side)) } else { since };
        know.identity.since(side, topic, since)
    }
}

/// Judges what was found against the id that the ledger has, asking where nothing is known.
fn same(
    ctx: &mut Context<'_, impl Faults>,
    know: &mut Knowledge,
    side: Side,
    topic: &TopicName,
    expected: TopicId,
    found: Identity,
) -> Same {
    match found {
        Identity::Is(id) if id == expected || ctx.plants(Mutant::ContinuesTopicsMadeAnew) => Same::Yes,
        Identity::Is(id) => Same::No(HaltReason::Recreated, recreated(side, topic, expected, id)),
        Identity::Deleted => Same::No(HaltReason::Deleted, format!("{side} topic {topic} was deleted")),
        Identity::Pending => {
            know.identity.want(ctx, side, [topic.clone()]);
            Same::NotYetKnown
        }
    }
}

pub(super) fn recreated(side: Side, topic: &TopicName, before: TopicId, now: TopicId) -> String {
    format!("{side} topic {topic} was deleted and made again (topic id {before}, now {now})")
}

/// The target partition must hold what the last entry says, and nothing after it.
fn check_target(base: &Entry, state: &TargetState) -> Result<(), (HaltReason, String)> {
    let Some(end) = base.target_end else { return Ok(()) };
    if state.high_watermark < end {
        let detail = format!(
            "target partition ends at offset {}, but the ledger settled records up to {end}: the target \
             lost data",
            state.high_watermark
        );
        return Err((HaltReason::RolledBack, detail));
    }
    if let Some(stray) = state.stray {
        let detail = format!(
            "target partition holds a record at offset {stray} that the ledger does not know: another \
             writer, or a lost ledger"
        );
        return Err((HaltReason::Torn, detail));
    }
    Ok(())
}

fn stays_truncated(halt: &Halt) -> bool {
    halt.reason == HaltReason::Truncated
}

/// For tests: whether a planted bug waits for a log that was cut back to grow again.
fn ignores(ctx: &Context<'_, impl Faults>, verdict: &Verdict) -> bool {
    ctx.plants(Mutant::TruncationIsIgnored) && verdict.reason == HaltReason::Truncated
}

/// Where reading a partition must begin for a divergence below its position to show.
fn beginning(base: &Entry) -> Option<OffsetAndEpoch> {
    let of_last = |last: LastRecord| OffsetAndEpoch { offset: last.next, epoch: Some(last.epoch) };
    let of_start = (base.start < base.next).then_some(OffsetAndEpoch { offset: base.start, epoch: None });
    // Below the very first offset there is nothing to be cut away.
    base.last.filter(|last| SourceOffset::ZERO < last.next).map(of_last).or(of_start)
}

/// The last record that was copied; the start of a partition that was never copied from is none.
fn last_record(base: &Entry) -> Option<OffsetAndEpoch> {
    let last = base.last.filter(|last| base.start < last.next)?;
    Some(OffsetAndEpoch { offset: SourceOffset(last.next.0 - 1), epoch: Some(last.epoch) })
}
