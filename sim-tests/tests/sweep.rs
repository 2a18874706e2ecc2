//! Fresh seeds by the thousand. One is run again with `SIM_SEED=... --nocapture`, a saved plan with `SIM_PLAN=...`.
#![cfg(madsim)]

use sim_tests::sweep::{Settings, sweep};
use std::path::Path;

#[test]
fn every_promise_is_kept_under_every_fault() {
    let settings = Settings::from_environment(1_000);
    let summary = sweep(&settings, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let lines: Vec<&str> = summary.failures.iter().map(|failure| failure.line.as_str()).collect();
    assert!(lines.is_empty(), "{} of {} seeds failed; the first: {}", lines.len(), summary.seeds, lines[0]);
    if settings.is_whole {
        assert_eq!(summary.too_seldom(), Vec::<String>::new(), "the sweep attacked too little");
    }
}
