use super::draw::Draw;
use super::{
    Action, FaultClass, FlowPlan, Plan, ProducerPlan, Profile, TopicPlan, actions, later, latest,
    rare_faults, rarities, slow_target,
};
use runtime_sim::Random;

/// The least that a run takes with faults and workload.
const ACTIVE_MS: i64 = 60_000;
const HEAL_MS: i64 = 180_000;

/// The plan of a seed, the same for ever as long as nothing here changes.
pub fn generate(seed: u64) -> Plan {
    generate_with(seed, &[])
}

/// The same with some classes of faults on, whatever the seed draws. Every other seed has no faults beside: what takes
/// half a minute to go wrong needs instances that live as long.
pub fn generate_with(seed: u64, on: &[FaultClass]) -> Plan {
    let mut plan = generate_as_before(seed);
    if !on.is_empty() && seed % 2 == 1 {
        plan.profile = Profile::default();
        plan.actions.retain(|timed| {
            matches!(timed.action, Action::Start { .. }) && timed.at_ms <= actions::STARTED_MS
        });
    } else {
        latest::extend(&mut plan);
    }
    later::extend(&mut plan, on);
    rare_faults::extend(&mut plan, on);
    plan
}

/// The plan that the seed had before there was anything in [`latest`].
pub fn generate_as_later(seed: u64) -> Plan {
    let mut plan = generate_as_before(seed);
    later::extend(&mut plan, &[]);
    plan
}

/// The plan that the seed had before there was anything in [`later`] and [`latest`].
pub fn generate_as_before(seed: u64) -> Plan {
    let mut random = Random::of(seed, "plan");
    let profile = Profile::draw(&mut random);
    let flow = FlowPlan::draw(&mut random);
    let topics: Vec<TopicPlan> = (0..random.between(1, 4)).map(|n| topic(n, &mut random)).collect();
    let producers = (0..random.between(1, 4)).map(|_| ProducerPlan::draw(&mut random)).collect();
    let active_ms = ACTIVE_MS + random.between(0, 10_000);
    let mut timing = Random::of(seed, "actions");
    let mut actions = actions::starts(&flow, &mut timing);
    actions.extend(actions::draw(&profile, &flow, &topics, active_ms, &mut timing));
    actions.sort_by_key(|action| action.at_ms);
    let (rare, more) = rarities::draw(seed, &flow, &topics, active_ms);
    actions.extend(more);
    actions.sort_by_key(|action| action.at_ms);
    let mut plan =
        Plan { seed, profile, flow, topics, producers, rare, actions, active_ms, heal_ms: HEAL_MS };
    slow_target::slow_down(&mut plan);
    plan
}

fn topic(number: i64, random: &mut Random) -> TopicPlan {
    const NAMES: [&str; 4] = ["orders", "payments", "clicks", "stock"];
    let name = NAMES[usize::try_from(number).unwrap_or(0) % NAMES.len()].to_owned();
    TopicPlan {
        name,
        partitions: i32::try_from(random.between(1, 4)).unwrap_or(1),
        is_compacted: random.chance(0.15),
    }
}
