use crate::fault::Faults;
use crate::mirror::Context;
use crate::time::Instant;
use kafka_types::TopicName;
use std::collections::BTreeMap;

/// Topics that the target would not have when it was last asked. They are asked for again after a while: a missing
/// broker, a quota, a policy or an ACL may have been mended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Refusals {
    topics: BTreeMap<TopicName, Refusal>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Refusal {
    why: String,
    again_at: Instant,
}

impl Refusals {
    pub(super) fn add(&mut self, ctx: &Context<'_, impl Faults>, topic: &TopicName, why: String) {
        let again_at = ctx.now.instant + ctx.flow.refresh;
        self.topics.insert(topic.clone(), Refusal { why, again_at });
    }

    pub(super) fn lift(&mut self, topic: &TopicName) {
        self.topics.remove(topic);
    }

    pub(super) fn why(&self, topic: &TopicName) -> Option<&str> {
        self.topics.get(topic).map(|refusal| refusal.why.as_str())
    }

    /// Whether it is too early to ask for this topic again.
    pub(super) fn wait(&self, topic: &TopicName, now: Instant) -> bool {
        self.topics.get(topic).is_some_and(|refusal| now < refusal.again_at)
    }
}
