//! What the tasks of one run share.

use crate::alarms::AlarmId;
use crate::client::ClientFaults;
use crate::network::{NetworkFaults, Sender};
use crate::simulation::{Record, Setup};
use crate::slots::Slots;
use crate::universe::Universe;
use kafka_model::Millis;
use madsim::task::{AbortHandle, NodeId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

/// One run's universe and its processes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Rc<Inner>);

struct Inner {
    seed: u64,
    universe: RefCell<Universe>,
    slots: RefCell<Slots>,
    setup: RefCell<Setup>,
    clock: RefCell<Option<Waker>>,
    /// Tasks of the run itself, and the nodes of its processes: all to be ended with it.
    tasks: RefCell<Vec<AbortHandle>>,
    nodes: RefCell<Vec<NodeId>>,
    /// When the clock wakes by itself.
    clock_wakes_at: Cell<Option<Millis>>,
}

impl Shared {
    pub(crate) fn new(seed: u64, universe: Universe, setup: Setup) -> Shared {
        Shared(Rc::new(Inner {
            seed,
            universe: RefCell::new(universe),
            slots: RefCell::new(Slots::default()),
            setup: RefCell::new(setup),
            clock: RefCell::new(None),
            tasks: RefCell::new(Vec::new()),
            nodes: RefCell::new(Vec::new()),
            clock_wakes_at: Cell::new(None),
        }))
    }

    pub(crate) fn seed(&self) -> u64 {
        self.0.seed
    }

    pub(crate) fn now(&self) -> Millis {
        self.0.universe.borrow().now()
    }

    /// Looks at the universe and changes nothing in it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Universe) -> T) -> T {
        look(&self.0.universe.borrow())
    }

    /// Does something in the universe. What must follow from it soon is seen to by the clock.
    pub(crate) fn act<T>(&self, act: impl FnOnce(&mut Universe) -> T) -> T {
        let mut universe = self.0.universe.borrow_mut();
        let value = act(&mut universe);
        let next = universe.next_at();
        drop(universe);
        let wakes_at = self.0.clock_wakes_at.get();
        if next.is_some_and(|next| wakes_at.is_none_or(|at| next < at)) {
            // One call is enough until the clock has answered it.
            self.0.clock_wakes_at.set(next);
            if let Some(clock) = &*self.0.clock.borrow() {
                clock.wake_by_ref();
            }
        }
        value
    }

    /// For the clock only: does all that is due, and says when it must be called again.
    pub(crate) fn advance(&self, now: Millis, clock: &Waker) -> Option<Millis> {
        let mut universe = self.0.universe.borrow_mut();
        universe.trace.note(now, "polls", &"clock", &());
        universe.advance(now);
        let next = universe.next_at();
        self.0.clock_wakes_at.set(next);
        self.0.clock.borrow_mut().get_or_insert_with(|| clock.clone());
        next
    }

    pub(crate) fn slots<T>(&self, act: impl FnOnce(&mut Slots) -> T) -> T {
        act(&mut self.0.slots.borrow_mut())
    }

    pub(crate) fn setup<T>(&self, look: impl FnOnce(&Setup) -> T) -> T {
        look(&self.0.setup.borrow())
    }

    pub(crate) fn set_network(&self, faults: NetworkFaults) {
        self.act(|universe| {
            universe.trace.note(universe.now(), "network", &(), &format_args!("{faults:?}").to_string());
            universe.network.faults = faults;
        });
    }

    pub(crate) fn set_client_faults(&self, faults: ClientFaults) {
        self.0.setup.borrow_mut().client = faults;
    }

    /// The process of this start is gone, at once.
    pub(crate) fn process_is_gone(&self, start: u32) {
        let cancels = self.setup(|setup| setup.sim_mutants.death_cancels_requests);
        self.act(|universe| {
            let now = universe.now();
            universe.network.outlive(now, Sender::Instance(start), &mut universe.counters);
            universe.close_inbox(start);
            if cancels {
                universe.network.cancel_all_of(Sender::Instance(start));
            }
        });
    }

    /// Runs a task of the run itself, which ends with it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let handle = madsim::task::spawn_local(task);
        self.0.tasks.borrow_mut().push(handle.abort_handle());
    }

    pub(crate) fn node_began(&self, node: NodeId) {
        self.0.nodes.borrow_mut().push(node);
    }

    /// Ends all tasks, once the executor is next run. A task holds its own waker, and what is shared: without
    /// this, a run that is over would stay in memory for ever.
    pub(crate) fn end_tasks(&self, runtime: &madsim::runtime::Handle) {
        self.0.tasks.take().iter().for_each(AbortHandle::abort);
        self.0.nodes.take().into_iter().for_each(|node| runtime.kill(node));
        // The watcher may hold anything, this run too.
        let watcher = self.0.universe.try_borrow_mut().map(|mut universe| universe.take_watcher());
        drop(watcher);
    }

    pub(crate) fn close(&self) -> Record {
        let universe = self.0.universe.borrow();
        Record {
            seed: self.0.seed,
            trace_hash: universe.trace.hash(),
            steps: universe.trace.steps(),
            virtual_millis: universe.now(),
            counters: universe.counters.clone(),
            lines: universe.trace.clone().into_lines(),
        }
    }
}

/// Waits until a moment of the universe's clock.
pub(crate) struct Until {
    shared: Shared,
    at: Millis,
    alarm: Option<AlarmId>,
}

impl Until {
    pub(crate) fn new(shared: &Shared, at: Millis) -> Until {
        Until { shared: shared.clone(), at, alarm: None }
    }
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let at = self.at;
        self.shared.act(|universe| universe.note_poll("sleeper", &at));
        if self.at <= self.shared.now() {
            self.alarm = None;
            return std::task::Poll::Ready(());
        }
        if self.alarm.is_none() {
            let (at, waker) = (self.at, context.waker().clone());
            self.alarm = Some(self.shared.act(|universe| universe.alarms.set(at, waker)));
        }
        std::task::Poll::Pending
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            self.shared.act(|universe| universe.alarms.cancel(alarm));
        }
    }
}
