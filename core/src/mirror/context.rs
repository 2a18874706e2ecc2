use crate::command::{Command, LaneCommand};
use crate::config::Flow;
use crate::event::Ask;
use crate::exit::Exit;
use crate::fault::{Faults, Mutant};
use crate::lane::{Attempt, LaneId};
use crate::time::Now;

/// What every sub-machine is given with an event: the time, the configuration, and where decisions go.
pub struct Context<'a, F> {
    pub now: Now,
    pub flow: &'a Flow,
    pub out: &'a mut Outbox,
    pub faults: &'a F,
}

impl<F: Faults> Context<'_, F> {
    /// Whether this bug was planted. Never in production, where the answer is known at compile time.
    pub fn plants(&self, mutant: Mutant) -> bool {
        self.faults.plants(mutant)
    }
}

/// Decisions on their way to the World.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outbox {
    commands: Vec<Command>,
    asked: u64,
    exit: Option<Exit>,
}

impl Outbox {
    pub fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    pub fn lane(&mut self, lane: LaneId, attempt: Attempt, command: LaneCommand) {
        self.commands.push(Command::Lane(lane, attempt, command));
    }

    /// A number for the next question.
    pub fn ask(&mut self) -> Ask {
        self.asked += 1;
        Ask(self.asked)
    }

    /// The latest number given out: what is asked later has a higher one.
    pub fn asked(&self) -> Ask {
        Ask(self.asked)
    }

    /// Ends the mirror. The first reason stands: what follows it is its consequence.
    pub fn end(&mut self, exit: Exit) {
        self.exit.get_or_insert(exit);
    }

    pub fn exit(&self) -> Option<&Exit> {
        self.exit.as_ref()
    }

    pub fn take(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }
}
