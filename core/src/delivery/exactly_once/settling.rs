//! Settling: the run's progress joins its records in the ledger, then both are committed.

use super::joining::recreated;
use super::run::{Run, RunPart};
use super::{Lane, Share, Stage, Transaction};
use crate::command::LaneCommand;
use crate::event::{Ask, Step};
use crate::failure::{Failure, Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::identity::Identity;
use crate::ledger::{Entry, HaltReason, Record};
use crate::mirror::{Context, Knowledge, ledger_gone};
use kafka_types::{SourcePartition, TargetOffset, TopicId, TopicName};
use std::collections::BTreeSet;

/// Whether all topics of a run are still the ones it was read from and written to.
enum Proof {
    Pending,
    Given,
    Broken(TopicName, HaltReason, String),
    LedgerGone,
    /// Of what was read of this partition, some may have been read under another leader than the rest.
    Elected(SourcePartition),
    /// Its leader does not say who it is.
    Unanswered(SourcePartition, Trouble),
}

impl Lane {
    /// Lane 0: writes `records` with the next settle, soon.
    pub fn note(&mut self, records: Vec<Record>) {
        self.notes.extend(records);
    }

    pub(super) fn cut_if_due(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if self.stage != Stage::Mirroring(Transaction::Collecting) {
            return;
        }
        let now = ctx.now.instant;
        let due = self.run.cut_at(self.pace.interval_max()).is_some_and(|at| at <= now);
        let leaving = self.leaving.is_some() && !self.run.is_empty();
        let waiting = !self.halts.is_empty() || !self.notes.is_empty();
        if due || leaving || waiting || self.run.is_full(&self.pace) {
            self.cut(ctx, know);
        }
    }

    /// Nothing more joins this run. Topic ids asked for from now on prove what it was read from (H6).
    fn cut(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        let cut = ctx.out.asked();
        // Until it is settled, whatever holds it up.
        self.unable_since.get_or_insert(ctx.now.instant);
        self.stage = Stage::Mirroring(Transaction::Flushing { cut });
        let sources: BTreeSet<TopicName> = self.to_prove().map(|partition| partition.topic.clone()).collect();
        know.identity.want(ctx, Side::Source, sources);
        let doubtful: Vec<SourcePartition> = self.passed_something(know).cloned().collect();
        know.leaders.want(ctx, doubtful);
    }

    /// All of it is on the target. Topic ids asked for from now on prove what it was written to: a record still
    /// under way could land in a topic that was made anew behind an earlier answer.
    fn prove(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge, cut: Ask) {
        let acknowledged = ctx.out.asked();
        self.stage = Stage::Mirroring(Transaction::Proving { cut, acknowledged });
        let targets = self.to_prove().filter_map(|partition| self.base(know, partition));
        let mut targets: BTreeSet<TopicName> = targets.map(|base| base.target_topic).collect();
        targets.insert(ctx.flow.name.ledger());
        know.identity.want(ctx, Side::Target, targets);
    }

    /// Commits the run once it is acknowledged and its topics are proved.
    pub(super) fn try_settle(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if let Stage::Mirroring(Transaction::Flushing { cut }) = self.stage
            && (self.run.is_acknowledged() || ctx.plants(Mutant::SettlesUnacknowledged))
        {
            self.prove(ctx, know, cut);
        }
        let Stage::Mirroring(Transaction::Proving { cut, acknowledged }) = self.stage else { return };
        match self.proof(ctx, know, cut, acknowledged) {
            Proof::Pending => {}
            Proof::Given => {
                let records = self.records_to_settle(ctx, know);
                if records.is_empty() {
                    // Halts without a place in the ledger: there is no transaction to commit.
                    self.stage = Stage::Mirroring(Transaction::Collecting);
                    return;
                }
                let encoded = records.iter().map(Record::encode).collect();
                self.stage = Stage::Mirroring(Transaction::Settling { records });
                ctx.out.lane(self.id, self.attempt, LaneCommand::Settle { records: encoded });
            }
            Proof::Broken(topic, reason, detail) => self.give_up_topic(ctx, &topic, reason, &detail),
            Proof::LedgerGone => ctx.out.end(ledger_gone(ctx.flow)),
            Proof::Elected(partition) => {
                self.abort(ctx, &format!("{partition} is read again, under the leader that it has now"));
            }
            Proof::Unanswered(partition, trouble) => {
                let text = format!("the leader of {partition} does not answer: {trouble}");
                self.failed(ctx, Step::Settle, Failure::Retry(text));
            }
        }
    }

    /// The transaction is committed: what it held is the lane's progress.
    pub(super) fn on_settled(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        last: Option<TargetOffset>,
    ) {
        if self.stage == Stage::Claiming {
            return self.claimed(ctx, last);
        }
        let Stage::Mirroring(Transaction::Settling { records }) = &mut self.stage else { return };
        for record in std::mem::take(records) {
            if let Record::Entry(partition, entry) = &record {
                let passed = self.careful.get(partition).is_some_and(|it| it.until <= entry.next);
                if passed {
                    self.careful.remove(partition);
                }
                // Another record stands where the refused one was.
                if self.poison.get(partition).is_some_and(|poison| poison.record.offset < entry.next) {
                    self.poison.remove(partition);
                }
                if entry.halted.is_some() && matches!(self.shares.get(partition), Some(Share::Reading { .. }))
                {
                    self.halts.insert(partition.clone(), None);
                }
            }
            self.ledger.apply(record);
        }
        let run = std::mem::take(&mut self.run);
        if !run.is_empty() && !ctx.plants(Mutant::KeepsItsSize) {
            self.pace.settled(&run.course(ctx.now.instant));
        }
        self.settled.records += run.records();
        self.settled.bytes += run.bytes();
        self.settled.transactions += 1;
        self.unable_since = None;
        self.backoff.reset();
        self.stage = Stage::Mirroring(Transaction::Collecting);
        know.settled_something = true;
    }

    pub(super) fn drop_run(&mut self, ctx: &Context<'_, impl Faults>) {
        self.gave_up_run |= !self.run.is_empty();
        self.run = Run::default();
        self.stopped.clear();
        self.intake.reset();
        if ctx.plants(Mutant::BuffersOutliveTheirAttempt) {
            return self.backlog.iter().for_each(|arrival| self.intake.fetched(arrival.weight()));
        }
        self.backlog.clear();
    }

    /// The partitions of this run, and those that halted over a record: it was read, and refused, under its topic's name
    /// as well.
    fn to_prove(&self) -> impl Iterator<Item = &SourcePartition> {
        let is_of_record = |partition: &&SourcePartition| self.has_unwritten_halt_over_record(partition);
        let halted = self.halts.keys().filter(is_of_record);
        self.run.parts().keys().chain(halted.filter(|partition| !self.run.parts().contains_key(*partition)))
    }

    fn has_unwritten_halt_over_record(&self, partition: &SourcePartition) -> bool {
        matches!(self.halts.get(partition), Some(Some(halt)) if halt.reason.is_of_record())
    }

    fn proof(&self, ctx: &Context<'_, impl Faults>, know: &Knowledge, cut: Ask, acknowledged: Ask) -> Proof {
        let ledger = ctx.flow.name.ledger();
        match know.identity.since(Side::Target, &ledger, acknowledged) {
            Identity::Pending => return Proof::Pending,
            Identity::Is(id) if id == know.ledger_id => {}
            Identity::Is(_) | Identity::Deleted => return Proof::LedgerGone,
        }
        if ctx.plants(Mutant::ProvesTopicsAtTakeOnly) {
            return Proof::Given;
        }
        for partition in self.to_prove() {
            let Some(base) = self.base(know, partition) else {
                // Of a halt without a base nothing is written.
                if self.run.parts().contains_key(partition) {
                    return Proof::Pending;
                }
                continue;
            };
            let checks = [
                (Side::Source, &partition.topic, base.source_id, cut),
                (Side::Target, &base.target_topic, base.target_id, acknowledged),
            ];
            for (side, topic, expected, since) in checks {
                match know.identity.since(side, topic, since) {
                    Identity::Pending => return Proof::Pending,
                    Identity::Is(id) if id == expected || ctx.plants(Mutant::ContinuesTopicsMadeAnew) => {}
                    Identity::Is(id) => return broken_by(side, partition, topic, expected, Some(id)),
                    Identity::Deleted => return broken_by(side, partition, topic, expected, None),
                }
            }
        }
        self.proof_of_reading(know, cut)
    }

    /// Whether each partition had one leader while all was read that is to be settled, as far as records do not show it.
    fn proof_of_reading(&self, know: &Knowledge, cut: Ask) -> Proof {
        for partition in self.passed_something(know) {
            let epoch = match know.leaders.since(partition, cut) {
                None => return Proof::Pending,
                Some(Err(trouble)) => return Proof::Unanswered(partition.clone(), trouble.clone()),
                // Brokers before 2.1 tell of no epochs, and their clients check none.
                Some(Ok(None)) => continue,
                Some(Ok(epoch)) => epoch,
            };
            let began_under = self.began_under.get(partition).copied();
            // Nobody of an older epoch led since the last record was written that the ledger has.
            let last = self.base(know, partition).and_then(|base| base.last).map(|last| last.epoch);
            if ![began_under, last].contains(epoch) {
                return Proof::Elected(partition.clone());
            }
        }
        Proof::Given
    }

    /// The partitions of the run of which something other than records was passed since the last record that the ledger
    /// has, or whose leader has changed since.
    fn passed_something(&self, know: &Knowledge) -> impl Iterator<Item = &SourcePartition> {
        let passes = |(partition, part): &(&SourcePartition, &RunPart)| {
            self.base(know, partition).is_some_and(|base| part.passes_something(&base))
        };
        self.run.parts().iter().filter(passes).map(|(partition, _)| partition)
    }

    /// The run is undone, and every partition of the topic halts; the others are read again.
    fn give_up_topic(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        topic: &TopicName,
        reason: HaltReason,
        detail: &str,
    ) {
        let partitions: Vec<SourcePartition> =
            self.shares.keys().filter(|partition| partition.topic == *topic).cloned().collect();
        for partition in partitions {
            let has_halted = matches!(self.shares.get(&partition), Some(Share::Halted(_)));
            if !has_halted || self.has_unwritten_halt_over_record(&partition) {
                self.halt(ctx, &partition, reason, None, detail.into());
            }
        }
        self.abort(ctx, detail);
    }

    /// For tests: positions that planted bugs make of right ones.
    fn misjudge_position(
        &self,
        ctx: &Context<'_, impl Faults>,
        partition: &SourcePartition,
        entry: &mut Entry,
    ) {
        let counts_what_was_read = ctx.plants(Mutant::SettlesWhatWasRead)
            || (ctx.plants(Mutant::SettlesBuffersThatItDrops) && self.leaving.is_some());
        if counts_what_was_read && let Some(Share::Reading { next }) = self.shares.get(partition) {
            entry.next = *next;
        }
        if ctx.plants(Mutant::PositionOneTooFar) {
            entry.next = entry.next.next();
        }
        if ctx.plants(Mutant::PositionOneShort) && entry.start < entry.next {
            entry.next.0 -= 1;
        }
    }

    fn records_to_settle(&mut self, ctx: &Context<'_, impl Faults>, know: &Knowledge) -> Vec<Record> {
        let mut records = std::mem::take(&mut self.notes);
        let halted: BTreeSet<SourcePartition> = self.halts.keys().cloned().collect();
        let partitions: BTreeSet<SourcePartition> = self.run.parts().keys().cloned().chain(halted).collect();
        for partition in partitions {
            let halt = self.halts.remove(&partition).flatten();
            // Without a topic record there is no entry to write; the halt stands in the log.
            let Some(base) = self.base(know, &partition) else { continue };
            let mut entry = match self.run.parts().get(&partition) {
                Some(part) => advance(base, part),
                None => base,
            };
            self.misjudge_position(ctx, &partition, &mut entry);
            entry.settled_at = ctx.now.wall;
            entry.halted = halt;
            records.push(Record::Entry(partition, entry));
        }
        records
    }
}

fn broken_by(
    side: Side,
    partition: &SourcePartition,
    topic: &TopicName,
    expected: TopicId,
    found: Option<TopicId>,
) -> Proof {
    let (reason, detail) = match found {
        Some(id) => (HaltReason::Recreated, recreated(side, topic, expected, id)),
        None => (HaltReason::Deleted, format!("{side} topic {topic} was deleted")),
    };
    Proof::Broken(partition.topic.clone(), reason, detail)
}

/// The entry after `part` on top of the one before.
fn advance(base: Entry, part: &RunPart) -> Entry {
    let offsets = part.offsets();
    let target_end = match (part.has_records(), offsets) {
        (false, _) => base.target_end,
        (true, Some(run)) => Some(run.target_last.next()),
        (true, None) => None,
    };
    Entry {
        next: part.next,
        last: part.last.or(base.last),
        run: offsets,
        target_end,
        records: base.records + part.digest.records,
        bytes: base.bytes + part.bytes,
        digest: base.digest.join(part.digest),
        timestamp: part.timestamp.or(base.timestamp),
        ..base
    }
}
