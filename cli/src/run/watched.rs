//! A World that also keeps count of the topics that the flow takes, from the listings that the mirror asks for anyway.
//! The mirror itself says what it starts with; what changes later is said here.

use crate::matching::Matched;
use verbatim_core::World;
use verbatim_core::command::{Command, Topics};
use verbatim_core::config::Flow;
use verbatim_core::event::{Ask, Event, Listing};
use verbatim_core::failure::Side;
use verbatim_core::time::{Instant, Now};

pub(super) struct Watched<W> {
    world: W,
    flow: Flow,
    /// The latest question for all of the source's topics.
    asked: Option<Ask>,
    matched: Option<Matched>,
}

impl<W> Watched<W> {
    pub(super) fn new(world: W, flow: Flow) -> Watched<W> {
        Watched { world, flow, asked: None, matched: None }
    }

    /// What the rules match, as last listed.
    pub(super) fn matched(&self) -> Option<&Matched> {
        self.matched.as_ref()
    }

    pub(super) fn into_inner(self) -> W {
        self.world
    }

    fn heed(&mut self, listing: &Listing) {
        let matched = Matched::of(&self.flow, listing);
        if self.matched.as_ref().is_some_and(|before| *before != matched) {
            let Matched { topics, partitions, .. } = matched;
            tracing::info!(topics, partitions, "the source now has these that topics.include takes");
        }
        self.matched = Some(matched);
    }
}

impl<W: World> World for Watched<W> {
    fn submit(&mut self, command: Command) {
        if let Command::Describe { side: Side::Source, ask, topics: Topics::All } = &command {
            self.asked = Some(*ask);
        }
        self.world.submit(command);
    }

    async fn next(&mut self, wake: Option<Instant>) -> (Now, Event) {
        let (now, event) = self.world.next(wake).await;
        if let Event::Described { side: Side::Source, ask, answer: Ok(listing) } = &event
            && self.asked == Some(*ask)
        {
            self.heed(listing);
        }
        (now, event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, flow};
    use kafka_types::TopicName;
    use verbatim_core::time::Timestamp;

    /// Answers with the events that it was given.
    struct Script(Vec<Event>);

    impl World for Script {
        fn submit(&mut self, _command: Command) {}

        async fn next(&mut self, _wake: Option<Instant>) -> (Now, Event) {
            let now = Now { instant: Instant::START, wall: Timestamp(0) };
            (now, self.0.remove(0))
        }
    }

    fn describe(ask: u64, topics: Topics) -> Command {
        Command::Describe { side: Side::Source, ask: Ask(ask), topics }
    }

    fn described(ask: u64, listing: &Listing) -> Event {
        Event::Described { side: Side::Source, ask: Ask(ask), answer: Ok(listing.clone()) }
    }

    #[test]
    fn only_a_listing_of_all_topics_tells_what_is_matched() {
        let mut fake = Fake::new();
        let nothing = fake.source.clone();
        fake.topic("orders", Vec::new(), 0);
        let script = Script(vec![described(1, &nothing), described(2, &fake.source), described(3, &nothing)]);
        let mut world = Watched::new(script, flow());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut topics = Vec::new();
        for (ask, asked) in
            [(1, Topics::All), (2, Topics::All), (3, Topics::Named(vec![TopicName::from("x")]))]
        {
            world.submit(describe(ask, asked));
            runtime.block_on(world.next(None));
            topics.push(world.matched().map(|matched| matched.topics));
        }
        assert_eq!(topics, [Some(0), Some(1), Some(1)]);
    }
}
