//! Many seeds at once: fresh ones unless one is asked for by name.

mod attacks;
mod pool;
mod settings;
mod shrink;
mod summary;

pub use pool::{Ended, Pool};
pub use settings::Settings;
pub use shrink::shrink;
pub use summary::{Failure, Replay, Summary};

use crate::plan::{Plan, generate};
use crate::run::{Planted, Run};
use runtime_sim::TraceMode;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// One seed in so many runs twice.
const TWICE_EVERY: u64 = 20;

/// Runs what the settings ask for and tells it on the standard error stream. Plans that failed are left in
/// `keep_in`, and `failures.txt` with a line for each.
pub fn sweep(settings: &Settings, keep_in: &Path) -> Summary {
    if let Some(path) = &settings.plan {
        return sweep_plans(settings, [read_plan(path)].into_iter(), Replay::Plan(path.clone()), keep_in);
    }
    let seeds = settings.base_seed..settings.base_seed.saturating_add(settings.seeds);
    sweep_plans(settings, seeds.map(generate), Replay::Seed, keep_in)
}

/// Runs plans of whatever origin.
pub fn sweep_plans(
    settings: &Settings,
    plans: impl Iterator<Item = Plan> + Send,
    replay: Replay,
    keep_in: &Path,
) -> Summary {
    let mut summary = Summary::new(replay);
    let began = Instant::now();
    let trace = if settings.shows_run { TraceMode::Text } else { TraceMode::Hash };
    let pool = Pool {
        jobs: settings.jobs,
        time_limit: settings.time_limit,
        twice_every: (1 < settings.seeds).then_some(TWICE_EVERY),
        trace,
    };
    pool.run(plans, &Planted::default(), |plan, ended| {
        let before = summary.failures.len();
        summary.take(show(ended, settings.shows_run));
        if before < summary.failures.len() {
            keep(plan, keep_in);
        }
        true
    });
    if !summary.failures.is_empty() {
        let lines: String = summary.failures.iter().map(|failure| format!("{}\n", failure.line)).collect();
        write(&keep_in.join("failures.txt"), &lines);
    }
    tell(&summary.text(settings.base_seed, settings.jobs, began.elapsed()));
    summary
}

/// Prints a run one event a line.
fn show(ended: Ended, is_asked_for: bool) -> Ended {
    if is_asked_for && let Ended::Ran(run) = &ended {
        let mut out = std::io::stdout().lock();
        let Run { record, .. } = &**run;
        for line in &record.lines {
            // Nobody listens any more.
            if writeln!(out, "{line}").is_err() {
                break;
            }
        }
    }
    ended
}

/// Past the test harness, which holds back what tests print until they fail.
pub fn tell(text: &str) {
    let mut stream = std::io::stderr().lock();
    // A closed stream has no reader to miss this.
    let _ = stream.write_all(text.as_bytes());
}

fn read_plan(path: &Path) -> Plan {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Plan::from_json(&text).unwrap_or_else(|error| panic!("{} is not a plan: {error}", path.display()))
}

fn keep(plan: &Plan, directory: &Path) {
    write(&directory.join(format!("{}.json", plan.seed)), &plan.to_json());
}

fn write(path: &Path, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        tell(&format!("{} could not be written: {error}\n", path.display()));
    }
}
