//! What plans have gained since seeds first showed bugs. All of it is drawn apart, so that an older seed without it
//! has the plan that it had.

use super::draw::Draw;
use super::{Action, Cluster, FaultClass, Plan, Profile, TimedAction, actions};
use runtime_sim::{Moment, Random, Slot};

/// Whatever else the seed draws, these classes of faults are on.
pub fn extend(plan: &mut Plan, on: &[FaultClass]) {
    let is_slow = 0 < plan.rare.target_throttle_ms;
    if is_slow || (plan.profile.is_quiet() && on.is_empty()) {
        return;
    }
    let mut more = match plan.profile.is_quiet() {
        true => Profile::default(),
        false => Profile::draw_later(&mut Random::of(plan.seed, "later classes")),
    };
    more.turn_on(on, &plan.profile, &mut Random::of(plan.seed, "classes turned on"));
    let mut timing = Random::of(plan.seed, "later actions");
    let struck = actions::draw(&more, &plan.flow, &plan.topics, plan.active_ms, &mut timing);
    plan.profile.rates.extend(more.rates);
    plan.actions.extend(struck);
    extend_rarely(plan, on);
    plan.actions.sort_by_key(|action| action.at_ms);
}

/// As in [`super::rarities`].
fn extend_rarely(plan: &mut Plan, on: &[FaultClass]) {
    let mut random = Random::of(plan.seed, "later rarities");
    if random.chance(0.1) || on.contains(&FaultClass::CutOff) {
        let slot = Slot(random.between(0, i64::from(plan.flow.instances) - 1) as u32);
        let at_ms = random.between(plan.active_ms / 4, plan.active_ms / 2);
        let cluster = if random.chance(0.7) { Cluster::Source } else { Cluster::Target };
        // From then on nobody does anything to it: only the mirror itself can give its lanes to others.
        let is_of_it = |action: &Action| match action {
            Action::Start { slot: of }
            | Action::Crash { slot: of }
            | Action::CrashAt { slot: of, .. }
            | Action::Pause { slot: of }
            | Action::Stop { slot: of, .. } => *of == slot,
            _ => false,
        };
        plan.actions.retain(|timed| timed.at_ms < at_ms || !is_of_it(&timed.action));
        plan.actions.push(TimedAction { at_ms, action: Action::CutOffForGood { slot, cluster } });
    }
    if random.chance(0.25) || on.contains(&FaultClass::TargetTopics) {
        let (at_ms, partitions) =
            (random.between(5_000, plan.active_ms * 2 / 3), random.between(1, 4) as i32);
        let topic = random.one_of(&plan.topics).name.clone();
        let (cluster, topic) = match random.chance(0.5) {
            true => (Cluster::Source, topic),
            false => (Cluster::Target, format!("{}{topic}", plan.flow.target_prefix)),
        };
        // Before the mirror asks whether the topic is still the one that it was.
        let moment = Moment::ProduceSent;
        let action = Action::RecreateTopicAt { moment, cluster, topic, partitions };
        plan.actions.push(TimedAction { at_ms, action });
    }
    if on.contains(&FaultClass::AdminTool) {
        let at_ms = random.between(plan.active_ms / 3, plan.active_ms * 9 / 10);
        let partitions = i32::try_from(plan.flow.lanes).unwrap_or(1) + random.between(1, 8) as i32;
        plan.actions.push(TimedAction { at_ms, action: Action::GrowLedger { partitions } });
    }
    if random.chance(0.4) || on.contains(&FaultClass::TransactionTrouble) {
        let refused = random.log_uniform(1_000.0, 8_000.0) as u32;
        plan.rare.send_refused = plan.rare.send_refused.max(refused);
    }
    if !plan.rare.starts_at_end && random.chance(0.1) {
        plan.rare.starts_at_ms = Some(random.between(0, 30_000));
    }
}
