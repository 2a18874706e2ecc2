//! What few flows meet and what stops them, or a part of them, until somebody acts. Drawn apart from all else, so that
//! a seed without it has the plan that it had.

use super::draw::Draw;
use super::{FaultClass, OddCopy, Plan, Profile, actions};
use runtime_sim::Random;

pub fn extend(plan: &mut Plan, on: &[FaultClass]) {
    let is_slow = 0 < plan.rare.target_throttle_ms;
    if is_slow || plan.profile.is_quiet() || !on.is_empty() {
        return;
    }
    let mut random = Random::of(plan.seed, "rare faults");
    let more = Profile::draw_rare(&mut random);
    let struck = actions::draw(&more, &plan.flow, &plan.topics, plan.active_ms, &mut random);
    plan.profile.rates.extend(more.rates);
    plan.actions.extend(struck);
    plan.actions.sort_by_key(|action| action.at_ms);
    for topic in &plan.topics {
        let odd = *random.one_of(OddCopy::ALL);
        if random.chance(0.04) && !plan.rare.target_bytes_max.contains_key(&topic.name) {
            plan.rare.odd_copies.insert(topic.name.clone(), odd);
        }
    }
    if random.chance(0.05) {
        plan.rare.zero_timestamps = random.between(1, 5) as u32;
    }
    if random.chance(0.3) {
        plan.rare.source_clock_ms = random.between(-1_800_000, 1_800_000);
        plan.rare.target_clock_ms = random.between(-1_800_000, 1_800_000);
    }
}
