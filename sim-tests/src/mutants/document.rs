//! `docs/mutants.md`, written from hunts.

use super::hunt::{BUDGET, Hunt, hunt};
use super::table::{Expected, Mutant, TABLE};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Hunts of one mutant, each from another seed.
const HUNTS: u64 = 5;

/// The text of the page. Takes a while.
pub fn document(jobs: usize) -> String {
    let mut text = String::from(
        "# Mutants\n\n\
         Bugs that are planted on purpose, one at a time, and what notices them. A mutant counts as caught only by \
         a broken promise in a run like any other; the oracle cannot name it. Written by \
         `cargo test -p sim-tests --test mutants -- --ignored writes_the_page`, never by hand.\n\n",
    );
    let _ = writeln!(
        text,
        "Seeds: how many runs it took until a promise was broken, median and worst of {HUNTS} hunts; the budget \
         of the default test is {BUDGET}. The classes of faults that a mutant has to do with are on in each of its seeds.\n"
    );
    text.push_str("| no. | mutant | what it does | caught by | median | worst |\n|--|--|--|--|--|--|\n");
    for mutant in TABLE {
        text.push_str(&row(mutant, jobs));
    }
    text.push_str(
        "\nOf the simulator's own mutants (51 to 55): with 55, a death that cancels what is under way, others can no \
         longer be caught, and a test demands so; 54, an order that no seed decides, makes the test of determinism \
         fail. The rest is not planted. 51, an oracle that ignores a partition: the oracle has tests of its own, \
         with copiers that are wrong in one partition only. 52, crashes that spare transactions: it was planted, and \
         in plans of nothing but deaths 4, 6 and 48 were caught all the same, by what the dead had under way; that \
         enough crashes land within transactions is counted instead. 53, a scheduler that is first in, first out: \
         madsim picks among the tasks that are ready, and has no switch for it.\n",
    );
    text
}

fn row(mutant: &Mutant, jobs: usize) -> String {
    let Mutant { number, name, what, .. } = mutant;
    if let Expected::Harmless(why) = mutant.expected {
        return format!("| {number} | `{name}` | {what} | nothing is broken: {why} | | |\n");
    }
    if let Expected::Unseen(why) = mutant.expected {
        return format!("| {number} | `{name}` | {what} | not seen yet: {why} | | |\n");
    }
    let hunts: Vec<Hunt> = (0..HUNTS).map(|turn| hunt(mutant, first_seed(turn), BUDGET, jobs)).collect();
    let by: BTreeSet<&str> = hunts.iter().filter_map(|it| Some(it.caught?.invariant.name())).collect();
    let by = by.into_iter().collect::<Vec<_>>().join(", ");
    let mut seeds: Vec<u64> = hunts.iter().map(|it| it.caught.map_or(u64::MAX, |it| it.after)).collect();
    seeds.sort_unstable();
    let said = |seeds: u64| if seeds == u64::MAX { "not caught".to_owned() } else { seeds.to_string() };
    let (median, worst) = (said(seeds[seeds.len() / 2]), said(seeds[seeds.len() - 1]));
    format!("| {number} | `{name}` | {what} | {by} | {median} | {worst} |\n")
}

/// Far apart, so that no two hunts share a seed.
fn first_seed(turn: u64) -> u64 {
    1_000_000 * (turn + 1)
}
