//! Both clusters, the network and whoever waits for it, on one clock. Pure: time is an argument.

use crate::alarms::Alarms;
use crate::counters::Counters;
use crate::network::{Books, ConnectionId, Delivery, Incoming, Network, Outgoing, Sender};
use crate::random::Random;
use crate::sends::Sends;
use crate::simulation::Setup;
use crate::trace::Trace;
use kafka_model::{BrokerId, Cluster, Millis, Outcome, Reply, Request, RequestToken};
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use verbatim_core::failure::Side;

/// Sees a cluster after whatever happened to it.
pub type Watcher = Box<dyn FnMut(Seen, Side, &mut Cluster)>;

/// When a watcher sees something: the time, and how many events the trace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub now: Millis,
    pub step: u64,
}

pub struct Universe {
    now: Millis,
    source: Cluster,
    target: Cluster,
    /// How far the clock of each cluster is off.
    source_clock_ms: Millis,
    target_clock_ms: Millis,
    pub(crate) network: Network,
    pub(crate) trace: Trace,
    pub(crate) counters: Counters,
    sends: Sends,
    pub(crate) alarms: Alarms,
    watcher: Option<Watcher>,
    /// Answers that have arrived, by the start of an instance that they are for.
    inboxes: BTreeMap<u32, Inbox>,
    /// Answers to the workload; an entry from when it asks until it has taken the answer.
    workload: BTreeMap<RequestToken, WorkloadAnswer>,
}

#[derive(Default)]
struct Inbox {
    arrived: VecDeque<Incoming>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct WorkloadAnswer {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Universe {
    pub(crate) fn new(seed: u64, setup: &Setup) -> Universe {
        let brokers: Vec<BrokerId> = (1..=i32::from(setup.brokers)).map(BrokerId).collect();
        Universe {
            now: 0,
            source: Cluster::new(setup.source_clock_ms, &brokers, setup.source.clone()),
            target: Cluster::new(setup.target_clock_ms, &brokers, setup.target.clone()),
            source_clock_ms: setup.source_clock_ms,
            target_clock_ms: setup.target_clock_ms,
            network: Network::new(setup.network.clone(), Random::of(seed, "network")),
            trace: Trace::new(setup.trace),
            counters: Counters::default(),
            sends: Sends::default(),
            alarms: Alarms::default(),
            watcher: None,
            inboxes: BTreeMap::new(),
            workload: BTreeMap::new(),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        self.now
    }

    pub(crate) fn cluster(&self, side: Side) -> &Cluster {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    fn cluster_mut(&mut self, side: Side) -> &mut Cluster {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }

    /// How far the clock of a cluster is off.
    pub(crate) fn clock_ms(&self, side: Side) -> Millis {
        match side {
            Side::Source => self.source_clock_ms,
            Side::Target => self.target_clock_ms,
        }
    }

    /// When a cluster has something to do next by itself.
    fn deadline(&self, side: Side) -> Option<Millis> {
        self.cluster(side).next_deadline().map(|at| at - self.clock_ms(side))
    }

    pub(crate) fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    /// The scheduler has picked this task to go on.
    pub(crate) fn note_poll(&mut self, who: &'static str, which: &(impl std::hash::Hash + std::fmt::Debug)) {
        self.trace.note(self.now, "polls", &who, which);
    }

    /// When something happens next by itself.
    pub(crate) fn next_at(&self) -> Option<Millis> {
        [self.next_event_at(), self.alarms.next_at()].into_iter().flatten().min()
    }

    fn next_event_at(&self) -> Option<Millis> {
        let ticks = [self.deadline(Side::Source), self.deadline(Side::Target)];
        ticks.into_iter().chain([self.network.next_at()]).flatten().min()
    }

    /// Does what is due by `now`, each at its own moment, and wakes whoever it concerns.
    pub(crate) fn advance(&mut self, now: Millis) {
        while let Some(at) = self.next_event_at().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            for side in [Side::Source, Side::Target] {
                if self.deadline(side).is_some_and(|deadline| deadline <= at) {
                    let (now, clock) = (self.now, self.now + self.clock_ms(side));
                    let replies = self.cluster_mut(side).tick(clock);
                    self.trace.note(now, "tick", &side, &replies.len());
                    self.handled(side, replies);
                }
            }
            while let Some(delivery) = self.next_delivery() {
                self.deliver(delivery);
            }
        }
        self.now = self.now.max(now);
        self.alarms.ring(now, &mut self.trace);
    }

    fn next_delivery(&mut self) -> Option<Delivery> {
        let mut books = Books { trace: &mut self.trace, counters: &mut self.counters };
        self.network.deliver(self.now, &mut books)
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::ToBroker(side, header, request) => {
                let clock = self.now + self.clock_ms(side);
                let replies = self.cluster_mut(side).handle(clock, header, request);
                self.handled(side, replies);
            }
            Delivery::ToClient(incoming) => self.arrived(incoming),
        }
    }

    /// A cluster did something, and these replies came of it.
    fn handled(&mut self, side: Side, replies: Vec<Reply>) {
        self.note_timers(side);
        if side == Side::Target {
            self.counters.partial_sends += self.sends.look(&self.target);
        }
        if let Some(mut watcher) = self.watcher.take() {
            let now = self.now;
            let seen = Seen { now, step: self.trace.steps() };
            watcher(seen, side, self.cluster_mut(side));
            self.watcher = Some(watcher);
        }
        for reply in replies {
            let mut books = Books { trace: &mut self.trace, counters: &mut self.counters };
            if let Some(delivery) = self.network.reply(self.now, reply, &mut books) {
                self.deliver(delivery);
            }
        }
    }

    /// Notes what a cluster found due.
    fn note_timers(&mut self, side: Side) {
        let cluster = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        for timer in cluster.fired() {
            self.trace.note(self.now, "timer", &side, timer);
        }
    }

    fn arrived(&mut self, incoming: Incoming) {
        match incoming.sender {
            Sender::Instance(start) => {
                // One that is gone has no inbox any more.
                let Some(inbox) = self.inboxes.get_mut(&start) else { return };
                inbox.arrived.push_back(incoming);
                if let Some(waker) = inbox.waker.take() {
                    waker.wake();
                }
            }
            Sender::Workload => {
                let Some(answer) = self.workload.get_mut(&incoming.token) else { return };
                answer.outcome = Some(incoming.outcome);
                if let Some(waker) = answer.waker.take() {
                    waker.wake();
                }
            }
        }
    }

    pub(crate) fn send(&mut self, outgoing: Outgoing) {
        if let (Side::Target, Request::Produce(request)) = (outgoing.side, &outgoing.request) {
            self.sends.sent(request);
        }
        let mut books = Books { trace: &mut self.trace, counters: &mut self.counters };
        self.network.send(self.now, outgoing, &mut books);
    }

    /// Something is done to a cluster from outside, by the cluster's own clock.
    pub(crate) fn administer(&mut self, side: Side, act: impl FnOnce(&mut Cluster, Millis) -> Vec<Reply>) {
        let now = self.now;
        let alive =
            |cluster: &Cluster| cluster.broker_ids().filter(|it| it.1).map(|it| it.0).collect::<Vec<_>>();
        let before = alive(self.cluster(side));
        let clock = now + self.clock_ms(side);
        let replies = act(self.cluster_mut(side), clock);
        let after = alive(self.cluster(side));
        self.trace.note(now, "administer", &side, &replies.len());
        for broker in before.into_iter().filter(|broker| !after.contains(broker)) {
            self.network.broker_died(now, side, broker);
        }
        self.handled(side, replies);
    }

    /// A client that lives on gives a connection up.
    pub(crate) fn client_closes(&mut self, connection: ConnectionId) {
        self.network.outlive_on(self.now, connection, &mut self.counters);
        self.network.close(connection);
    }

    /// The target broker dies that last told a mirror's producer that its records are stored.
    pub(crate) fn crash_last_acknowledging_broker(&mut self) {
        let Some(broker) = self.network.last_acknowledging.take() else { return };
        self.counters.broker_crashes_at_moments += 1;
        self.administer(Side::Target, |cluster, now| cluster.crash_broker(now, broker));
    }

    pub(crate) fn take_watcher(&mut self) -> Option<Watcher> {
        self.watcher.take()
    }

    pub(crate) fn open_inbox(&mut self, start: u32) {
        self.inboxes.insert(start, Inbox::default());
    }

    /// The process is gone: nothing more is delivered to it. What it has sent is not its own any more.
    pub(crate) fn close_inbox(&mut self, start: u32) {
        self.inboxes.remove(&start);
        self.network.close_all_of(Sender::Instance(start));
    }

    pub(crate) fn take_arrived(&mut self, start: u32) -> VecDeque<Incoming> {
        self.inboxes.get_mut(&start).map(|inbox| std::mem::take(&mut inbox.arrived)).unwrap_or_default()
    }

    pub(crate) fn wake_on_arrival(&mut self, start: u32, waker: &Waker) {
        if let Some(inbox) = self.inboxes.get_mut(&start) {
            inbox.waker = Some(waker.clone());
        }
    }

    pub(crate) fn expect_answer(&mut self, token: RequestToken) {
        self.workload.insert(token, WorkloadAnswer::default());
    }

    pub(crate) fn take_answer(&mut self, token: RequestToken, waker: &Waker) -> Option<Outcome> {
        let answer = self.workload.get_mut(&token)?;
        if answer.outcome.is_some() {
            return self.workload.remove(&token)?.outcome;
        }
        answer.waker = Some(waker.clone());
        None
    }

    pub(crate) fn forget_answer(&mut self, token: RequestToken) {
        self.workload.remove(&token);
    }
}
