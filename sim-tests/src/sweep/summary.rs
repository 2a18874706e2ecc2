//! What a sweep saw, and what it demands to have seen.

use super::attacks::{ERRORS, HALTS, strikes};
use super::pool::Ended;
use crate::oracle::HaltReason;
use crate::plan::FaultClass;
use crate::run::Run;
use kafka_types::ErrorCode;
use runtime_sim::{Counters, Record};
use std::collections::BTreeMap;
use std::fmt::{Debug, Display, Write};
use std::path::PathBuf;
use std::time::Duration;

/// One failed seed, told in one line.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    /// The invariant, or what else went wrong.
    pub kind: String,
    pub steps: u64,
    pub line: String,
}

/// How a failed run is run again.
#[derive(Clone, Debug, Default)]
pub enum Replay {
    #[default]
    Seed,
    /// From this plan, or from one of its seed in this directory.
    Plan(PathBuf),
}

#[derive(Debug, Default)]
pub struct Summary {
    replay: Replay,
    pub seeds: u64,
    pub live_ms: i64,
    pub settlements: u64,
    pub records: u64,
    /// Partitions that stood halted in the end, by their reasons.
    pub halted: BTreeMap<HaltReason, u64>,
    /// What was done to clusters and instances, by the names of the actions.
    pub actions: BTreeMap<String, u64>,
    pub slowest_heal_ms: i64,
    pub counters: Counters,
    pub failures: Vec<Failure>,
}

impl Summary {
    pub fn new(replay: Replay) -> Summary {
        Summary { replay, ..Summary::default() }
    }

    pub fn take(&mut self, ended: Ended) {
        self.seeds += 1;
        match ended {
            Ended::Ran(run) => self.take_run(&run),
            Ended::Diverged { first, second } => {
                let place = place(&first.profile, &first.record);
                let (steps, trace) = (second.record.steps, second.record.trace_hash);
                let text = format!("{place} ran twice and differed: then step={steps} trace={trace:016x}");
                self.fail(first.seed, "determinism", first.record.steps, text);
            }
            Ended::Panicked { seed, profile, message, record } => {
                let steps = record.as_ref().map_or(0, |record| record.steps);
                let place = record.map_or(format!("profile={profile}"), |record| place(&profile, &record));
                self.fail(seed, "panic", steps, format!("{place} panic: {message}"));
            }
        }
    }

    fn take_run(&mut self, run: &Run) {
        self.live_ms += run.findings.live_ms;
        self.settlements += run.findings.settlements;
        self.records += run.findings.records_settled;
        for reason in &run.findings.halted {
            *self.halted.entry(*reason).or_default() += 1;
        }
        for (action, count) in &run.findings.actions {
            *self.actions.entry(action.clone()).or_default() += count;
        }
        self.slowest_heal_ms = self.slowest_heal_ms.max(run.findings.healed_after_ms.unwrap_or(0));
        self.counters.add(&run.record.counters);
        if let Some(violation) = run.first_violation() {
            let text = format!(
                "profile={} step={} t={:.3}s trace={:016x} {violation}",
                run.profile,
                violation.step,
                violation.at as f64 / 1000.0,
                run.record.trace_hash,
            );
            self.fail(run.seed, violation.invariant.name(), violation.step, text);
        }
    }

    fn fail(&mut self, seed: u64, kind: &str, steps: u64, text: String) {
        let line = format!("sim FAILED  seed={seed} {text}  |  replay: {}", self.replay.command(seed));
        self.failures.push(Failure { seed, kind: kind.to_owned(), steps, line });
    }

    /// All of it, for people.
    pub fn text(&self, base_seed: u64, jobs: usize, wall: Duration) -> String {
        let seconds = wall.as_secs_f64().max(0.001);
        let live = self.live_ms as f64 / 1000.0;
        let mut text = String::new();
        let mut line = |written: String| text.push_str(&(written + "\n"));
        line(format!("simulation: {} seeds from SIM_SEED={base_seed} on {jobs} threads", self.seeds));
        line(format!(
            "  {seconds:.1} s: {:.1} seeds a second; {live:.0} live virtual seconds, {:.0} a wall second",
            self.seeds as f64 / seconds,
            live / seconds,
        ));
        let c = &self.counters;
        line(format!(
            "  injected: {} crashes ({} in the middle of something, {} of brokers besides), {} restarts, {} pauses; {}",
            c.crashes,
            c.crashes_at_moments,
            c.broker_crashes_at_moments,
            c.restarts,
            c.pauses,
            listed(&c.faults),
        ));
        line(format!(
            "  seen: {} rebalances, {} fencings, {} commits of unknown outcome ({} applied), {} partial sends, {} \
             aborts; {} commits of {} records, {} partitions halted; slowest to catch up: {:.1} s",
            c.rebalances,
            c.fencings,
            c.unknown_commits,
            c.unknown_commits_applied,
            c.partial_sends,
            c.aborts,
            self.settlements,
            self.records,
            self.halted.values().sum::<u64>(),
            self.slowest_heal_ms as f64 / 1000.0,
        ));
        line(format!("  strikes: {}", listed(FaultClass::ALL.iter().map(|it| (it, strikes(*it, self))))));
        line(format!("  halts: {}", listed(&self.halted)));
        line(format!("  errors answered: {}", listed(self.errors().iter().map(|it| (it.0.name(), it.1)))));
        self.write_failures(&mut text);
        text
    }

    /// Failures by what was broken, each with its shortest run.
    fn write_failures(&self, text: &mut String) {
        let mut groups: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
        for failure in &self.failures {
            groups.entry(&failure.kind).or_default().push(failure);
        }
        for (kind, failures) in groups {
            let seeds: Vec<String> =
                failures.iter().take(12).map(|failure| failure.seed.to_string()).collect();
            let _ = writeln!(text, "  {kind}: {} seeds: {}", failures.len(), seeds.join(" "));
            if let Some(shortest) = failures.iter().min_by_key(|failure| (failure.steps, failure.seed)) {
                let _ = writeln!(text, "    shortest: {}", shortest.line);
            }
        }
    }

    /// Errors that brokers of either cluster answered.
    fn errors(&self) -> BTreeMap<ErrorCode, u64> {
        let mut errors = BTreeMap::new();
        for ((_, code), count) in &self.counters.errors {
            *errors.entry(*code).or_default() += count;
        }
        errors
    }

    /// What a whole sweep must have seen at least once, and did not.
    pub fn never_seen(&self) -> Vec<String> {
        let errors = self.errors();
        let classes = FaultClass::ALL.iter().filter(|class| strikes(**class, self) == 0);
        let classes = classes.map(|class| format!("{class:?}"));
        let codes =
            ERRORS.iter().filter(|code| !errors.contains_key(code)).map(|code| code.name().to_owned());
        let halts = HALTS.iter().filter(|reason| !self.halted.contains_key(reason));
        classes.chain(codes).chain(halts.map(|reason| format!("{reason:?}"))).collect()
    }

    /// What a whole sweep must have seen more of.
    pub fn too_seldom(&self) -> Vec<String> {
        let c = &self.counters;
        [
            ("crashes", c.crashes, 1_000),
            ("rebalances", c.rebalances, 1_000),
            ("fencings", c.fencings, 200),
            ("commits of unknown outcome", c.unknown_commits, 200),
            ("partial sends", c.partial_sends, 200),
        ]
        .into_iter()
        .filter(|(_, seen, least)| seen < least)
        .map(|(what, seen, least)| format!("{seen} {what} where {least} are the least"))
        .collect()
    }
}

/// Where a run stood when it ended.
fn place(profile: &str, record: &Record) -> String {
    let Record { steps, virtual_millis, trace_hash, .. } = record;
    let seconds = *virtual_millis as f64 / 1000.0;
    format!("profile={profile} step={steps} t={seconds:.3}s trace={trace_hash:016x}")
}

impl Replay {
    fn command(&self, seed: u64) -> String {
        let what = match self {
            Replay::Seed => format!("SIM_SEED={seed}"),
            Replay::Plan(path) if path.is_dir() => {
                format!("SIM_PLAN={}", path.join(format!("{seed}.json")).display())
            }
            Replay::Plan(path) => format!("SIM_PLAN={}", path.display()),
        };
        format!("{what} cargo test -p sim-tests --test sweep -- --nocapture")
    }
}

fn listed<K: Debug, V: Display>(counts: impl IntoIterator<Item = (K, V)>) -> String {
    let counts: Vec<String> =
        counts.into_iter().map(|(what, count)| format!("{what:?} {count}").replace('"', "")).collect();
    counts.join(", ")
}
