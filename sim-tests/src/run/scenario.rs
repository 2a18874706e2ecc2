use super::clusters::{Administrator, cleanup, side};
use super::denials::Denials;
use super::exits::ended;
use super::status::status;
use super::{Findings, Planted, heal, setup};
use crate::oracle::{
    Circumstances, Ends, Invariant, Oracle, Over, Standstill, Violation, exits_true, pinned, unhealed,
};
use crate::plan::{Action, Cluster as Named, LONG_PAUSE_MS, Plan, TimedAction, Urgency as Asked};
use crate::workload::{self, Workload};
use kafka_model::{BrokerId, Millis};
use kafka_types::{ErrorCode, SourcePartition};
use runtime_sim::{Cut, Fault, Handle, Moment, Slot};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use verbatim_core::Exit;
use verbatim_core::event::Urgency;
use verbatim_core::failure::{Side, Trouble};

/// How often the run looks whether something is wrong already.
const LOOK_EVERY_MS: Millis = 1_000;
/// How often `status` is looked at.
const STATUS_EVERY_MS: Millis = 10_000;
/// So many looks without a commit, and nothing is under way any more.
const QUIET_LOOKS: usize = 15;
/// Longer than any transaction of the mirror or the workload may stay open.
const PINNED_MS: Millis = 75_000;

struct Scene<'a> {
    handle: Handle,
    plan: &'a Plan,
    oracle: Rc<RefCell<Oracle>>,
    administrator: Administrator,
    starts: BTreeMap<Slot, u32>,
    started_at: BTreeMap<Slot, Millis>,
    /// What there was to copy when the slot's process started.
    ends: BTreeMap<Slot, Ends>,
    /// Partitions whose copy was gone by then, of which the ledger did not tell.
    untold: BTreeMap<Slot, Vec<SourcePartition>>,
    told_to_stop: BTreeSet<Slot>,
    /// Exits that were looked at.
    judged: BTreeSet<(Slot, u32)>,
    is_all_settled: bool,
    /// This slot's machine never reaches that cluster again.
    cut_for_good: Option<(Slot, Side)>,
    denials: Denials,
    /// What was done so far, by name.
    actions: BTreeMap<String, u64>,
}

pub async fn scenario(handle: Handle, plan: &Plan, planted: &Planted) -> Findings {
    let oracle = Rc::new(RefCell::new(Oracle::new(setup::flow_names(plan))));
    let watched = Rc::clone(&oracle);
    handle.watch(Box::new(move |seen, side, cluster| {
        let mut oracle = watched.borrow_mut();
        match side {
            Side::Source => oracle.observe_source(seen.now, cluster),
            Side::Target => oracle.observe_target(seen.now, cluster),
        }
        oracle.found_at(seen.step);
    }));
    let administrator = Administrator::new(&handle, &oracle);
    for (cluster, faults) in [(Named::Source, planted.source), (Named::Target, planted.target)] {
        handle.administer(side(cluster), |it, _| {
            it.plant(faults);
            Vec::new()
        });
    }
    for topic in &plan.topics {
        let config = cleanup(topic.is_compacted);
        administrator.create_topic(Named::Source, &topic.name, topic.partitions, config);
        if let Some(largest) = plan.rare.target_bytes_max.get(&topic.name) {
            let copy = format!("{}{}", plan.flow.target_prefix, topic.name);
            let config = ("max.message.bytes", largest.to_string());
            administrator.create_topic(Named::Target, &copy, topic.partitions, (config.0, &config.1));
        }
        if let Some(odd) = plan.rare.odd_copies.get(&topic.name) {
            let copy = format!("{}{}", plan.flow.target_prefix, topic.name);
            let (name, value) = odd.setting();
            administrator.create_topic(Named::Target, &copy, topic.partitions, (name, &value));
        }
    }
    administrator.throttle(Named::Target, plan.rare.target_throttle_ms);
    let mut scene = Scene {
        handle,
        plan,
        oracle,
        administrator,
        starts: BTreeMap::new(),
        started_at: BTreeMap::new(),
        ends: BTreeMap::new(),
        untold: BTreeMap::new(),
        told_to_stop: BTreeSet::new(),
        judged: BTreeSet::new(),
        is_all_settled: false,
        cut_for_good: None,
        denials: Denials::default(),
        actions: BTreeMap::new(),
    };
    let workload = workload::start(&scene.handle, plan);
    let is_sound = scene.attack().await;
    workload.end();
    let live_ms = scene.handle.now();
    let healed_after_ms = if is_sound { scene.heal(&workload).await } else { None };
    scene.findings(live_ms, healed_after_ms)
}

impl Scene<'_> {
    /// Workload and faults; whether nothing is wrong yet.
    async fn attack(&mut self) -> bool {
        // What lasts longer than the faults strike ends in the time after them.
        for timed in self.plan.actions.iter().filter(|timed| timed.at_ms < self.plan.active_ms) {
            if !self.sleep_until(timed.at_ms).await {
                return false;
            }
            self.act(&timed.action);
        }
        self.sleep_until(self.plan.active_ms).await
    }

    fn act(&mut self, action: &Action) {
        self.handle.note("action", &format!("{action:?}"));
        self.denials.note(self.handle.now(), action);
        *self.actions.entry(action.name()).or_default() += 1;
        if !self.administrator.act(action) {
            self.act_on_instance(action);
        }
    }

    /// Whether nothing went wrong until then.
    async fn sleep_until(&mut self, at: Millis) -> bool {
        while self.handle.now() < at {
            let next = at.min(self.handle.now() + LOOK_EVERY_MS);
            self.handle.sleep_until(next).await;
            self.judge_exits();
            if self.plan.rare.runs_again && next < self.plan.active_ms {
                self.run_again();
            }
            if next % STATUS_EVERY_MS < LOOK_EVERY_MS {
                self.judge_status();
            }
            self.oracle.borrow_mut().found_at(self.handle.steps());
            if !self.oracle.borrow().violations().is_empty() {
                return false;
            }
        }
        true
    }

    fn act_on_instance(&mut self, action: &Action) {
        match action {
            Action::Start { slot } => self.start_if_gone(*slot),
            Action::Crash { slot } => self.handle.crash(*slot),
            Action::CrashAt { slot, moment } => self.handle.crash_at(*slot, *moment),
            Action::CrashBrokerAt { slot, moment } => self.handle.crash_broker_at(*slot, *moment),
            Action::RecreateTopicAt { moment, cluster, topic, partitions } => {
                let (cluster, topic) = (*cluster, topic.clone());
                let action = Action::RecreateTopic { cluster, topic, partitions: *partitions };
                self.act_at(*moment, action);
            }
            Action::CutOff { slot, cluster, broker, answers_only, is_cut } => {
                let cut = if *answers_only { Cut::Answers } else { Cut::Both };
                match is_cut {
                    true => self.handle.cut_off(*slot, side(*cluster), broker.map(BrokerId), cut),
                    false => self.handle.reconnect(*slot),
                }
                self.cut_for_good();
            }
            Action::CutOffForGood { slot, cluster } => {
                self.cut_for_good = Some((*slot, side(*cluster)));
                self.cut_for_good();
            }
            Action::StallWorker { slot, is_stalled } => self.handle.stall(*slot, *is_stalled),
            Action::Pause { slot } => self.pause(*slot),
            Action::Resume { slot } => self.handle.resume(*slot),
            Action::SkewClock { slot, milliseconds } => self.handle.set_wall_skew(*slot, *milliseconds),
            Action::Stop { slot, urgency } => {
                self.told_to_stop.insert(*slot);
                let urgency = match urgency {
                    Asked::Settle => Urgency::Settle,
                    Asked::Now => Urgency::Now,
                };
                self.handle.stop(*slot, urgency);
            }
            // An administrator's.
            Action::CrashBroker { .. }
            | Action::RestartBroker { .. }
            | Action::MoveLeader { .. }
            | Action::MoveTransactionCoordinator { .. }
            | Action::MoveGroupCoordinator { .. }
            | Action::StallReplica { .. }
            | Action::UncleanElection { .. }
            | Action::DenyTopic { .. }
            | Action::DenyRight { .. }
            | Action::ForeignWrite { .. }
            | Action::DamagedBatch { .. }
            | Action::DeleteRecords { .. }
            | Action::Compact { .. }
            | Action::CreateTopic { .. }
            | Action::GrowTopic { .. }
            | Action::GrowLedger { .. }
            | Action::DeleteTopic { .. }
            | Action::RecreateTopic { .. }
            | Action::FillDisk { .. }
            | Action::Throttle { .. }
            | Action::ExpireMember { .. }
            | Action::DeleteGroup
            | Action::CommitForeignOffsets
            | Action::RemoveMember { .. }
            | Action::FenceLane { .. }
            | Action::CompactLedger { .. }
            | Action::ExpireTransactionalId { .. }
            | Action::ExpireProducers { .. }
            | Action::DelayMarkers { .. } => {}
        }
    }

    /// Does it once, when any process comes to the moment.
    fn act_at(&self, moment: Moment, action: Action) {
        let waiting = Rc::new(Cell::new(Some(action)));
        for slot in (0..u32::from(self.plan.flow.instances)).map(Slot) {
            let (waiting, administrator) = (Rc::clone(&waiting), self.administrator.clone());
            let deed = move || {
                if let Some(action) = waiting.take() {
                    administrator.act(&action);
                }
            };
            self.handle.at_moment(slot, moment, Box::new(deed));
        }
    }

    fn cut_for_good(&self) {
        if let Some((slot, side)) = self.cut_for_good {
            self.handle.cut_off(slot, side, None, Cut::Both);
        }
    }

    fn pause(&self, slot: Slot) {
        let now = self.handle.now();
        let is_end = |timed: &&TimedAction| now < timed.at_ms && timed.action == Action::Resume { slot };
        let end = self.plan.actions.iter().find(is_end);
        let stands_still = !self.handle.is_running(slot) || self.handle.is_paused(slot);
        if !stands_still && end.is_some_and(|end| now + LONG_PAUSE_MS <= end.at_ms) {
            self.handle.count(Fault::LongPause);
        }
        self.handle.pause(slot);
    }

    /// Bounded runs that came to their end by themselves are started again.
    fn run_again(&mut self) {
        let slots: Vec<Slot> = self.starts.keys().copied().collect();
        for slot in slots {
            if !self.told_to_stop.contains(&slot) && self.handle.exit(slot).is_some() {
                self.start(slot);
            }
        }
    }

    fn start_if_gone(&mut self, slot: Slot) {
        if !self.handle.is_running(slot) {
            self.start(slot);
        }
    }

    fn start(&mut self, slot: Slot) {
        self.judge_exits();
        let start = self.starts.entry(slot).or_default();
        *start += 1;
        self.told_to_stop.remove(&slot);
        self.started_at.insert(slot, self.handle.now());
        let ends = self.handle.view(Side::Source, |source| self.oracle.borrow().ends(source));
        self.ends.insert(slot, ends);
        self.untold.insert(slot, self.oracle.borrow().untold().cloned().collect());
        let flow = setup::flow(self.plan, slot, *start);
        self.handle.start(slot, flow, setup::settings(self.plan, slot));
    }

    fn judge_status(&self) {
        let now = self.handle.now();
        match status(&self.handle, self.plan) {
            Ok(rows) => self.handle.view(Side::Source, |source| {
                self.handle.view(Side::Target, |target| {
                    self.oracle.borrow_mut().judge_status(now, &rows, source, target);
                });
            }),
            Err(bad) => {
                self.oracle.borrow_mut().report(Violation::new(Invariant::StatusTrue, now, bad));
            }
        }
    }

    fn judge_exits(&mut self) {
        for (slot, start) in &self.starts {
            let Some(exit) = self.handle.exit(*slot) else { continue };
            if !self.judged.insert((*slot, *start)) {
                continue;
            }
            let (now, said) = (self.handle.now(), format!("{exit:?}"));
            let circumstances = self.circumstances(*slot, &exit);
            let violation = exits_true::check(now, slot.0, ended(&exit), &said, &circumstances);
            violation.into_iter().for_each(|it| self.oracle.borrow_mut().report(it));
        }
    }

    fn circumstances(&self, slot: Slot, exit: &Exit) -> Circumstances {
        let oracle = self.oracle.borrow();
        let is_gone = |partition: &SourcePartition| {
            let id = self.ends.get(&slot).and_then(|ends| ends.keys().find(|(place, _)| place == partition));
            let now = self.handle.view(Side::Source, |source| source.topic_id(&partition.topic));
            now.is_none() || now != id.map(|(_, id)| *id)
        };
        let since = self.started_at.get(&slot).copied().unwrap_or(0);
        let told: Vec<SourcePartition> = match exit {
            Exit::Halted(partitions) => partitions.keys().cloned().collect(),
            _ => Vec::new(),
        };
        let said_open: Vec<SourcePartition> = match exit {
            Exit::OpenTransactions(partitions) => partitions.keys().cloned().collect(),
            _ => Vec::new(),
        };
        // What an end names it need not have copied, nor what lies behind an open transaction.
        let is_named = |it: &SourcePartition| {
            told.contains(it) || (!told.is_empty() && oracle.was_open_since(it, since))
        };
        let short_of = self.ends.get(&slot).and_then(|ends| {
            self.handle.view(Side::Source, |source| {
                self.handle.view(Side::Target, |target| oracle.short_of(ends, source, target, is_named))
            })
        });
        let never_open = said_open.into_iter().filter(|it| !oracle.was_open_since(it, since)).collect();
        let was_untold =
            |place: &&SourcePartition| self.untold.get(&slot).is_some_and(|it| it.contains(*place));
        let incarnation = setup::incarnation(slot, self.starts.get(&slot).copied().unwrap_or(0));
        let lanes = self.handle.lanes(slot).into_iter().map(|lane| lane.0.cast_signed()).collect();
        let left_open = oracle.left_open(&incarnation, &lanes);
        let may_halt = |it: &SourcePartition| {
            oracle.was_halted_since(it, since) || oracle.was_denied(&it.topic) || is_gone(it)
        };
        let never_halted = told.into_iter().filter(|it| !may_halt(it)).collect();
        Circumstances {
            untold: oracle.untold().find(was_untold).cloned(),
            was_told_to_stop: self.told_to_stop.contains(&slot),
            is_cut_off: self.cut_for_good.is_some_and(|(cut, _)| cut == slot),
            left_open,
            had_all_settled: self.is_all_settled && !oracle.source_topics_were_deleted(),
            was_troubled: match exit {
                Exit::Unreachable(side, _) => self.handle.troubled_at(slot, *side).is_some(),
                _ => false,
            },
            is_bounded: self.plan.flow.is_bounded,
            short_of,
            was_fenced_by_instance: [Side::Source, Side::Target]
                .into_iter()
                .any(|side| self.handle.counters().errors.contains_key(&(side, ErrorCode::FencedInstanceId))),
            never_halted,
            never_open,
            ledger_is_grown: self.ledger_is_grown(),
            was_denied: denied_resource(exit).is_some_and(|it| self.denials.were_since(it, since)),
        }
    }

    fn ledger_is_grown(&self) -> bool {
        self.administrator.ledger_is_grown(self.plan.flow.lanes)
    }

    /// Faults are over: how long the mirror took to have nothing left to do.
    async fn heal(&mut self, workload: &Workload) -> Option<Millis> {
        let (handle, administrator) = (self.handle.clone(), self.administrator.clone());
        heal::heal(&handle, &administrator, self.plan, &mut |slot| self.start(slot));
        self.denials.all_end(self.handle.now());
        self.cut_for_good();
        if !self.let_pauses_end().await {
            return None;
        }
        let began = self.handle.now();
        let mut seen = Vec::new();
        loop {
            if !self.sleep_until(self.handle.now() + LOOK_EVERY_MS).await {
                return None;
            }
            let lags = self.handle.view(Side::Source, |cluster| self.oracle.borrow().lag(cluster));
            let now = (self.oracle.borrow().settlements(), self.handle.counters().rebalances);
            let quiet = seen.iter().rev().take_while(|before: &&(u64, u64)| before.0 == now.0).count();
            // Lanes that change hands claim; bounded runs come and go.
            let is_settled = self.plan.flow.is_bounded || QUIET_LOOKS <= quiet;
            let untold = self.oracle.borrow().untold().next().cloned();
            if lags.is_empty() && untold.is_none() && workload.is_finished() && is_settled {
                break;
            }
            // Nobody copies on with such a ledger, and nobody should.
            let is_away = |slot: Slot| self.cut_for_good.is_some_and(|(cut, _)| cut == slot);
            let all_ended = self.starts.keys().all(|slot| !self.handle.is_running(*slot) || is_away(*slot));
            if self.ledger_is_grown() && all_ended {
                break;
            }
            seen.push(now);
            if began + self.plan.heal_ms < self.handle.now() {
                // Whether anything still came to an end in the last third of the time.
                let before = seen[seen.len() * 2 / 3];
                let commits = (before.0 < now.0).then_some("commits");
                let going_on = commits.or((before.1 < now.1).then_some("rebalances"));
                self.give_up(Standstill {
                    at: self.handle.now(),
                    lags,
                    untold,
                    going_on,
                    scene: heal::scene(&self.handle),
                });
                return None;
            }
            // An instance that gave up while the clusters were away is started again, as its operator would.
            let slots: Vec<Slot> = self.starts.keys().copied().collect();
            if !self.ledger_is_grown() {
                slots.into_iter().for_each(|slot| self.start_if_gone(slot));
            }
        }
        let healed_after = self.handle.now() - began;
        self.is_all_settled = true;
        self.end().await;
        Some(healed_after)
    }

    /// It did not heal: what does it break, and is at least what was done so far right?
    fn give_up(&self, standstill: Standstill) {
        let mut oracle = self.oracle.borrow_mut();
        unhealed(&standstill).into_iter().for_each(|it| oracle.report(it));
        oracle.audit(standstill.at, Over::Unhealed);
    }

    /// Whether nothing went wrong until the last instance goes on that stands still.
    async fn let_pauses_end(&mut self) -> bool {
        let plan = self.plan;
        for timed in plan.late_actions() {
            if !self.sleep_until(timed.at_ms).await {
                return false;
            }
            self.act(&timed.action);
        }
        true
    }

    /// Everything is settled: instances end, and the last questions are asked.
    async fn end(&mut self) {
        let slots: Vec<Slot> = self.starts.keys().copied().collect();
        for slot in &slots {
            self.told_to_stop.insert(*slot);
            self.handle.stop(*slot, Urgency::Settle);
        }
        let deadline = self.handle.now() + 60_000;
        while slots.iter().any(|slot| self.handle.is_running(*slot)) && self.handle.now() < deadline {
            self.handle.sleep(LOOK_EVERY_MS).await;
        }
        self.judge_exits();
        let now = self.handle.now();
        for slot in slots.into_iter().filter(|slot| self.handle.is_running(*slot)) {
            let text = format!("instance {}, told to stop, runs on after a minute", slot.0);
            self.oracle.borrow_mut().report(Violation::new(Invariant::ExitsTrue, now, text));
        }
        let names = setup::flow_names(self.plan);
        let is_held = |scene: &Scene<'_>| {
            !scene.handle.view(Side::Target, |it| pinned(&names, scene.handle.now(), it)).is_empty()
        };
        let deadline = self.handle.now() + PINNED_MS;
        while is_held(self) && self.handle.now() < deadline {
            self.handle.sleep(LOOK_EVERY_MS).await;
        }
        let now = self.handle.now();
        self.judge_status();
        self.oracle.borrow_mut().audit(now, Over::AtRest);
        let broken = self.handle.view(Side::Target, |it| pinned(&names, now, it));
        broken.into_iter().for_each(|it| self.oracle.borrow_mut().report(it));
    }

    fn findings(self, live_ms: Millis, healed_after_ms: Option<Millis>) -> Findings {
        self.oracle.borrow_mut().found_at(self.handle.steps());
        let oracle = self.oracle.borrow();
        Findings {
            violations: oracle.violations().to_vec(),
            live_ms,
            healed_after_ms,
            settlements: oracle.settlements(),
            records_settled: oracle.records_settled(),
            halted: oracle.halted().map(|(_, halt)| halt.reason).collect(),
            actions: self.actions,
        }
    }
}

/// For want of a right to what the instance ended, if that is why.
fn denied_resource(exit: &Exit) -> Option<&str> {
    match exit {
        Exit::NotAuthorized(_, Trouble::NotAuthorized { resource, .. }) => Some(resource),
        _ => None,
    }
}
