//! The whole mirror: hands each event to the sub-machine it concerns.

use crate::command::Command;
use crate::event::Event;
use crate::exit::Exit;
use crate::time::{Instant, Now};

/// One instance of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mirror {
    commands: Vec<Command>,
}

impl Mirror {
    pub fn handle(&mut self, _now: Now, _event: Event) {}

    /// The commands decided on since the last call, in the order they must be submitted.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// When the mirror must be woken if nothing happens until then.
    pub fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// How the mirror ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        None
    }
}
