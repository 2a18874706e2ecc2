//! The whole mirror: hands each event to the sub-machine it concerns.

mod bounded;
mod context;
mod flow_progress;
mod knowledge;
mod ledger_guard;
mod membership;
mod running;
mod starting;

pub use context::{Context, Outbox};
pub use knowledge::Knowledge;
pub use ledger_guard::LedgerGuard;
pub use running::ledger_gone;

use crate::command::Command;
use crate::config::Flow;
use crate::event::{Event, Urgency};
use crate::exit::Exit;
use crate::fault::{Faults, Mutant, Sound};
use crate::time::{Instant, Now};
use running::Running;
use starting::Starting;
use std::sync::Arc;

/// One instance of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mirror<F: Faults = Sound> {
    flow: Arc<Flow>,
    out: Outbox,
    phase: Phase,
    faults: F,
    /// When the last event was handed in: what was due by then has been done.
    handled_at: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Starting(Box<Starting>),
    Running(Box<Running>),
}

impl Mirror<Sound> {
    /// A mirror that begins once it is handed its first event, or asked for its first commands.
    pub fn new(now: Now, flow: Flow) -> Mirror {
        Mirror::with_faults(now, flow, Sound)
    }
}

impl<F: Faults> Mirror<F> {
    /// For tests: a mirror with a planted bug.
    pub fn with_faults(now: Now, flow: Flow, faults: F) -> Mirror<F> {
        let phase = Phase::Starting(Box::new(Starting::new()));
        let handled_at = now.instant;
        let mut mirror = Mirror { flow: Arc::new(flow), out: Outbox::default(), phase, faults, handled_at };
        mirror.handle(now, Event::Woke);
        mirror
    }

    /// Takes in one event and decides all that follows from it.
    pub fn handle(&mut self, now: Now, event: Event) {
        if self.out.exit().is_some() {
            return;
        }
        self.handled_at = now.instant;
        let flow = Arc::clone(&self.flow);
        let mut ctx = Context { now, flow: &flow, out: &mut self.out, faults: &self.faults };
        match &mut self.phase {
            Phase::Starting(starting) => {
                match event {
                    // Nothing was begun, so nothing is left unsettled, but a bounded run has not done its work.
                    Event::Stop(Urgency::Settle | Urgency::Now) => {
                        ctx.out.end(match flow.until {
                            None => Exit::Done,
                            Some(_) => Exit::Unsettled("stopped before it had started".into()),
                        });
                    }
                    event => {
                        if let Some(started) = starting.handle(&mut ctx, &event) {
                            if ctx.plants(Mutant::LanesFromLedger) {
                                let ledger = started.target.topics.get(&flow.name.ledger());
                                let found = ledger.map_or(flow.lanes, |info| info.partitions);
                                Arc::make_mut(&mut self.flow).lanes = found;
                            }
                            let running = Running::start(&mut ctx, started);
                            self.phase = Phase::Running(Box::new(running));
                        } else {
                            starting.poll(&mut ctx);
                        }
                    }
                }
            }
            Phase::Running(running) => running.handle(&mut ctx, event),
        }
    }

    /// The commands decided on since the last call, in the order they must be submitted.
    pub fn take_commands(&mut self) -> Vec<Command> {
        self.out.take()
    }

    /// When the mirror must be woken if nothing happens until then.
    pub fn wake_at(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Starting(starting) => starting.wake_at(self.handled_at, &self.flow),
            Phase::Running(running) => running.wake_at(self.handled_at, &self.flow),
        }
    }

    /// How the mirror ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.out.exit().cloned()
    }
}
