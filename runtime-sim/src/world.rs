//! The World of one process: its clients, the universe, and the moments at which it may crash.

use crate::alarms::AlarmId;
use crate::client::{Effect, Mark, Process};
use crate::instance::{crash, now_of};
use crate::network::{Outgoing, Sender};
use crate::shared::Shared;
use crate::slots::Slot;
use crate::universe::Universe;
use kafka_model::{Millis, TransactionalId};
use kafka_types::TransactionResult;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use verbatim_core::command::Command;
use verbatim_core::event::{Event, GroupEvent, Urgency};
use verbatim_core::failure::Side;
use verbatim_core::time::{Instant, Now};
use verbatim_core::{LaneId, World};

/// Steps that a process may take while the clock stands: more is a loop that never waits.
const STEPS_MAX: u32 = 200_000;

pub struct SimWorld {
    shared: Shared,
    slot: Slot,
    start: u32,
    process: Process,
    alarm: Option<(Millis, AlarmId)>,
    /// Commands were submitted and their clients not looked at since.
    is_dirty: bool,
    wall_skew_ms: Millis,
    steps: (Millis, u32),
}

impl SimWorld {
    pub(crate) fn new(shared: &Shared, slot: Slot, start: u32, process: Process) -> SimWorld {
        let shared = shared.clone();
        let wall_skew_ms = shared.slots(|slots| slots.of(slot).wall_skew_ms);
        SimWorld { shared, slot, start, process, alarm: None, is_dirty: true, wall_skew_ms, steps: (0, 0) }
    }

    pub(crate) fn now(&self) -> Now {
        now_of(self.shared.now(), self.wall_skew_ms)
    }

    /// The mirror has come to its end.
    pub(crate) fn shut_down(&mut self) {
        self.process.shut_down(self.shared.now());
        self.carry_out();
    }

    fn poll_next(&mut self, wake: Option<Instant>, context: &mut Context<'_>) -> Poll<(Now, Event)> {
        let now = self.shared.now();
        self.shared.act(|universe| universe.note_poll("instance", &(self.slot, self.start)));
        self.count_step(now);
        let Some((told_to_stop, is_stalled)) = self.look_at_slot() else { return Poll::Pending };
        let arrived = self.shared.act(|universe| universe.take_arrived(self.start));
        let has_arrived = !arrived.is_empty();
        self.process.arrive(now, arrived.into_iter().map(|incoming| (incoming.token, incoming.outcome)));
        let is_due = self.process.wake_at().is_some_and(|at| at <= now);
        if has_arrived || is_due || (self.is_dirty && self.process.looks_before_the_next_event()) {
            self.is_dirty = false;
            self.process.advance(now);
            if self.carry_out() {
                return Poll::Pending;
            }
        }
        if is_stalled {
            self.wait(None, context.waker());
            return Poll::Pending;
        }
        if let Some(urgency) = told_to_stop {
            self.process.is_told_to_stop();
            return Poll::Ready(self.happened(now, Event::Stop(urgency)));
        }
        if let Some(event) = self.process.next_event() {
            return Poll::Ready(self.happened(now, event));
        }
        let wake = wake.map(|Instant(at)| at.as_nanos().div_ceil(1_000_000) as Millis);
        if wake.is_some_and(|wake| wake <= now) {
            return Poll::Ready(self.happened(now, Event::Woke));
        }
        self.wait(wake, context.waker());
        Poll::Pending
    }

    fn count_step(&mut self, now: Millis) {
        let (at, steps) = self.steps;
        self.steps = if at == now { (at, steps + 1) } else { (now, 1) };
        assert!(self.steps.1 < STEPS_MAX, "slot {} takes step after step and never waits", self.slot.0);
    }

    /// What it was told, if anything, and whether its worker is stuck; none when the process is no more.
    fn look_at_slot(&mut self) -> Option<(Option<Urgency>, bool)> {
        let faults = self.shared.setup(|setup| setup.client.clone());
        let (told, is_stalled, skew) = self.shared.slots(|slots| {
            let state = slots.running(self.slot, self.start)?;
            let (skew, is_stalled) = (state.wall_skew_ms, state.is_stalled);
            let process = state.process.as_mut()?;
            let told = if is_stalled { None } else { process.told_to_stop.take() };
            Some((told, is_stalled, skew))
        })?;
        self.process.set_faults(faults);
        self.wall_skew_ms = skew;
        self.process.set_wall_skew(skew);
        Some((told, is_stalled))
    }

    fn happened(&mut self, now: Millis, event: Event) -> (Now, Event) {
        if let Event::Group(event) = &event
            && !self.process.is_stopping()
        {
            self.shared.slots(|slots| count_lanes(&mut slots.of(self.slot).lanes, event));
        }
        self.shared.act(|universe| universe.trace.note(now, "event", &self.slot, &event));
        (now_of(now, self.wall_skew_ms), event)
    }

    fn wait(&mut self, wake: Option<Millis>, waker: &Waker) {
        let at = [wake, self.process.wake_at()].into_iter().flatten().min();
        self.shared.slots(|slots| {
            if let Some(process) = slots.running(self.slot, self.start).and_then(|it| it.process.as_mut()) {
                process.waker = Some(waker.clone());
            }
        });
        self.shared.act(|universe| {
            universe.wake_on_arrival(self.start, waker);
            if self.alarm.is_some_and(|(set, _)| Some(set) == at && universe.now() < set) {
                return;
            }
            if let Some((_, alarm)) = self.alarm.take() {
                universe.alarms.cancel(alarm);
            }
            self.alarm = at.map(|at| (at, universe.alarms.set(at, waker.clone())));
        });
    }

    /// Does to the world what the clients want done, in order; whether the process crashed over it.
    fn carry_out(&mut self) -> bool {
        for effect in self.process.take_effects() {
            match effect {
                Effect::Send { connection, side, header, request } => {
                    let sender = Sender::Instance(self.start);
                    let outgoing = Outgoing { sender, connection, side, header, request };
                    self.shared.act(|universe| universe.send(outgoing));
                }
                Effect::Close(connection) => self.shared.act(|universe| universe.client_closes(connection)),
                Effect::Mark(Mark::Moment(moment)) => {
                    let comes = || self.shared.slots(|slots| slots.of(self.slot).crash_at.remove(&moment));
                    let breaks =
                        || self.shared.slots(|slots| slots.of(self.slot).broker_crashes_at.remove(&moment));
                    if breaks() {
                        self.shared.act(Universe::crash_last_acknowledging_broker);
                    }
                    let deeds = self.shared.slots(|slots| slots.of(self.slot).waiting.remove(&moment));
                    deeds.into_iter().flatten().for_each(|deed| deed());
                    if comes() {
                        self.shared.act(|universe| universe.counters.crashes_at_moments += 1);
                        crash(&self.shared, self.slot);
                        return true;
                    }
                }
                Effect::Mark(mark) => self.shared.act(|universe| count(universe, &mark)),
            }
        }
        if let Some(report) = self.process.take_report() {
            self.shared.slots(|slots| slots.of(self.slot).report = Some(report));
        }
        false
    }
}

/// Which lanes the process has from its group after this.
fn count_lanes(held: &mut BTreeSet<LaneId>, event: &GroupEvent) {
    match event {
        GroupEvent::Offered { lanes, .. } => held.extend(lanes),
        GroupEvent::Recalled { lanes, .. } | GroupEvent::Lost { lanes, .. } => {
            held.retain(|lane| !lanes.contains(lane));
        }
        GroupEvent::Left | GroupEvent::Replaced(_) | GroupEvent::Refused(_) => held.clear(),
    }
}

fn count(universe: &mut Universe, mark: &Mark) {
    let now = universe.now();
    universe.trace.note(now, "mark", &(), mark);
    let is_applied = match mark {
        Mark::UnknownCommit { transactional_id, since } => {
            is_committed_since(universe, transactional_id, *since)
        }
        _ => false,
    };
    let counters = &mut universe.counters;
    match mark {
        Mark::Moment(_) => {}
        Mark::Fenced => counters.fencings += 1,
        Mark::UnknownCommit { .. } => {
            counters.unknown_commits += 1;
            counters.unknown_commits_applied += u64::from(is_applied);
        }
        Mark::Settled => counters.settled += 1,
        Mark::Aborted => counters.aborts += 1,
        Mark::SlowStep => counters.fault(crate::counters::Fault::SlowStep),
    }
}

fn is_committed_since(universe: &Universe, id: &str, since: Millis) -> bool {
    let id = TransactionalId::from(id);
    let mut decisions = universe.cluster(Side::Target).decisions().since(0).iter().rev();
    decisions.find(|decision| decision.transactional_id == id).is_some_and(|last| {
        since <= last.decided_at - universe.clock_ms(Side::Target) && last.result == TransactionResult::Commit
    })
}

impl World for SimWorld {
    fn submit(&mut self, command: Command) {
        let now = self.shared.now();
        self.shared.act(|universe| universe.trace.note(now, "command", &self.slot, &command));
        self.is_dirty = true;
        self.process.submit(now, command);
    }

    async fn next(&mut self, wake: Option<Instant>) -> (Now, Event) {
        poll_fn(|context| self.poll_next(wake, context)).await
    }
}
