use crate::oracle::Invariant;
use crate::plan::{Plan, TimedAction};
use crate::run::{Planted, run};
use runtime_sim::TraceMode;

/// A smaller plan that breaks the same promise: without the actions, faults and producers that it does not take.
///
/// Each run costs a fraction of a second; `runs` bounds how many are spent.
pub fn shrink(plan: &Plan, planted: &Planted, invariant: Invariant, runs: u32) -> Plan {
    let mut left = runs;
    let mut fails = |candidate: &Plan| {
        if left == 0 {
            return false;
        }
        left -= 1;
        let found = std::panic::catch_unwind(|| run(candidate, planted, TraceMode::Hash));
        found.is_ok_and(|run| run.first_violation().is_some_and(|it| it.invariant == invariant))
    };
    let mut plan = plan.clone();
    loop {
        let before = (plan.actions.len(), plan.profile.rates.len(), plan.producers.len());
        shrink_actions(&mut plan, &mut fails);
        for class in plan.profile.rates.keys().copied().collect::<Vec<_>>() {
            let mut candidate = plan.clone();
            candidate.profile.rates.remove(&class);
            if fails(&candidate) {
                plan = candidate;
            }
        }
        for place in (0..plan.producers.len()).rev() {
            let mut candidate = plan.clone();
            candidate.producers.remove(place);
            if fails(&candidate) {
                plan = candidate;
            }
        }
        if before == (plan.actions.len(), plan.profile.rates.len(), plan.producers.len()) {
            return plan;
        }
    }
}

/// Leaves out ever smaller stretches of actions, starts of instances among them.
fn shrink_actions(plan: &mut Plan, fails: &mut impl FnMut(&Plan) -> bool) {
    let mut length = plan.actions.len().div_ceil(2);
    while 0 < length {
        let mut from = 0;
        while from < plan.actions.len() {
            let without: Vec<TimedAction> = plan
                .actions
                .iter()
                .enumerate()
                .filter(|(place, _)| !(from..from + length).contains(place))
                .map(|(_, action)| action.clone())
                .collect();
            let candidate = Plan { actions: without, ..plan.clone() };
            if fails(&candidate) {
                *plan = candidate;
            } else {
                from += length;
            }
        }
        length = if length == 1 { 0 } else { length.div_ceil(2) };
    }
}
