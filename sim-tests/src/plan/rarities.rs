use super::draw::Draw;
use super::{Action, FlowPlan, OddCopy, TimedAction, TopicPlan};
use runtime_sim::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What few flows meet. Each of it changes what the mirror has to do for the whole run, so most seeds have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rarities {
    /// Source topics whose copies somebody made on the target beforehand, with the largest batch that those take.
    pub target_bytes_max: BTreeMap<String, u32>,
    /// Source topics whose copies somebody made on the target beforehand, in another way than the mirror would.
    pub odd_copies: BTreeMap<String, OddCopy>,
    /// Of the workload's records, how many in a thousand are of the time 0, which the client library cannot send.
    pub zero_timestamps: u32,
    /// How far the clock of each cluster is off.
    pub source_clock_ms: i64,
    pub target_clock_ms: i64,
    /// Followers on the target are so far behind, each time.
    pub target_replication_ms: Option<i64>,
    /// So long the target makes every client wait after each request, for the whole run.
    pub target_throttle_ms: i64,
    /// Of records, how many in a million the client library does not even queue.
    pub send_refused: u32,
    /// The flow starts with what comes, not with what is there.
    pub starts_at_end: bool,
    /// The flow starts with what has this timestamp or a later one.
    pub starts_at_ms: Option<i64>,
    /// A bounded run that has ended is run again, as by a timer.
    pub runs_again: bool,
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
        let largest = random.log_uniform(2_000.0, 50_000.0) as u32;
        // A record that is too large is searched for in batches, and those of a few records each take for ever.
        if random.chance(0.25) && 20 <= flow.fetch_records_max {
            rare.target_bytes_max.insert(topic.name.clone(), largest);
        }
    }
    // One record a request and each long under way would make transactions of minutes.
    if random.chance(0.3) && 50 <= flow.batch_records_max.min(flow.fetch_records_max) {
        rare.target_replication_ms = Some(random.log_uniform(50.0, 1_000.0) as i64);
    }
    if random.chance(0.3) {
        rare.send_refused = random.log_uniform(100.0, 5_000.0) as u32;
    }
    let mut actions = Vec::new();
    let at_ms = random.between(active_ms / 3, active_ms * 9 / 10);
    let partitions = i32::try_from(flow.lanes).unwrap_or(1) + random.between(1, 8) as i32;
    if random.chance(0.06) {
        actions.push(TimedAction { at_ms, action: Action::GrowLedger { partitions } });
    }
    (rare, actions)
}
