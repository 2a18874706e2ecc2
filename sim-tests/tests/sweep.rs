//! Seeds by the hundred and by the thousand. One is run again with `SIM_SEED=... --nocapture`, a saved plan with
//! `SIM_PLAN=...`.
#![cfg(madsim)]

use sim_tests::plan::{generate, generate_as_before, generate_as_later};
use sim_tests::sweep::{Replay, Settings, Summary, sweep, sweep_plans};
use std::path::Path;

/// Seeds that every run of the tests runs, unless others are asked for. They are the same each time as long as a few
/// of ten thousand fresh ones still fail (docs/known-issues.md): a change is to be judged by what it changes.
const SEEDS: u64 = 1_000;
const KNOWN_FROM: u64 = 1;

/// Seeds that showed a bug once, with the plans as they were generated then: docs/found-by-simulation.md tells of most.
const SHOWED_A_BUG_BEFORE: &[u64] = &[
    492,
    40_602,
    50_430,
    51_064,
    51_267,
    33_619_301_630,
    33_619_302_738,
    33_619_301_803,
    34_961_921_411,
    34_961_921_442,
    35_277_871_394,
    35_277_871_618,
    35_818_913_296,
    36_024_742_122,
    36_279_958_833,
    39_877_872_685,
    54_678_248_294,
    54_862_819_590,
    55_245_581_405,
    55_591_709_132,
    56_949_694_656,
    56_449_824_087,
];

/// The same, with what `plan/later.rs` adds, but not yet what `plan/latest.rs` does.
const SHOWED_A_BUG_LATER: &[u64] = &[
    57_637_351_341,
    57_746_300_688,
    61_498_259_750,
    61_498_263_435,
    61_498_266_929,
    61_498_267_474,
    61_498_268_780,
];

/// The same, since plans hold what `plan/latest.rs` adds.
const SHOWED_A_BUG: &[u64] = &[71_850_897_660, 71_850_899_683];

fn check(settings: &Settings, summary: &Summary) {
    let lines: Vec<&str> = summary.failures.iter().map(|failure| failure.line.as_str()).collect();
    assert!(lines.is_empty(), "{} of {} seeds failed; the first: {}", lines.len(), summary.seeds, lines[0]);
    if settings.is_whole {
        assert_eq!(summary.too_seldom(), Vec::<String>::new(), "the sweep attacked too little");
        assert_eq!(summary.never_seen(), Vec::<String>::new(), "the sweep attacked with less than it has");
    }
}

fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn every_promise_is_kept_under_every_fault() {
    let settings = Settings::from_environment(SEEDS).known_from(KNOWN_FROM);
    check(&settings, &sweep(&settings, directory()));
}

#[test]
fn what_showed_a_bug_shows_none_now() {
    if Settings::is_asked_for() {
        return;
    }
    let settings = Settings { is_whole: false, ..Settings::from_environment(SEEDS) };
    let before = SHOWED_A_BUG_BEFORE.iter().map(|seed| generate_as_before(*seed));
    let later = SHOWED_A_BUG_LATER.iter().map(|seed| generate_as_later(*seed));
    let plans = before.chain(later).chain(SHOWED_A_BUG.iter().map(|seed| generate(*seed)));
    let replay = Replay::Plan(directory().to_owned());
    check(&settings, &sweep_plans(&settings, plans, replay, directory()));
}

#[test]
#[ignore = "ten times as much as every run of the tests, or SIM_NUM"]
fn every_promise_is_kept_under_fresh_seeds() {
    let settings = Settings::from_environment(10 * SEEDS);
    check(&settings, &sweep(&settings, directory()));
}
