//! The same seed is the same run: in one process, in two, and from one day to the next.
//!
//! Nothing that a seed shows is worth anything before this holds.
#![cfg(madsim)]

use runtime_sim::{ClientMutants, TraceMode};
use sim_tests::plan::generate;
use sim_tests::run::{Planted, Run, run};
use std::process::Command;

/// Which seed a child process is to run, and print.
const CHILD: &str = "SIM_TRACED_SEED";

fn traced(seed: u64, planted: &Planted) -> Run {
    run(&generate(seed), planted, TraceMode::Text)
}

/// Not a test of its own: what the processes below run.
#[test]
fn child_prints_its_trace() {
    let Ok(seed) = std::env::var(CHILD) else { return };
    let plants = std::env::var("SIM_TRACED_PLANTED").is_ok();
    let planted = if plants { unseeded() } else { Planted::default() };
    for line in traced(seed.parse().expect("a seed"), &planted).record.lines {
        println!("{line}");
    }
}

fn trace_of_a_process(seed: u64, plants: bool) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
    command.args(["--exact", "child_prints_its_trace", "--nocapture"]).env(CHILD, seed.to_string());
    if plants {
        command.env("SIM_TRACED_PLANTED", "1");
    }
    let output = command.output().expect("the test runs itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("traces are text");
    // What the test harness says of itself holds a wall time.
    text.lines().filter(|line| line.contains("s ") && line.starts_with(' ')).collect::<Vec<_>>().join("\n")
}

fn unseeded() -> Planted {
    Planted {
        client: ClientMutants { unseeded_order: true, ..ClientMutants::default() },
        ..Planted::default()
    }
}

#[test]
fn two_processes_write_the_same_trace() {
    for seed in [11, 12] {
        let (first, second) = (trace_of_a_process(seed, false), trace_of_a_process(seed, false));
        assert!(1_000 < first.lines().count(), "a trace of {} lines holds no run", first.lines().count());
        for (number, (one, other)) in first.lines().zip(second.lines()).enumerate() {
            assert_eq!(one, other, "seed {seed}: the traces part at line {number}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// Seeds keep their meaning until somebody means to change it: then these are written anew.
#[test]
fn golden_seeds_have_their_hashes() {
    const GOLDEN: [(u64, u64); 3] =
        [(1, 0xa947_9dcb_60d8_0a2d), (2, 0xbb62_b013_49c6_08ba), (3, 0x7c35_2b0e_d0f6_8240)];
    let hash = |seed| run(&generate(seed), &Planted::default(), TraceMode::Hash).record.trace_hash;
    let found: Vec<(u64, u64)> = GOLDEN.iter().map(|(seed, _)| (*seed, hash(*seed))).collect();
    assert_eq!(
        found, GOLDEN,
        "a seed means another run than it did; if that is wanted, write these hashes down"
    );
}

#[test]
fn an_order_that_no_seed_decides_is_noticed() {
    let differs = |seed| {
        let hash = || run(&generate(seed), &unseeded(), TraceMode::Hash).record.trace_hash;
        let first = hash();
        (0..5).any(|_| hash() != first)
    };
    assert!(
        (20..25).any(differs),
        "a hash map of unseeded order was planted, and every run came out the same"
    );
}
