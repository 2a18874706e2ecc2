//! The handle on the thread of a lane's transactional producer.

use super::LaneSettings;
use super::bell::Bell;
use super::emitter::Emitter;
use super::outbox::Outbox;
use super::prepare::Targets;
use super::store::Held;
use super::watchdog::Watchdog;
use kafka_types::TargetPartition;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use verbatim_core::Attempt;
use verbatim_core::batch::BatchId;
use verbatim_core::command::NewLedgerRecord;
use verbatim_core::event::Step;

pub(super) enum ProducerCommand {
    /// The records come with the command: once it is given, nothing that happens to their partition at the
    /// source may take them away.
    Produce {
        batch: BatchId,
        held: Option<Held>,
        target: TargetPartition,
        alone: bool,
    },
    Settle(Vec<NewLedgerRecord>),
    Abort,
    Prepare(Targets),
}

/// The sending end: commands for the producer's thread, which ends when this is dropped.
pub(super) struct Producer {
    commands: Sender<(Attempt, ProducerCommand)>,
    bell: Bell,
}

impl Producer {
    /// Starts the thread, which begins by initialising the lane's transactional id.
    pub(super) fn start(
        emitter: &Emitter,
        attempt: Attempt,
        watchdog: Watchdog,
        settings: Arc<LaneSettings>,
    ) -> Producer {
        let (sender, commands) = channel();
        let bell = Bell::default();
        let (emits, rings) = (emitter.clone(), bell.clone());
        emitter.spawn(attempt, Step::Open, "producer", move || {
            if let Some(mut outbox) = Outbox::open(attempt, emits, watchdog, settings) {
                let _hung = rings.hang(outbox.waker());
                outbox.run(&commands);
            }
        });
        Producer { commands: sender, bell }
    }

    pub(super) fn send(&self, attempt: Attempt, command: ProducerCommand) {
        // A thread that has ended has said why.
        let _ = self.commands.send((attempt, command));
        self.wake();
    }

    /// So that the thread looks at once whether there is a command, or whether its lane is abandoned.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }
}
