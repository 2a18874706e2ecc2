use crate::backoff::{SOON, earlier};
use crate::command::{Command, Topics};
use crate::event::{Ask, Listing, TopicInfo};
use crate::failure::{Side, Trouble};
use crate::fault::Faults;
use crate::mirror::Context;
use crate::time::Instant;
use kafka_types::{Partition, SourcePartition, TopicName};
use std::collections::BTreeMap;

/// How often in a row a topic must be unknown before it counts as deleted: metadata can be partial (H5).
const UNKNOWN_MAX: u32 = 3;

/// Which topics and partitions exist on both sides, asked for again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Discovery {
    source: View,
    target: View,
}

/// One cluster's topics as last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct View {
    asked: Option<Ask>,
    next: Option<Instant>,
    /// The question that the latest listing answered.
    listed_at: Ask,
    topics: BTreeMap<TopicName, Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    info: TopicInfo,
    unknown: u32,
    /// It was there when this instance started.
    at_start: bool,
}

impl Discovery {
    /// Starts from listings that were fetched already.
    pub fn start(&mut self, ctx: &Context<'_, impl Faults>, source: &Listing, target: &Listing) {
        self.source.take_all(ctx, source, |topic| ctx.flow.filter.takes(topic));
        self.target.take_all(ctx, target, |_| true);
        for seen in self.source.topics.values_mut() {
            seen.at_start = true;
        }
        self.source.next = Some(ctx.now.instant + ctx.flow.refresh);
        self.target.next = Some(ctx.now.instant + ctx.flow.refresh);
    }

    /// Asks for what is due.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.source.poll(ctx, Side::Source);
        self.target.poll(ctx, Side::Target);
    }

    /// Looks again within a second, because something expected was not there.
    pub fn look_soon(&mut self, now: Instant, side: Side) {
        let view = self.view(side);
        view.next = earlier(view.next, Some(now + SOON));
    }

    /// Takes in an answer to a question of its own. Whether it was one, and brought news.
    pub fn answered(
        &mut self,
        ctx: &Context<'_, impl Faults>,
        side: Side,
        ask: Ask,
        answer: &Result<Listing, Trouble>,
    ) -> bool {
        let view = self.view(side);
        if view.asked != Some(ask) {
            return false;
        }
        view.asked = None;
        match answer {
            Ok(listing) => {
                view.listed_at = ask;
                view.next = Some(ctx.now.instant + ctx.flow.refresh);
                view.take_all(ctx, listing, |topic| side == Side::Target || ctx.flow.filter.takes(topic));
                true
            }
            Err(trouble) => {
                tracing::warn!(%side, %trouble, "cannot list topics");
                view.next = Some(ctx.now.instant + SOON);
                false
            }
        }
    }

    /// A source topic that the flow takes.
    pub fn source_topic(&self, topic: &TopicName) -> Option<&TopicInfo> {
        self.topic(Side::Source, topic)
    }

    pub fn target_topic(&self, topic: &TopicName) -> Option<&TopicInfo> {
        self.topic(Side::Target, topic)
    }

    pub fn topic(&self, side: Side, topic: &TopicName) -> Option<&TopicInfo> {
        self.seen_by(side).topics.get(topic).map(|seen| &seen.info)
    }

    /// The question that the latest listing of this side answered.
    pub fn listed_at(&self, side: Side) -> Ask {
        self.seen_by(side).listed_at
    }

    /// Whether a source topic has appeared while this instance ran.
    pub fn is_new(&self, topic: &TopicName) -> bool {
        self.source.topics.get(topic).is_some_and(|seen| !seen.at_start)
    }

    pub fn source_topics(&self) -> impl Iterator<Item = (&TopicName, &TopicInfo)> {
        self.source.topics.iter().map(|(topic, seen)| (topic, &seen.info))
    }

    /// Every partition that the flow takes.
    pub fn source_partitions(&self) -> impl Iterator<Item = SourcePartition> {
        self.source_topics().flat_map(|(topic, info)| {
            Partition::all(info.partitions)
                .map(|partition| SourcePartition { topic: topic.clone(), partition })
        })
    }

    /// Whether listings of this side, the latest of them, have missed a topic too often to be chance.
    pub fn is_deleted(&self, side: Side, topic: &TopicName) -> bool {
        self.seen_by(side).topics.get(topic).is_some_and(|seen| UNKNOWN_MAX <= seen.unknown)
    }

    pub fn wake_at(&self) -> Option<Instant> {
        earlier(self.source.wake_at(), self.target.wake_at())
    }

    fn seen_by(&self, side: Side) -> &View {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    fn view(&mut self, side: Side) -> &mut View {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }
}

impl View {
    fn poll(&mut self, ctx: &mut Context<'_, impl Faults>, side: Side) {
        if self.wake_at().is_some_and(|next| next <= ctx.now.instant) {
            let ask = ctx.out.ask();
            self.asked = Some(ask);
            ctx.out.push(Command::Describe { side, ask, topics: Topics::All });
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        if self.asked.is_some() { None } else { self.next }
    }

    /// A topic missing from a listing is kept until it has been missing repeatedly; what must happen to its
    /// partitions is for their lanes to say.
    fn take_all(
        &mut self,
        ctx: &Context<'_, impl Faults>,
        listing: &Listing,
        takes: impl Fn(&TopicName) -> bool,
    ) {
        let mut missing = false;
        for (topic, seen) in &mut self.topics {
            if !listing.topics.contains_key(topic) && !listing.trouble.contains_key(topic) {
                seen.unknown = seen.unknown.saturating_add(1);
                missing |= seen.unknown < UNKNOWN_MAX;
            }
        }
        for (topic, info) in &listing.topics {
            if takes(topic) && !info.internal {
                let at_start = self.topics.get(topic).is_some_and(|seen| seen.at_start);
                self.topics.insert(topic.clone(), Seen { info: info.clone(), unknown: 0, at_start });
            }
        }
        if missing {
            self.next = earlier(self.next, Some(ctx.now.instant + SOON));
        }
    }
}
