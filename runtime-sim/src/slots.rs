//! The places where instances run: each holds one process at a time, and what became of the last.

use crate::moments::Moment;
use crate::network::Unreachable;
use kafka_model::Millis;
use madsim::task::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use verbatim_core::command::Report;
use verbatim_core::event::Urgency;
use verbatim_core::{Exit, LaneId};

/// A place for one process, such as a machine or a pod's ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Slot(pub u32);

/// Done once.
pub type Deed = Box<dyn FnOnce()>;

#[derive(Default)]
pub(crate) struct Slots {
    slots: BTreeMap<Slot, SlotState>,
    starts: u32,
}

#[derive(Default)]
pub(crate) struct SlotState {
    /// The process that runs there, if one does.
    pub(crate) process: Option<Process>,
    pub(crate) exit: Option<Exit>,
    pub(crate) report: Option<Report>,
    /// Moments at which the process will crash.
    pub(crate) crash_at: BTreeSet<Moment>,
    /// Moments of the process at which a target broker will crash.
    pub(crate) broker_crashes_at: BTreeSet<Moment>,
    /// What somebody does at moments of the process.
    pub(crate) waiting: BTreeMap<Moment, Vec<Deed>>,
    /// Brokers that the machine does not reach, or that do not reach it.
    pub(crate) unreachable: Unreachable,
    /// The worker of a process here hears of nothing, though its clients go on.
    pub(crate) is_stalled: bool,
    /// How far the wall clock of the machine is off.
    pub(crate) wall_skew_ms: Millis,
    pub(crate) times_started: u32,
    /// The number of the last process's start among those of all slots.
    pub(crate) last_start: u32,
    /// What the group had given to the last process when it was told to stop, if it was.
    pub(crate) lanes: BTreeSet<LaneId>,
}

pub(crate) struct Process {
    /// Numbers the starts of all slots, from 1 on.
    pub(crate) start: u32,
    pub(crate) node: Option<NodeId>,
    pub(crate) is_paused: bool,
    /// What it was told and has not heard yet.
    pub(crate) told_to_stop: Option<Urgency>,
    pub(crate) waker: Option<Waker>,
}

impl Slots {
    pub(crate) fn of(&mut self, slot: Slot) -> &mut SlotState {
        self.slots.entry(slot).or_default()
    }

    /// A process begins; its start's number.
    pub(crate) fn begin(&mut self, slot: Slot) -> u32 {
        self.starts += 1;
        let start = self.starts;
        let state = self.of(slot);
        state.exit = None;
        state.report = None;
        state.times_started += 1;
        state.last_start = start;
        state.lanes.clear();
        state.process =
            Some(Process { start, node: None, is_paused: false, told_to_stop: None, waker: None });
        start
    }

    /// The slot's state, if that start still runs there.
    pub(crate) fn running(&mut self, slot: Slot, start: u32) -> Option<&mut SlotState> {
        let state = self.of(slot);
        state.process.as_ref().is_some_and(|process| process.start == start).then_some(state)
    }

    pub(crate) fn running_slots(&self) -> Vec<Slot> {
        let running = self.slots.iter().filter(|(_, state)| state.process.is_some());
        running.map(|(slot, _)| *slot).collect()
    }
}
