//! What a round makes of answers that are none.

use super::making::Making;
use super::topics::TargetTopics;
use crate::exit::Exit;
use crate::failure::{Side, Trouble};
use crate::fault::Faults;
use crate::mirror::Context;
use kafka_types::TopicName;
use std::collections::BTreeMap;

impl TargetTopics {
    pub(super) fn round_failed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        topics: &BTreeMap<TopicName, Making>,
        trouble: &Trouble,
    ) {
        match trouble {
            Trouble::NotAuthorized { resource, .. } => {
                let is_named = |topic: &TopicName| {
                    let asked = match side {
                        Side::Source => topic.clone(),
                        Side::Target => ctx.flow.rename.target(topic),
                    };
                    *resource == format!("Topic {asked}")
                };
                match topics.iter().find(|(topic, _)| is_named(topic)) {
                    Some((topic, making)) => self.denied(ctx, side, topic, making, trouble),
                    None => ctx.out.end(Exit::NotAuthorized(side, trouble.clone())),
                }
            }
            Trouble::Unreachable(_)
            | Trouble::Authentication(_)
            | Trouble::Refused(_)
            | Trouble::Passing(_) => tracing::warn!(%side, %trouble, "cannot prepare target topics"),
        }
        self.try_again(ctx);
    }

    pub(super) fn topic_failed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        topic: &TopicName,
        making: &Making,
        trouble: &Trouble,
    ) {
        match trouble {
            Trouble::NotAuthorized { .. } => self.denied(ctx, Side::Target, topic, making, trouble),
            Trouble::Refused(text) => {
                tracing::error!(%topic, %trouble, "the target refuses to have the topic; it is not mirrored");
                self.refusals.add(ctx, topic, text.clone());
            }
            Trouble::Unreachable(_) | Trouble::Authentication(_) | Trouble::Passing(_) => {
                tracing::warn!(%topic, %trouble, "cannot prepare the target topic yet");
            }
        }
        self.try_again(ctx);
    }

    /// Whoever starts the mirror is told at once. A topic that appears years later must not end the others.
    fn denied(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        topic: &TopicName,
        making: &Making,
        trouble: &Trouble,
    ) {
        if making.is_new {
            tracing::error!(%topic, %trouble, %side, "the new topic is not mirrored until it is allowed");
            self.refusals.add(ctx, topic, format!("the {side}: {trouble}"));
        } else {
            ctx.out.end(Exit::NotAuthorized(side, trouble.clone()));
        }
    }
}
