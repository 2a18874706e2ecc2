//! `verbatim run`: one instance of the flow, until it is stopped or has come to its end.

mod outcome;
mod signals;
mod watched;

use crate::args::{Output, RunArgs};
use crate::config::Config;
use crate::exit_code::Code;
use crate::failed::Failed;
use crate::output;
use crate::progress::Progress;
use crate::real::settings;
use outcome::Outcome;
use runtime_real::RealWorld;
use signals::Signals;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::time::Duration;
use tokio::sync::watch;
use verbatim_core::command::Report;
use verbatim_core::config::Flow;
use verbatim_core::exit::Exit;
use verbatim_core::failure::Side;
use verbatim_core::{Mirror, drive};
use watched::Watched;

/// How long clients may take to close once the mirror has ended: all that matters is settled by then.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// How often the log says how far the flow is.
const REPORT_EVERY: Duration = Duration::from_secs(15);

pub(crate) fn run(config: &Config, args: &RunArgs, form: Output) -> Result<Code, Failed> {
    let flow = Flow {
        incarnation: incarnation(config.instance.as_deref()),
        until: args.until,
        wait_open: args.wait_open,
        ..config.flow.clone()
    };
    let name = flow.name.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::new(Code::Internal, format!("no event loop: {error}")))?;
    let (exit, report, topics) = runtime.block_on(mirror(config, flow))?;
    let outcome = Outcome::new(&name, exit, &report, topics, |side| servers(config, side));
    if form == Output::Json {
        output::print_json(&outcome);
    }
    if outcome.code == Code::Done {
        tracing::info!(
            flow = name,
            records_settled = outcome.records_settled,
            bytes_settled = outcome.bytes_settled,
            topics = outcome.topics,
            "{}",
            outcome.message
        );
        return Ok(Code::Done);
    }
    let failed = Failed::new(outcome.code, outcome.text());
    Err(match outcome.help() {
        Some(help) => failed.help(help),
        None => failed,
    })
}

/// How the mirror ended, what it did, and how many topics its rules matched if it came to know.
async fn mirror(config: &Config, flow: Flow) -> Result<(Exit, Report, Option<usize>), Failed> {
    let bounded = flow.until.is_some();
    // Before anything is said or done: a signal that comes early must not kill.
    let signals = Signals::catch();
    announce(config, &flow);
    let world = RealWorld::start(settings(config))
        .map_err(|error| Failed::new(Code::Configuration, error.to_string()))?;
    let signals = signals.map(|signals| tokio::spawn(signals.heed(world.stopper())));
    let watcher = tokio::spawn(watch_reports(world.reports(), bounded));
    let reports = world.reports();
    let mut mirror = Mirror::new(world.now(), flow.clone());
    let mut world = Watched::new(world, flow);
    let exit = drive(&mut mirror, &mut world).await;
    let topics = world.matched().map(|matched| matched.topics);
    let report = reports.borrow().clone();
    watcher.abort();
    if let Some(signals) = signals {
        signals.abort();
    }
    // Waits until the bar is gone, so that the last lines stand by themselves.
    let _ = watcher.await;
    world.into_inner().shut_down(CLOSE_MAX);
    Ok((exit, report, topics))
}

fn announce(config: &Config, flow: &Flow) {
    tracing::info!(
        flow = %flow.name,
        incarnation = flow.incarnation,
        source_servers = servers(config, Side::Source),
        target_servers = servers(config, Side::Target),
        lanes = flow.lanes,
        include = ?config.include,
        rename = flow.rename.fingerprint(),
        start = ?flow.start,
        until = flow.until.map(|until| format!("{until:?}")),
        version = env!("CARGO_PKG_VERSION"),
        "mirroring"
    );
}

fn servers(config: &Config, side: Side) -> String {
    let properties = match side {
        Side::Source => &config.source,
        Side::Target => &config.target,
    };
    properties.get("bootstrap.servers").cloned().unwrap_or_default()
}

/// Names this process in claims: by what an operator knows it by, and unlike any other process.
fn incarnation(instance: Option<&str>) -> String {
    let host = || gethostname::gethostname().to_string_lossy().into_owned();
    let name = instance.map_or_else(host, str::to_string);
    // The standard library seeds its hashers from the system's randomness.
    let random = RandomState::new().hash_one(std::process::id());
    format!("{name}-{random:016x}")
}

/// Shows reports: as a bar for a bounded run on a terminal, as a log line now and then otherwise.
async fn watch_reports(mut reports: watch::Receiver<Report>, bounded: bool) {
    if bounded && std::io::stderr().is_terminal() {
        let progress = Progress::start();
        while reports.changed().await.is_ok() {
            let report = reports.borrow_and_update().clone();
            progress.show(&report);
        }
        return;
    }
    loop {
        tokio::time::sleep(REPORT_EVERY).await;
        if !reports.has_changed().unwrap_or(false) {
            continue;
        }
        let report = reports.borrow_and_update().clone();
        tracing::info!(
            lanes = report.lanes_owned,
            records_settled = report.records_settled,
            bytes_settled = report.bytes_settled,
            done = report.done,
            total = report.total,
            halted = report.halted,
            "progress"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_processes_share_a_name() {
        assert_ne!(incarnation(Some("a")), incarnation(Some("a")));
        assert!(incarnation(Some("a")).starts_with("a-"));
        assert!(17 < incarnation(None).len());
    }
}
