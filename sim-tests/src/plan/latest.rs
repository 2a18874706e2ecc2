//! What plans have gained since seeds first showed bugs. All of it is drawn apart, so that an older seed without it
//! has the plan that it had.

use super::draw::Draw;
use super::{Action, Plan, Profile, TimedAction, actions};
use runtime_sim::{Random, Slot};
use std::collections::BTreeMap;

/// Longer than any transaction may stay open, and than any session.
pub const LONG_PAUSE_MS: i64 = 65_000;

pub fn extend(plan: &mut Plan) {
    plan.rare.runs_again = plan.flow.is_bounded;
    if plan.profile.is_quiet() {
        return;
    }
    let more = Profile::draw_latest(&mut Random::of(plan.seed, "latest classes"));
    let mut random = Random::of(plan.seed, "latest actions");
    let struck = actions::draw(&more, &plan.flow, &plan.topics, plan.active_ms, &mut random);
    plan.profile.rates.extend(more.rates);
    plan.actions.extend(struck);
    pause_longer(plan, &mut random);
    use_tools(plan, &mut random);
    plan.actions.sort_by_key(|action| action.at_ms);
}

/// A third of the pauses outlasts every time-out, into the time after the faults if it must.
fn pause_longer(plan: &mut Plan, random: &mut Random) {
    plan.actions.retain(|timed| !matches!(timed.action, Action::Resume { .. }));
    let mut until: BTreeMap<Slot, i64> = BTreeMap::new();
    let pauses: Vec<(i64, Slot)> = plan.actions.iter().filter_map(paused).collect();
    for (at, slot) in pauses {
        let milliseconds = match random.chance(0.34) {
            true => random.between(LONG_PAUSE_MS, 2 * LONG_PAUSE_MS),
            false => random.log_uniform(1_000.0, LONG_PAUSE_MS as f64) as i64,
        };
        // One that stands still already stands still for no longer.
        let end = until.entry(slot).or_default();
        if at < *end {
            continue;
        }
        *end = at + milliseconds;
        plan.actions.push(TimedAction { at_ms: *end, action: Action::Resume { slot } });
    }
}

fn paused(timed: &TimedAction) -> Option<(i64, Slot)> {
    match timed.action {
        Action::Pause { slot } => Some((timed.at_ms, slot)),
        _ => None,
    }
}

/// A broker refuses to delete a group that has members: a tool that finds some does other things to them.
fn use_tools(plan: &mut Plan, random: &mut Random) {
    let lanes = i64::from(plan.flow.lanes);
    for timed in &mut plan.actions {
        if timed.action == Action::DeleteGroup {
            timed.action = match random.chance(0.5) {
                true => Action::RemoveMember { member: random.between(0, 2) as u8 },
                false => Action::FenceLane { lane: random.between(0, lanes - 1) as u32 },
            };
        }
    }
}
