use crate::storm::storm;
use runtime_sim::{Setup, TraceMode};
use std::process::Command;

const CHILD: &str = "RUNTIME_SIM_DETERMINISM_CHILD";

fn with_text(setup: &mut Setup) {
    setup.trace = TraceMode::Text;
}

#[test]
fn the_same_seed_twice_gives_the_same_trace() {
    for seed in [3, 4] {
        let (first, again) = (storm(seed, with_text), storm(seed, with_text));
        for (line, (first, again)) in first.lines.iter().zip(&again.lines).enumerate() {
            assert_eq!(first, again, "line {line} of seed {seed}");
        }
        assert_eq!(first, again, "seed {seed}");
    }
    assert_ne!(storm(3, |_| {}).trace_hash, storm(4, |_| {}).trace_hash);
}

/// What is static in a process, such as where it was loaded, must not matter either.
#[test]
fn the_same_seed_in_two_processes_gives_the_same_trace() {
    let hash = storm(5, |_| {}).trace_hash.to_string();
    if std::env::var_os(CHILD).is_some() {
        println!("hash={hash}");
        return;
    }
    let name = "determinism::the_same_seed_in_two_processes_gives_the_same_trace";
    let child = Command::new(std::env::current_exe().expect("a test has a binary"))
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("it runs");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains(&format!("hash={hash}")), "{hash} against {output}");
}

/// The text costs time, and must change nothing.
#[test]
fn text_changes_nothing() {
    assert_eq!(storm(6, with_text).trace_hash, storm(6, |_| {}).trace_hash);
}

/// The check itself is checked: an order that no seed decides is noticed within a few seeds.
#[test]
fn an_order_that_no_seed_decides_is_noticed() {
    let differs = |seed| {
        let run = || storm(seed, |setup| setup.client_mutants.unseeded_order = true).trace_hash;
        run() != run()
    };
    assert!((0..5).any(differs));
}
