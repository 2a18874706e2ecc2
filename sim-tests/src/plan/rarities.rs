use super::draw::Draw;
use super::{Action, FlowPlan, TimedAction, TopicPlan};
use runtime_sim::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What few flows meet. Each of it changes what the mirror has to do for the whole run, so most seeds have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rarities {
    /// Source topics whose copies somebody made on the target beforehand, with the largest batch that those take.
    pub target_bytes_max: BTreeMap<String, u32>,
    /// The flow starts with what comes, not with what is there.
    pub starts_at_end: bool,
}

/// Draws them apart from the rest, so that one more of them changes nothing else of a seed's plan.
pub fn draw(
    seed: u64,
    flow: &FlowPlan,
    topics: &[TopicPlan],
    active_ms: i64,
) -> (Rarities, Vec<TimedAction>) {
    let mut random = Random::of(seed, "rarities");
    let mut rare = Rarities { starts_at_end: random.chance(0.2), ..Rarities::default() };
    for topic in topics {
        let largest = random.log_uniform(500.0, 50_000.0) as u32;
        if random.chance(0.08) {
            rare.target_bytes_max.insert(topic.name.clone(), largest);
        }
    }
    let mut actions = Vec::new();
    let at_ms = random.between(active_ms / 3, active_ms * 9 / 10);
    let partitions = i32::try_from(flow.lanes).unwrap_or(1) + random.between(1, 8) as i32;
    if random.chance(0.06) {
        actions.push(TimedAction { at_ms, action: Action::GrowLedger { partitions } });
    }
    (rare, actions)
}
