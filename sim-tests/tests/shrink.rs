//! Makes a failing plan small: `SIM_SEED=... cargo test -p sim-tests --test shrink -- --ignored --nocapture`, or with
//! `SIM_PLAN=...`. The result is a plan to be run with `SIM_PLAN`.
#![cfg(madsim)]

use runtime_sim::TraceMode;
use sim_tests::plan::{Plan, generate};
use sim_tests::run::{Planted, run};
use sim_tests::sweep::{Settings, shrink, tell};
use std::path::Path;

const RUNS_MAX: u32 = 400;

#[test]
#[ignore = "a tool: it needs a seed or a plan that fails"]
fn makes_a_failing_plan_small() {
    let settings = Settings::from_environment(1);
    let plan = match &settings.plan {
        Some(path) => Plan::from_json(&std::fs::read_to_string(path).expect("a plan")).expect("a plan"),
        None => generate(settings.base_seed),
    };
    let planted = Planted::default();
    let found = run(&plan, &planted, TraceMode::Hash);
    let violation = found.first_violation().expect("the plan fails");
    let small = shrink(&plan, &planted, violation.invariant, RUNS_MAX);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.small.json", plan.seed));
    std::fs::write(&path, small.to_json()).expect("the plan can be written");
    tell(&format!(
        "{} actions became {}, {} classes of faults {}\nSIM_PLAN={} cargo test -p sim-tests --test sweep -- \
         --nocapture\n",
        plan.actions.len(),
        small.actions.len(),
        plan.profile.rates.len(),
        small.profile.rates.len(),
        path.display(),
    ));
}
