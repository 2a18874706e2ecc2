//! Every planted bug is noticed by a broken promise, within a budget of seeds.
#![cfg(madsim)]

use runtime_sim::TraceMode;
use sim_tests::mutants::{
    BUDGET, Expected, Planted, TABLE, by_number, document, hunt, hunt_in,
    with_dead_clients_requests_cancelled,
};
use sim_tests::plan::{generate_deaths, generate_with};
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
        let found = hunt(mutant, FIRST_SEED, BUDGET, jobs());
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

/// Bugs that only somebody's late requests show: whoever comes next takes over too early, or not at all.
const SHOWN_BY_THE_DEAD: &[u32] = &[4, 6, 48];

/// A simulator in which what a dead client has sent never arrives misses bugs that ours sees: late requests of the
/// dead are why these are caught.
#[test]
fn a_simulator_that_cancels_a_dead_clients_requests_misses_some() {
    let plans = || (FIRST_SEED..FIRST_SEED + BUDGET).map(generate_deaths);
    let sees = |planted: &Planted| hunt_in(planted, plans(), jobs()).caught.is_some();
    let mut missed = Vec::new();
    for mutant in SHOWN_BY_THE_DEAD.iter().filter_map(|number| by_number(*number)) {
        let planted = mutant.planted();
        if sees(&planted) && !sees(&with_dead_clients_requests_cancelled(&planted)) {
            missed.push(mutant.name);
        }
    }
    assert!(!missed.is_empty(), "all are still caught, so late requests of the dead attack nothing");
}

#[test]
#[ignore = "writes docs/mutants.md, in many minutes"]
fn writes_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mutants.md");
    std::fs::write(&path, document(jobs())).expect("the page can be written");
}

/// For whoever adds a mutant: what becomes of each, without judging it. `SIM_MUTANT`: only those with one of
/// these in their names; `SIM_NUM`: another budget; `SIM_SEED`: prints that run under the first of them.
#[test]
#[ignore = "a tool: tells what each mutant breaks, and after how many seeds"]
fn tells_what_each_mutant_breaks() {
    let wanted = std::env::var("SIM_MUTANT").unwrap_or_default();
    let is_wanted = |name: &str| wanted.split(',').any(|part| name.contains(part));
    let budget = std::env::var("SIM_NUM").ok().and_then(|it| it.parse().ok()).unwrap_or(BUDGET);
    let seed = std::env::var("SIM_SEED").ok().and_then(|it| it.parse().ok());
    for mutant in TABLE.iter().filter(|it| is_wanted(it.name)) {
        if let Some(seed) = seed {
            let shown = run(&generate_with(seed, mutant.on), &mutant.planted(), TraceMode::Text);
            shown.record.lines.iter().for_each(|line| println!("{line}"));
            return;
        }
        let found = hunt(mutant, FIRST_SEED, budget, jobs());
        let told = found.caught.map_or("survives".to_owned(), |it| {
            let again = run(&generate_with(it.seed, mutant.on), &mutant.planted(), TraceMode::Hash);
            let violation = again.first_violation().map(ToString::to_string).unwrap_or_default();
            format!("seed {}, number {}: {violation}", it.seed, it.after)
        });
        sim_tests::sweep::tell(&format!("{:>3} {:<32} {told}\n", mutant.number, mutant.name));
    }
}
