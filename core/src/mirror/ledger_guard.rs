use crate::backoff::SOON;
use crate::command::Command;
use crate::event::{Ask, TopicConfig};
use crate::exit::Exit;
use crate::failure::{Side, Trouble};
use crate::fault::Faults;
use crate::ledger::check_settings;
use crate::mirror::Context;
use crate::time::Instant;
use kafka_types::TopicName;
use std::collections::BTreeMap;

/// Proof, at every take, that the ledger's settings still keep what is written there (H4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LedgerGuard {
    in_flight: Option<Ask>,
    wanted: bool,
    retry_at: Option<Instant>,
    sound: Option<Ask>,
}

impl LedgerGuard {
    /// Wants an answer to a question asked from now on.
    pub fn want(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.wanted = true;
        self.poll(ctx);
    }

    /// Whether an answer to a question asked after `since` found the ledger sound.
    pub fn is_sound_since(&self, since: Ask) -> bool {
        self.sound.is_some_and(|ask| since < ask)
    }

    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>) {
        if self.retry_at.is_some_and(|at| at <= ctx.now.instant) {
            self.retry_at = None;
        }
        if !self.wanted || self.in_flight.is_some() || self.retry_at.is_some() {
            return;
        }
        self.wanted = false;
        let ask = ctx.out.ask();
        self.in_flight = Some(ask);
        let topics = vec![ctx.flow.name.ledger()];
        ctx.out.push(Command::DescribeConfigs { side: Side::Target, ask, topics });
    }

    /// Takes in an answer to a question of its own. Whether it was one.
    pub fn answered(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        ask: Ask,
        answer: &Result<BTreeMap<TopicName, TopicConfig>, Trouble>,
    ) -> bool {
        if self.in_flight != Some(ask) {
            return false;
        }
        self.in_flight = None;
        let config = answer.as_ref().map(|configs| configs.get(&ctx.flow.name.ledger()));
        match config {
            Ok(Some(config)) => match check_settings(config) {
                Ok(()) => self.sound = Some(ask),
                Err(unsafe_ledger) => ctx.out.end(Exit::Configuration(unsafe_ledger.to_string())),
            },
            Err(trouble @ Trouble::NotAuthorized { .. }) => {
                ctx.out.end(Exit::NotAuthorized(Side::Target, trouble.clone()));
            }
            Ok(None) | Err(_) => {
                self.wanted = true;
                self.retry_at = Some(ctx.now.instant + SOON);
            }
        }
        self.poll(ctx);
        true
    }

    pub fn wake_at(&self) -> Option<Instant> {
        self.retry_at
    }
}
