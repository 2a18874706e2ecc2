//! Seeds by the hundred and by the thousand. One is run again with `SIM_SEED=... --nocapture`, a saved plan with
//! `SIM_PLAN=...`.
#![cfg(madsim)]

use sim_tests::sweep::{Settings, sweep};
use std::path::Path;

/// The seeds that every change runs, unless others are asked for.
const FIRST_SEED: u64 = 1;
const SEEDS: u64 = 200;

/// Seeds that showed a bug once, with the plans as they were generated then: docs/found-by-simulation.md tells of most.
const SHOWED_A_BUG: &[u64] = &[
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
];

fn check(settings: &Settings) {
    let summary = sweep(settings, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let lines: Vec<&str> = summary.failures.iter().map(|failure| failure.line.as_str()).collect();
    assert!(lines.is_empty(), "{} of {} seeds failed; the first: {}", lines.len(), summary.seeds, lines[0]);
    if settings.is_whole {
        assert_eq!(summary.too_seldom(), Vec::<String>::new(), "the sweep attacked too little");
    }
}

#[test]
fn every_promise_is_kept_under_every_fault() {
    let asked_for = ["SIM_SEED", "SIM_NUM", "SIM_PLAN"].iter().any(|name| std::env::var_os(name).is_some());
    let mut settings = Settings::from_environment(1_000);
    if !asked_for {
        settings = Settings { base_seed: FIRST_SEED, seeds: SEEDS, is_whole: false, ..settings };
    }
    check(&settings);
}

#[test]
fn what_showed_a_bug_shows_none_now() {
    for &seed in SHOWED_A_BUG {
        check(&Settings { base_seed: seed, seeds: 1, is_whole: false, ..Settings::from_environment(1_000) });
    }
}

#[test]
#[ignore = "takes minutes, and is another each time: SIM_NUM says how many seeds"]
fn every_promise_is_kept_under_fresh_seeds() {
    check(&Settings::from_environment(1_000));
}
