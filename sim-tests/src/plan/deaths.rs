use super::{FaultClass, Plan, Profile, Rarities, actions, generate};
use runtime_sim::Random;
use std::collections::BTreeMap;

/// A plan in which instances die, often in the middle of something, and nothing else goes wrong. Whatever arrives
/// late was sent by somebody who is dead by then.
pub fn generate_deaths(seed: u64) -> Plan {
    let mut plan = generate(seed);
    let rates = [(FaultClass::Crash, 3.0), (FaultClass::CrashAtMoment, 8.0), (FaultClass::LateRequests, 1.0)];
    plan.profile = Profile { rates: BTreeMap::from(rates) };
    plan.rare = Rarities::default();
    plan.flow.is_bounded = false;
    let mut timing = Random::of(seed, "deaths");
    plan.actions = actions::starts(&plan.flow, &mut timing);
    plan.actions.extend(actions::draw(&plan.profile, &plan.flow, &plan.topics, plan.active_ms, &mut timing));
    plan.actions.sort_by_key(|action| action.at_ms);
    plan
}
