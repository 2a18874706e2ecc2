//! Every planted bug is noticed by a broken promise, within a budget of seeds.
#![cfg(madsim)]

use runtime_sim::TraceMode;
use sim_tests::mutants::{
    BUDGET, Expected, Planted, TABLE, by_number, document, hunt, with_dead_clients_requests_cancelled,
};
use sim_tests::plan::generate;
use sim_tests::run::run;
use std::path::Path;

const FIRST_SEED: u64 = 1_000_000;

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn every_mutant_is_caught_by_a_promise() {
    let mut survivors = Vec::new();
    for mutant in TABLE {
        let found = hunt(&mutant.planted(), FIRST_SEED, BUDGET, jobs());
        match (mutant.expected, found.caught) {
            (Expected::Caught, None) => survivors.push(format!("{} {}", mutant.number, mutant.name)),
            (Expected::Harmless(why), Some(caught)) => {
                survivors.push(format!("{} {} broke {caught:?}, though {why}", mutant.number, mutant.name));
            }
            (Expected::Caught, Some(_)) | (Expected::Harmless(_), None) | (Expected::Unseen(_), None) => {}
            (Expected::Unseen(_), Some(caught)) => {
                survivors.push(format!("{} {} is seen now: {caught:?}", mutant.number, mutant.name));
            }
        }
    }
    assert!(survivors.is_empty(), "survived {BUDGET} seeds: {survivors:?}");
}

/// A simulator in which what a dead client has sent never arrives sees less: that ours sees more is why these are
/// caught.
#[test]
#[ignore = "with these mutants it misses none, so it shows nothing yet: docs/known-issues.md"]
fn a_simulator_that_cancels_a_dead_clients_requests_misses_some() {
    let blind = |planted: &Planted| {
        hunt(&with_dead_clients_requests_cancelled(planted), FIRST_SEED, BUDGET, jobs()).caught.is_none()
    };
    let missed: Vec<&str> = [48, 56, 58]
        .into_iter()
        .filter_map(by_number)
        .filter(|mutant| blind(&mutant.planted()))
        .map(|mutant| mutant.name)
        .collect();
    assert!(!missed.is_empty(), "all are still caught, so late requests of the dead attack nothing");
}

#[test]
#[ignore = "writes docs/mutants.md, in many minutes"]
fn writes_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mutants.md");
    std::fs::write(&path, document(jobs())).expect("the page can be written");
}

/// For whoever adds a mutant: what becomes of each, without judging it. `SIM_MUTANT`: only those with one of
/// these in their names; `SIM_NUM`: another budget.
#[test]
#[ignore = "a tool: tells what each mutant breaks, and after how many seeds"]
fn tells_what_each_mutant_breaks() {
    let wanted = std::env::var("SIM_MUTANT").unwrap_or_default();
    let is_wanted = |name: &str| wanted.split(',').any(|part| name.contains(part));
    let budget = std::env::var("SIM_NUM").ok().and_then(|it| it.parse().ok()).unwrap_or(BUDGET);
    for mutant in TABLE.iter().filter(|it| is_wanted(it.name)) {
        let found = hunt(&mutant.planted(), FIRST_SEED, budget, jobs());
        let told = found.caught.map_or("survives".to_owned(), |it| {
            let again = run(&generate(it.seed), &mutant.planted(), TraceMode::Hash);
            let violation = again.first_violation().map(ToString::to_string).unwrap_or_default();
            format!("seed {}, number {}: {violation}", it.seed, it.after)
        });
        sim_tests::sweep::tell(&format!("{:>3} {:<32} {told}\n", mutant.number, mutant.name));
    }
}
