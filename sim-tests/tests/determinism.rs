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
/// Whether it goes through hash maps whose order no seed decides.
const CHILD_PLANTED: &str = "SIM_TRACED_PLANTED";
const IN_ALL: &str = "in all: ";

fn traced(seed: u64, planted: &Planted) -> Run {
    run(&generate(seed), planted, TraceMode::Text)
}

/// Not a test of its own: what the processes below run.
#[test]
fn child_prints_its_trace() {
    let Ok(seed) = std::env::var(CHILD) else { return };
    let planted = if std::env::var_os(CHILD_PLANTED).is_some() { unseeded() } else { Planted::default() };
    let record = traced(seed.parse().expect("a seed"), &planted).record;
    for line in record.lines {
        println!("{line}");
    }
    println!("{IN_ALL}{} events, trace={:016x}", record.steps, record.trace_hash);
}

/// What a process of its own says of a run: its events, and the hash of all that they hold, which the lines of
/// text only begin to show.
struct Told {
    lines: Vec<String>,
    in_all: String,
}

fn told_by_a_process(seed: u64, plants: bool) -> Told {
    let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
    command.args(["--exact", "child_prints_its_trace", "--nocapture"]).env(CHILD, seed.to_string());
    if plants {
        command.env(CHILD_PLANTED, "1");
    }
    let output = command.output().expect("the test runs itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("traces are text");
    let in_all = text.lines().find_map(|line| line.strip_prefix(IN_ALL)).expect("it says how it ended");
    // What the test harness says of itself holds a wall time.
    let lines = text.lines().filter(|line| line.contains("s ") && line.starts_with(' ')).map(str::to_owned);
    Told { lines: lines.collect(), in_all: in_all.to_owned() }
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
        let (first, second) = (told_by_a_process(seed, false), told_by_a_process(seed, false));
        assert!(1_000 < first.lines.len(), "a trace of {} lines holds no run", first.lines.len());
        for (number, (one, other)) in first.lines.iter().zip(&second.lines).enumerate() {
            assert_eq!(one, other, "seed {seed}: the traces part at line {number}");
        }
        assert_eq!(first.lines.len(), second.lines.len(), "seed {seed}");
        assert_eq!(first.in_all, second.in_all, "seed {seed}: they differ in what the lines do not show");
    }
}

/// Seeds keep their meaning until somebody means to change it: then these are written anew.
#[test]
fn golden_seeds_have_their_hashes() {
    const GOLDEN: [(u64, u64); 3] =
        [(1, 0xe9fc_1d9f_05e5_4db9), (2, 0xefb3_2380_7f6d_86b4), (3, 0x62f4_c3bc_ca40_f801)];
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
    let differs = |seed| told_by_a_process(seed, true).in_all != told_by_a_process(seed, true).in_all;
    assert!((20..25).any(differs), "two processes went through unseeded hash maps and told the same");
}
