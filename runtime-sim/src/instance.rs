//! A process of the mirror: a madsim node that can be killed, paused and started again.

use crate::client::{Process, ProcessSettings};
use crate::counters::Fault;
use crate::network::Sender;
use crate::random::Random;
use crate::shared::Shared;
use crate::slots::Slot;
use crate::world::SimWorld;
use kafka_model::{BrokerId, Millis};
use madsim::task::NodeId;
use std::cell::RefCell;
use std::pin::Pin;
use std::task::Waker;
use verbatim_core::config::Flow;
use verbatim_core::fault::{Mutant, Planted};
use verbatim_core::time::{Instant, Now, Timestamp};
use verbatim_core::{Exit, Mirror, drive};

/// What a process is started with beside its flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceSettings {
    /// `group.instance.id`: a static member, if there is one.
    pub instance_id: Option<String>,
}

/// Both of a process's clocks: the universe's, and a wall clock that may be off.
pub(crate) fn now_of(now: Millis, wall_skew_ms: Millis) -> Now {
    let since_start = std::time::Duration::from_millis(now.max(0).cast_unsigned());
    Now { instant: Instant(since_start), wall: Timestamp(now + wall_skew_ms) }
}

pub(crate) fn start(shared: &Shared, slot: Slot, flow: Flow, settings: InstanceSettings) {
    let (start, is_first) = shared.slots(|slots| (slots.begin(slot), slots.of(slot).times_started == 1));
    let (mutants, planted, faults, brokers) = shared.setup(|setup| {
        let brokers = (1..=i32::from(setup.brokers)).map(BrokerId).collect();
        (setup.client_mutants, setup.mirror_mutant, setup.client.clone(), brokers)
    });
    reach_out(shared, slot);
    shared.act(|universe| {
        universe.open_inbox(start);
        universe.counters.starts += 1;
        universe.counters.restarts += u64::from(!is_first);
        let now = universe.now();
        universe.trace.note(now, "starts", &slot, &(start, &settings.instance_id));
    });
    let of_process = ProcessSettings {
        start,
        flow: flow.name.clone(),
        instance_id: settings.instance_id,
        brokers,
        mutants,
    };
    let random = Random::of(shared.seed() ^ u64::from(start), "instance");
    let process = Process::new(of_process, random, faults);
    let on_node = shared.clone();
    let node = spawn_on_new_node(format!("instance-{}-{start}", slot.0), async move {
        let mut world = SimWorld::new(&on_node, slot, start, process);
        let exit = live(&mut world, flow, planted).await;
        world.shut_down();
        on_node.act(|universe| {
            let now = universe.now();
            universe.trace.note(now, "exits", &slot, &exit);
            universe.close_inbox(start);
        });
        on_node.slots(|slots| {
            if let Some(state) = slots.running(slot, start) {
                state.exit = Some(exit);
                state.process = None;
            }
        });
    });
    shared.node_began(node);
    shared.slots(|slots| {
        if let Some(process) = &mut slots.of(slot).process {
            process.node = Some(node);
        }
    });
}

/// The life of a mirror, sound or with a planted bug.
async fn live(world: &mut SimWorld, flow: Flow, planted: Option<Mutant>) -> Exit {
    match planted {
        None => drive(&mut Mirror::new(world.now(), flow), world).await,
        Some(mutant) => drive(&mut Mirror::with_faults(world.now(), flow, Planted(mutant)), world).await,
    }
}

/// The process is gone: its tasks are dropped, and nothing that arrives for it finds anybody.
pub(crate) fn crash(shared: &Shared, slot: Slot) {
    let Some(process) = shared.slots(|slots| slots.of(slot).process.take()) else { return };
    shared.act(|universe| {
        universe.counters.crashes += 1;
        let now = universe.now();
        universe.trace.note(now, "crashes", &slot, &process.start);
    });
    shared.process_is_gone(process.start);
    if let Some(node) = process.node {
        madsim::runtime::Handle::current().kill(node);
    }
}

/// Tells the network which brokers the slot's process reaches.
pub(crate) fn reach_out(shared: &Shared, slot: Slot) {
    let (start, unreachable) = shared.slots(|slots| {
        let state = slots.of(slot);
        (state.process.as_ref().map(|process| process.start), state.unreachable.clone())
    });
    let Some(start) = start else { return };
    shared.act(|universe| {
        let now = universe.now();
        universe.trace.note(now, "reaches all but", &slot, &unreachable);
        universe.network.cut_off(Sender::Instance(start), unreachable);
    });
}

pub(crate) fn pause(shared: &Shared, slot: Slot) {
    set_paused(shared, slot, true);
}

pub(crate) fn resume(shared: &Shared, slot: Slot) {
    set_paused(shared, slot, false);
}

fn set_paused(shared: &Shared, slot: Slot, is_paused: bool) {
    let node = shared.slots(|slots| {
        let process = slots.of(slot).process.as_mut().filter(|process| process.is_paused != is_paused)?;
        process.is_paused = is_paused;
        process.node
    });
    let Some(node) = node else { return };
    let handle = madsim::runtime::Handle::current();
    shared.act(|universe| {
        universe.counters.pauses += u64::from(is_paused);
        let now = universe.now();
        universe.trace.note(now, if is_paused { "pauses" } else { "resumes" }, &slot, &());
    });
    if is_paused { handle.pause(node) } else { handle.resume(node) }
}

pub(crate) fn stall(shared: &Shared, slot: Slot, is_stalled: bool) {
    let waker = shared.slots(|slots| {
        let state = slots.of(slot);
        let changes = std::mem::replace(&mut state.is_stalled, is_stalled) != is_stalled;
        changes.then(|| state.process.as_mut().and_then(|process| process.waker.take()))
    });
    let Some(waker) = waker else { return };
    shared.act(|universe| {
        if is_stalled {
            universe.counters.fault(Fault::WorkerStalled);
        }
        let now = universe.now();
        universe.trace.note(now, if is_stalled { "stalls" } else { "goes on" }, &slot, &());
    });
    waker.into_iter().for_each(Waker::wake);
}

/// madsim starts a node's first task from a closure that must be `Send`, although all runs on this thread: the
/// task is handed over through the thread.
fn spawn_on_new_node(name: String, task: impl Future<Output = ()> + 'static) -> NodeId {
    thread_local! {
        static NEXT: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>> = const { RefCell::new(None) };
    }
    NEXT.set(Some(Box::pin(task)));
    let init = || NEXT.take().expect("a node is started once");
    madsim::runtime::Handle::current().create_node().name(name).init(init).build().id()
}
