use crate::storm::storm;
use runtime_sim::{Counters, TraceMode};

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `SIM_SEED` runs one seed, with its trace if `SIM_TRACE` is set; `SIM_NUM` that many.
#[test]
fn storms_lose_nothing_and_double_nothing() {
    let first = from_environment("SIM_SEED");
    let count = from_environment("SIM_NUM").unwrap_or(if first.is_some() { 1 } else { 40 });
    let first = first.unwrap_or(0);
    let trace = if std::env::var_os("SIM_TRACE").is_some() { TraceMode::Text } else { TraceMode::Hash };
    let mut counters = Counters::default();
    let (mut failed, mut virtual_millis) = (Vec::new(), 0);
    let began = std::time::Instant::now();
    for seed in first..first + count {
        match std::panic::catch_unwind(|| storm(seed, |setup| setup.trace = trace)) {
            Ok(record) => {
                record.lines.iter().for_each(|line| println!("{line}"));
                counters.add(&record.counters);
                virtual_millis += record.virtual_millis;
            }
            Err(_) => failed.push(seed),
        }
    }
    let wall = began.elapsed().as_secs_f64();
    println!("{:.1} seeds/s, {:.0} virtual s/s", count as f64 / wall, virtual_millis as f64 / 1000.0 / wall);
    println!("{counters:#?}");
    assert!(failed.is_empty(), "failed seeds: {failed:?}");
}
