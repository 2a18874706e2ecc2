//! A scenario's hands in the world that it runs in.

use crate::client::ClientFaults;
use crate::counters::{Counters, Fault};
use crate::instance::{self, InstanceSettings};
use crate::moments::Moment;
use crate::network::{ConnectionId, Cut, NetworkFaults, Outgoing, Sender};
use crate::random::Random;
use crate::shared::{Shared, Until};
use crate::slots::{Deed, Slot};
use crate::universe::Watcher;
use kafka_model::{
    BrokerId, ClientId, Cluster, Millis, Outcome, Reply, Request, RequestHeader, RequestToken,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use verbatim_core::command::Report;
use verbatim_core::config::Flow;
use verbatim_core::event::Urgency;
use verbatim_core::failure::Side;
use verbatim_core::{Exit, LaneId};

/// How long a client of the workload waits for an answer before it gives the connection up.
const WORKLOAD_PATIENCE_MS: Millis = 10_000;

/// Acts on the run: time, instances, clusters, faults.
#[derive(Clone)]
pub struct Handle {
    shared: Shared,
    workload: Rc<Workload>,
}

/// The workload's clients: one connection for each client and broker.
struct Workload {
    random: RefCell<Random>,
    connections: RefCell<BTreeMap<(Side, BrokerId, ClientId), ConnectionId>>,
    last_token: Cell<u32>,
    last_connection: Cell<u32>,
}

impl Handle {
    pub(crate) fn new(shared: &Shared) -> Handle {
        let workload = Workload {
            random: RefCell::new(Random::of(shared.seed(), "scenario")),
            connections: RefCell::default(),
            last_token: Cell::new(0),
            last_connection: Cell::new(0),
        };
        Handle { shared: shared.clone(), workload: Rc::new(workload) }
    }

    pub fn seed(&self) -> u64 {
        self.shared.seed()
    }

    /// Virtual time since the start. The clusters' clocks may be off.
    pub fn now(&self) -> Millis {
        self.shared.now()
    }

    pub async fn sleep(&self, millis: Millis) {
        self.sleep_until(self.now() + millis).await;
    }

    pub async fn sleep_until(&self, at: Millis) {
        Until::new(&self.shared, at).await;
    }

    /// The scenario's own random numbers: drawing more of them changes nothing else.
    pub fn draw(&self) -> u64 {
        self.workload.random.borrow_mut().next()
    }

    /// A generator for one concern of this seed.
    pub fn random(&self, concern: &str) -> Random {
        Random::of(self.shared.seed(), concern)
    }

    /// Runs a future of the scenario's beside it, such as a producer of the workload.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.shared.spawn(future);
    }

    /// Starts a process in a slot. Whatever ran there is crashed first.
    pub fn start(&self, slot: Slot, flow: Flow, settings: InstanceSettings) {
        if self.is_running(slot) {
            self.crash(slot);
        }
        instance::start(&self.shared, slot, flow, settings);
    }

    /// The process is gone at once. What it sent stays in the network.
    pub fn crash(&self, slot: Slot) {
        instance::crash(&self.shared, slot);
    }

    /// The process crashes the next time it comes to `moment`, and so do later ones in the slot until one has.
    pub fn crash_at(&self, slot: Slot, moment: Moment) {
        self.shared.slots(|slots| slots.of(slot).crash_at.insert(moment));
    }

    /// Takes [`Handle::crash_at`], [`Handle::crash_broker_at`] and [`Handle::at_moment`] back.
    pub fn crash_at_no_moment(&self, slot: Slot) {
        self.shared.slots(|slots| {
            slots.of(slot).crash_at.clear();
            slots.of(slot).broker_crashes_at.clear();
            slots.of(slot).waiting.clear();
        });
    }

    /// The next time that the slot's process comes to `moment`, the target broker dies that last acknowledged records
    /// of a mirror.
    pub fn crash_broker_at(&self, slot: Slot, moment: Moment) {
        self.shared.slots(|slots| slots.of(slot).broker_crashes_at.insert(moment));
    }

    /// Does this the next time that the slot's process comes to `moment`.
    pub fn at_moment(&self, slot: Slot, moment: Moment, deed: Deed) {
        self.shared.slots(|slots| slots.of(slot).waiting.entry(moment).or_default().push(deed));
    }

    /// The slot's machine and that broker, or all of the cluster, do not reach each other any more. Nobody tells them.
    pub fn cut_off(&self, slot: Slot, side: Side, broker: Option<BrokerId>, cut: Cut) {
        self.shared.slots(|slots| slots.of(slot).unreachable.insert((side, broker, cut)));
        instance::reach_out(&self.shared, slot);
    }

    /// It reaches all of them again.
    pub fn reconnect(&self, slot: Slot) {
        self.shared.slots(|slots| slots.of(slot).unreachable.clear());
        instance::reach_out(&self.shared, slot);
    }

    /// SIGSTOP: nothing in the process runs, and the world goes on.
    pub fn pause(&self, slot: Slot) {
        instance::pause(&self.shared, slot);
    }

    /// SIGCONT.
    pub fn resume(&self, slot: Slot) {
        instance::resume(&self.shared, slot);
    }

    /// Until it is told otherwise, the mirror of the slot's process hears of nothing, as if its worker were stuck.
    /// Its clients go on: they fetch, retry, and keep the seat in the group.
    pub fn stall(&self, slot: Slot, is_stalled: bool) {
        instance::stall(&self.shared, slot, is_stalled);
    }

    /// Counts a fault that the scenario has injected by itself.
    pub fn count(&self, fault: Fault) {
        self.shared.act(|universe| universe.counters.fault(fault));
    }

    /// SIGTERM.
    pub fn stop(&self, slot: Slot, urgency: Urgency) {
        self.shared.slots(|slots| {
            if let Some(process) = &mut slots.of(slot).process {
                process.told_to_stop = Some(urgency);
                if let Some(waker) = process.waker.take() {
                    waker.wake();
                }
            }
        });
    }

    /// Sets the wall clock of the machine that the slot stands for.
    pub fn set_wall_skew(&self, slot: Slot, skew_ms: Millis) {
        self.shared.slots(|slots| slots.of(slot).wall_skew_ms = skew_ms);
    }

    /// Whether a process runs there, paused or not.
    pub fn is_running(&self, slot: Slot) -> bool {
        self.shared.slots(|slots| slots.of(slot).process.is_some())
    }

    pub fn is_paused(&self, slot: Slot) -> bool {
        self.shared.slots(|slots| slots.of(slot).process.as_ref().is_some_and(|process| process.is_paused))
    }

    pub fn running_slots(&self) -> Vec<Slot> {
        self.shared.slots(|slots| slots.running_slots())
    }

    /// How the last process of the slot ended; none while it runs, and for one that crashed.
    pub fn exit(&self, slot: Slot) -> Option<Exit> {
        self.shared.slots(|slots| slots.of(slot).exit.clone())
    }

    /// When a cluster last gave the slot's process, or the last one there, no sound answer, if ever.
    pub fn troubled_at(&self, slot: Slot, side: Side) -> Option<Millis> {
        let start = self.shared.slots(|slots| slots.of(slot).last_start);
        self.shared.look(|universe| universe.network.troubled_at(Sender::Instance(start), side))
    }

    /// The lanes that the slot's process has from its group, or had when it was told to stop.
    pub fn lanes(&self, slot: Slot) -> BTreeSet<LaneId> {
        self.shared.slots(|slots| slots.of(slot).lanes.clone())
    }

    /// What the slot's process last reported.
    pub fn reports(&self, slot: Slot) -> Option<Report> {
        self.shared.slots(|slots| slots.of(slot).report.clone())
    }

    pub fn view<T>(&self, side: Side, look: impl FnOnce(&Cluster) -> T) -> T {
        self.shared.look(|universe| look(universe.cluster(side)))
    }

    /// Does something to a cluster from outside, with the calls of kafka-model's `admin.rs`.
    pub fn administer(&self, side: Side, act: impl FnOnce(&mut Cluster, Millis) -> Vec<Reply>) {
        self.shared.act(|universe| universe.administer(side, act));
    }

    /// A request of the workload's, through the network, on the client's connection to the broker. Without an
    /// answer in time the connection counts as closed; what was asked may have been done all the same.
    pub async fn request(
        &self,
        side: Side,
        broker: BrokerId,
        client: ClientId,
        request: impl Into<Request>,
    ) -> Outcome {
        let place = (side, broker, client.clone());
        let connection = self.workload.connection(&place);
        let token = self.workload.token();
        let header = RequestHeader { broker, token, client_id: client, api_version: 9 };
        let outgoing =
            Outgoing { sender: Sender::Workload, connection, side, header, request: request.into() };
        self.shared.act(|universe| {
            universe.expect_answer(token);
            universe.send(outgoing);
        });
        let mut patience = Box::pin(Until::new(&self.shared, self.now() + WORKLOAD_PATIENCE_MS));
        let outcome = poll_fn(|context| {
            let answer = self.shared.act(|universe| {
                universe.note_poll("workload", &token);
                universe.take_answer(token, context.waker())
            });
            if let Some(outcome) = answer {
                return Poll::Ready(outcome);
            }
            patience.as_mut().poll(context).map(|()| Outcome::ConnectionClosed)
        })
        .await;
        if outcome == Outcome::ConnectionClosed {
            self.workload.connections.borrow_mut().remove(&place);
            self.shared.act(|universe| {
                universe.forget_answer(token);
                universe.network.close(connection);
            });
        }
        outcome
    }

    /// Whatever the network lost without a word becomes known.
    pub fn tell_of_losses(&self) {
        self.shared.act(|universe| universe.network.tell_of_losses(universe.now()));
    }

    pub fn set_network(&self, faults: NetworkFaults) {
        self.shared.set_network(faults);
    }

    /// Counts for processes that run and for those yet to start.
    pub fn set_client_faults(&self, faults: ClientFaults) {
        self.shared.set_client_faults(faults);
    }

    /// Called after every request that a cluster handled and every tick, with the cluster as it then is. It must
    /// not call this handle. It may take decisions and history away, so that memory stays flat.
    pub fn watch(&self, watcher: Watcher) {
        self.shared.act(|universe| universe.watch(watcher));
    }

    pub fn counters(&self) -> Counters {
        self.shared.look(|universe| universe.counters.clone())
    }

    /// How many events the trace holds.
    pub fn steps(&self) -> u64 {
        self.shared.look(|universe| universe.trace.steps())
    }

    /// Notes something of the scenario's own in the trace.
    pub fn note(&self, kind: &'static str, what: &(impl std::hash::Hash + std::fmt::Debug)) {
        self.shared.act(|universe| {
            let now = universe.now();
            universe.trace.note(now, kind, &"scenario", what);
        });
    }
}

impl Workload {
    fn connection(&self, place: &(Side, BrokerId, ClientId)) -> ConnectionId {
        *self.connections.borrow_mut().entry(place.clone()).or_insert_with(|| {
            self.last_connection.set(self.last_connection.get() + 1);
            ConnectionId(u64::from(self.last_connection.get()))
        })
    }

    fn token(&self) -> RequestToken {
        self.last_token.set(self.last_token.get() + 1);
        RequestToken(u64::from(self.last_token.get()))
    }
}
