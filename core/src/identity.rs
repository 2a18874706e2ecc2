//! Proof, before each commit, that topics are still the ones that were read and written (H6).
//!
//! A client notices nothing when a topic is deleted and made again under its name. So a run is settled only
//! once a describe that was asked for after the run was read, answers with the same topic ids.

use crate::backoff::SOON;
use crate::command::{Command, Topics};
use crate::event::{Ask, Listing, TopicInfo};
use crate::failure::{Side, Trouble};
use crate::fault::Faults;
use crate::mirror::Context;
use crate::time::Instant;
use kafka_types::{TopicId, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// How often in a row a topic asked for by name must be unknown before it counts as deleted.
const UNKNOWN_MAX: u32 = 3;

/// The latest answers about single topics, and what is to be asked next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicIdentity {
    source: Asking,
    target: Asking,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Asking {
    in_flight: Option<Ask>,
    /// What the question in flight is about.
    asked: BTreeSet<TopicName>,
    /// What the next question must be about.
    wanted: BTreeSet<TopicName>,
    retry_at: Option<Instant>,
    answers: BTreeMap<TopicName, Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    ask: Ask,
    info: Option<TopicInfo>,
    unknown: u32,
}

/// What is known of a topic since some moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// No answer yet to a question asked since then.
    Pending,
    Is(TopicId),
    Deleted,
}

impl TopicIdentity {
    /// Wants answers about these topics to questions asked from now on.
    pub fn want(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        topics: impl IntoIterator<Item = TopicName>,
    ) {
        self.side(side).wanted.extend(topics);
        self.poll(ctx);
    }

    /// What an answer to a question asked after `since` says of `topic`.
    pub fn since(&self, side: Side, topic: &TopicName, since: Ask) -> Identity {
        let asking = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        match asking.answers.get(topic) {
            Some(answer) if since < answer.ask => match &answer.info {
                Some(info) => Identity::Is(info.id),
                None if UNKNOWN_MAX <= answer.unknown => Identity::Deleted,
                None => Identity::Pending,
            },
            _ => Identity::Pending,
        }
    }

    /// Takes in an answer to a question of its own. Whether it was one.
    pub fn answered(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        ask: Ask,
        answer: &Result<Listing, Trouble>,
    ) -> bool {
        let asking = self.side(side);
        if asking.in_flight != Some(ask) {
            return false;
        }
        asking.in_flight = None;
        match answer {
            Ok(listing) => asking.take_in(ctx, ask, listing),
            Err(trouble) => {
                tracing::debug!(%side, %trouble, "cannot describe topics");
                let asked = std::mem::take(&mut asking.asked);
                asking.wanted.extend(asked);
                asking.retry_at = Some(ctx.now.instant + SOON);
            }
        }
        self.poll(ctx);
        true
    }

    /// Asks what is wanted and due.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.source.poll(ctx, Side::Source);
        self.target.poll(ctx, Side::Target);
    }

    pub fn wake_at(&self) -> Option<Instant> {
        crate::backoff::earlier(self.source.retry_at, self.target.retry_at)
    }

    fn side(&mut self, side: Side) -> &mut Asking {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }
}

impl Asking {
    fn poll(&mut self, ctx: &mut Context<'_, impl Faults>, side: Side) {
        if self.retry_at.is_some_and(|at| at <= ctx.now.instant) {
            self.retry_at = None;
        }
        if self.in_flight.is_some() || self.retry_at.is_some() || self.wanted.is_empty() {
            return;
        }
        let ask = ctx.out.ask();
        self.in_flight = Some(ask);
        self.asked = std::mem::take(&mut self.wanted);
        let topics = Topics::Named(self.asked.iter().cloned().collect());
        ctx.out.push(Command::Describe { side, ask, topics });
    }

    fn take_in(&mut self, ctx: &Context<'_, impl Faults>, ask: Ask, listing: &Listing) {
        for (topic, info) in &listing.topics {
            self.answers.insert(topic.clone(), Answer { ask, info: Some(info.clone()), unknown: 0 });
        }
        for topic in &listing.unknown {
            let before = self.answers.get(topic).map_or(0, |answer| answer.unknown);
            let unknown = before.saturating_add(1);
            self.answers.insert(topic.clone(), Answer { ask, info: None, unknown });
            if unknown < UNKNOWN_MAX {
                self.wanted.insert(topic.clone());
                self.retry_at = Some(ctx.now.instant + SOON);
            }
        }
        for topic in listing.trouble.keys() {
            self.wanted.insert(topic.clone());
            self.retry_at = Some(ctx.now.instant + SOON);
        }
    }
}
