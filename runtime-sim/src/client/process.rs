//! All clients of one process: commands go in, requests come out, and events.

use super::admin::{Admin, Question};
use super::faults::{ClientFaults, ClientMutants};
use super::follow::Follower;
use super::group::Group;
use super::io::Io;
use super::lane::{Lane, LanePlace};
use super::library::Place;
use super::survey::Survey;
use super::wire::{Effect, Owner, Wire};
use crate::random::Random;
use kafka_model::{BrokerId, Millis, Outcome, RequestToken};
use std::collections::{BTreeMap, VecDeque};
use verbatim_core::LaneId;
use verbatim_core::command::{Command, Report};
use verbatim_core::config::FlowName;
use verbatim_core::event::Event;
use verbatim_core::failure::Side;

/// What a process's clients are made from.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Numbers the process among all that were ever started.
    pub start: u32,
    pub flow: FlowName,
    pub instance_id: Option<String>,
    /// Of both clusters.
    pub brokers: Vec<BrokerId>,
    pub mutants: ClientMutants,
}

/// Looks at one part in a row: what it does may be what another of its pieces waits for. A bound, so that a mistake
/// shows as a process that does nothing and not as one that never ends.
const STEPS_MAX: u32 = 100;

pub struct Process {
    settings: ProcessSettings,
    wire: Wire,
    random: Random,
    faults: ClientFaults,
    source: Option<Admin>,
    target: Option<Admin>,
    group: Group,
    follower: Option<Follower>,
    surveys: Vec<Survey>,
    lanes: BTreeMap<LaneId, Lane>,
    events: VecDeque<Event>,
    report: Option<Report>,
    is_stopping: bool,
    /// When to look again even if nothing arrives.
    wake: Option<Millis>,
    wall_skew_ms: Millis,
}

impl Process {
    pub fn new(settings: ProcessSettings, random: Random, faults: ClientFaults) -> Process {
        let flow = &settings.flow;
        let group_place = place(&settings, Side::Target, "group");
        let instance = settings.instance_id.as_deref();
        Process {
            wire: Wire::new(settings.start),
            random,
            faults,
            source: None,
            target: None,
            group: Group::new(group_place, flow.group(), flow.ledger(), instance),
            follower: None,
            surveys: Vec::new(),
            lanes: BTreeMap::new(),
            events: VecDeque::new(),
            report: None,
            is_stopping: false,
            wake: None,
            wall_skew_ms: 0,
            settings,
        }
    }

    pub fn set_faults(&mut self, faults: ClientFaults) {
        self.faults = faults;
    }

    pub fn set_wall_skew(&mut self, skew_ms: Millis) {
        self.wall_skew_ms = skew_ms;
    }

    /// The process was told to stop: it keeps its seat in the group when it leaves, if it has an instance id.
    pub fn is_told_to_stop(&mut self) {
        self.is_stopping = true;
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Requests have come to their end. What also ran out of time by now may have been noticed before or after,
    /// as in a process that was stopped and goes on.
    pub fn arrive(&mut self, now: Millis, arrived: impl ExactSizeIterator<Item = (RequestToken, Outcome)>) {
        if arrived.len() != 0 && self.random.below(2) == 0 {
            self.wire.advance(now, &mut self.random);
        }
        for (token, outcome) in arrived {
            self.wire.arrived(now, token, outcome, &mut self.random);
        }
    }

    /// Whether the clients get to work before the mirror hears of the next event: always when there is none,
    /// and now and then when there is, as threads do.
    pub fn looks_before_the_next_event(&mut self) -> bool {
        let has_event = !self.events.is_empty() || self.lanes.values().any(Lane::has_event);
        !has_event || self.random.below(2) == 0
    }

    pub fn submit(&mut self, now: Millis, command: Command) {
        let mut parts = self.parts(now);
        parts.submit(command);
    }

    /// Does all that can be done now.
    pub fn advance(&mut self, now: Millis) {
        self.wire.advance(now, &mut self.random);
        let mut parts = self.parts(now);
        parts.advance_rest();
        parts.advance_lanes();
        let wake = parts.io.wake;
        self.wake = [wake, self.wire.deadline()].into_iter().flatten().min();
    }

    /// When to call [`Process::advance`] again although nothing has arrived.
    pub fn wake_at(&self) -> Option<Millis> {
        self.wake
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.wire.take_effects()
    }

    pub fn take_report(&mut self) -> Option<Report> {
        self.report.take()
    }

    /// One of the events that have happened. Each client's come in order, those of several in any order.
    pub fn next_event(&mut self) -> Option<Event> {
        let lanes: Vec<LaneId> =
            self.lanes.iter().filter(|(_, lane)| lane.has_event()).map(|it| *it.0).collect();
        let others = usize::from(!self.events.is_empty());
        let choices = lanes.len() + others;
        if choices == 0 {
            return None;
        }
        let pick = self.random.below(choices as u64) as usize;
        let Some(id) = lanes.get(pick) else { return self.events.pop_front() };
        let first = self.random.below(2) == 0;
        let (attempt, event) = self.lanes.get_mut(id)?.next_event(first)?;
        Some(Event::Lane(*id, attempt, event))
    }

    /// The mirror has come to its end: the group is left, all clients are closed.
    pub fn shut_down(&mut self, now: Millis) {
        let mut parts = self.parts(now);
        parts.group.leave(&mut parts.io, true);
        for lane in parts.lanes.values_mut() {
            lane.close(&mut parts.io);
        }
        self.advance(now);
    }

    fn parts(&mut self, now: Millis) -> Parts<'_> {
        Parts {
            io: Io {
                now,
                wall: now + self.wall_skew_ms,
                wire: &mut self.wire,
                random: &mut self.random,
                faults: &self.faults,
                mutants: &self.settings.mutants,
                wake: None,
                look_again: false,
            },
            settings: &self.settings,
            source: &mut self.source,
            target: &mut self.target,
            group: &mut self.group,
            follower: &mut self.follower,
            surveys: &mut self.surveys,
            lanes: &mut self.lanes,
            events: &mut self.events,
            report: &mut self.report,
            is_stopping: self.is_stopping,
        }
    }
}

struct Parts<'a> {
    io: Io<'a>,
    settings: &'a ProcessSettings,
    source: &'a mut Option<Admin>,
    target: &'a mut Option<Admin>,
    group: &'a mut Group,
    follower: &'a mut Option<Follower>,
    surveys: &'a mut Vec<Survey>,
    lanes: &'a mut BTreeMap<LaneId, Lane>,
    events: &'a mut VecDeque<Event>,
    report: &'a mut Option<Report>,
    is_stopping: bool,
}

impl Parts<'_> {
    fn ask(&mut self, side: Side, ask: verbatim_core::event::Ask, question: Question) {
        let admin = match side {
            Side::Source => &mut *self.source,
            Side::Target => &mut *self.target,
        };
        let settings = self.settings;
        let io = &mut self.io;
        admin.get_or_insert_with(|| Admin::new(io, &place(settings, side, "admin"))).ask(ask, question);
    }

    fn submit(&mut self, command: Command) {
        match command {
            Command::Describe { side, ask, topics } => self.ask(side, ask, Question::Describe(topics)),
            Command::DescribeConfigs { side, ask, topics } => self.ask(side, ask, Question::Configs(topics)),
            Command::CreateTopics { ask, topics } => self.ask(Side::Target, ask, Question::Create(topics)),
            Command::GrowTopics { ask, topics } => self.ask(Side::Target, ask, Question::Grow(topics)),
            Command::SourceOffsets { ask, partitions, at } => {
                self.ask(Side::Source, ask, Question::SourceOffsets(partitions, at));
            }
            Command::TargetEnds { ask, partitions } => {
                self.ask(Side::Target, ask, Question::TargetEnds(partitions));
            }
            Command::OpenTransactions { ask, partitions } => {
                self.ask(Side::Source, ask, Question::OpenTransactions(partitions));
            }
            Command::Survey { ask } => {
                let place = place(self.settings, Side::Target, "survey");
                self.surveys.push(Survey::start(&mut self.io, &place, &self.settings.flow.ledger(), ask));
            }
            Command::FollowTopics => {
                if self.follower.is_none() {
                    let place = place(self.settings, Side::Target, "topics");
                    let ledger = self.settings.flow.ledger();
                    *self.follower = Some(Follower::start(&mut self.io, &place, &ledger));
                }
            }
            Command::JoinGroup => self.group.join(&mut self.io),
            Command::Accept(turn) | Command::Release(turn) => self.group.answer(&mut self.io, turn),
            Command::LeaveGroup => self.group.leave(&mut self.io, self.is_stopping),
            Command::Lane(id, attempt, command) => {
                let settings = self.settings;
                let lane = self.lanes.entry(id).or_insert_with(|| Lane::new(lane_place(settings, id)));
                self.io.wire.look_at(Owner::lane(id));
                lane.submit(&mut self.io, attempt, command);
                self.io.wire.look_at(Owner::REST);
            }
            Command::Report(report) => *self.report = Some(report),
        }
    }

    /// All but the lanes, until nothing more can be done.
    fn advance_rest(&mut self) {
        self.io.wire.look_at(Owner::REST);
        for _ in 0..STEPS_MAX {
            self.io.begin_look();
            self.look_at_rest();
            if self.io.is_quiet() {
                break;
            }
        }
    }

    /// Each lane for which something has come about.
    fn advance_lanes(&mut self) {
        let io = &mut self.io;
        let mut wake = io.wake;
        for (id, lane) in &mut *self.lanes {
            let has_arrived = io.wire.look_at(Owner::lane(*id));
            if has_arrived || lane.must_look_at(io.now) {
                for _ in 0..STEPS_MAX {
                    io.begin_look();
                    lane.advance(io);
                    if io.is_quiet() {
                        break;
                    }
                }
                lane.looked_at(io.wake);
            }
            wake = [wake, lane.wake_at()].into_iter().flatten().min();
        }
        io.wire.look_at(Owner::REST);
        io.wake = wake;
    }

    fn look_at_rest(&mut self) {
        let io = &mut self.io;
        for admin in [&mut *self.source, &mut *self.target].into_iter().flatten() {
            admin.advance(io);
            self.events.append(&mut admin.events);
        }
        self.group.advance(io);
        self.events.extend(self.group.events.drain(..).map(Event::Group));
        if let Some(follower) = self.follower {
            self.events.extend(follower.advance(io));
        }
        let mut surveys = Vec::new();
        for mut survey in self.surveys.drain(..) {
            match survey.advance(io) {
                None => surveys.push(survey),
                Some(event) => {
                    survey.close(io);
                    self.events.push_back(event);
                }
            }
        }
        *self.surveys = surveys;
    }
}

fn place(settings: &ProcessSettings, side: Side, purpose: &str) -> Place {
    let client_id = format!("verbatim-{}-{purpose}", settings.flow);
    Place { side, client_id: client_id.into(), brokers: settings.brokers.clone() }
}

fn lane_place(settings: &ProcessSettings, lane: LaneId) -> LanePlace {
    let purpose = format!("lane-{lane}");
    let mut transactional_id = settings.flow.transactional_id(lane);
    if settings.mutants.transactional_ids_of_the_process {
        transactional_id += &format!("-{}", settings.start);
    }
    LanePlace {
        lane,
        ledger: settings.flow.ledger(),
        transactional_id,
        source: place(settings, Side::Source, &purpose),
        target: place(settings, Side::Target, &purpose),
    }
}
