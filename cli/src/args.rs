//! The command line.

use crate::config;
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use verbatim_core::config::Until;

/// Copies topics from one Kafka cluster to another: every committed record exactly once, in order, byte for
/// byte, or it stops with a named reason.
#[derive(Debug, Parser)]
#[command(name = "verbatim", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// A configuration file, TOML or (.yaml, .yml) YAML; repeatable, later ones win
    #[arg(short, long, global = true, value_name = "FILE", env = "VERBATIM_CONFIG")]
    pub config: Vec<PathBuf>,
    /// Set one key, stronger than environment and files, e.g. --set delivery.lanes=16; repeatable
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<String>,
    /// The form of what is written to stdout
    #[arg(long, global = true, value_enum, default_value_t, env = "VERBATIM_OUTPUT")]
    pub output: Output,
    /// The form of log lines on stderr
    #[arg(long, global = true, value_enum, default_value_t, env = "VERBATIM_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Log more; twice for the Kafka clients' own account
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Log less: warnings only; twice for errors only
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    pub quiet: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Mirror until stopped, or until what exists now is copied
    Run(RunArgs),
    /// Check a configuration, and with --connect both clusters
    Check(CheckArgs),
    /// Show how far each partition is; no instance needs to run
    Status(TopicArgs),
    /// Compare what was copied with the source, record by record, and say what was not
    Verify(TopicArgs),
    /// Work on configuration files
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Stop, with exit code 0, when everything is copied that exists at start ("end") or is older than a
    /// time (RFC 3339)
    #[arg(long, value_name = "end|TIME", value_parser = until)]
    pub until: Option<Until>,
    /// How long a bounded run waits for source transactions that are open below its end
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "until", value_parser = wait_open)]
    pub wait_open: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Also ask both clusters, writing nothing
    ///
    /// It looks whether both can be reached and let this user in, what the topic rules match, whether partition 0 of
    /// each matched topic can be read, whether topics that exist on the target can hold the copies, whether the ledger,
    /// if there is one, is sound and this flow's own, and whether the target has brokers enough for the replication
    /// factors. It does not try to write or create: a missing WRITE, CREATE, group or transactional id ACL shows when
    /// `run` starts.
    #[arg(long)]
    pub connect: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TopicArgs {
    /// Only this source topic; repeatable
    #[arg(long, value_name = "TOPIC")]
    pub topic: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a commented file to start from to stdout
    Init,
}

/// Commands and flags of later versions: known, so that nobody looks for a typo.
pub(crate) const LATER_COMMANDS: [&str; 8] =
    ["plan", "explain", "demo", "mirror-maker", "completions", "man", "print", "schema"];
pub(crate) const LATER_FLAGS: [&str; 2] = ["--format", "--broker-info"];

fn until(text: &str) -> Result<Until, String> {
    match text {
        "end" => Ok(Until::End),
        time => config::parse_time(time).map(Until::Time).map_err(|_| {
            "neither \"end\" nor a time as RFC 3339 writes it, as in 2026-11-29T10:00:00Z".into()
        }),
    }
}

/// A year is for ever already; far more than that would not fit into a clock.
const WAIT_OPEN_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn wait_open(text: &str) -> Result<Duration, String> {
    let duration = config::parse_duration(text)?;
    if WAIT_OPEN_MAX < duration { Err("at most 365d".into()) } else { Ok(duration) }
}

fn key_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.into()),
        _ => Err("write it as KEY=VALUE, as in delivery.lanes=16".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_bounded_run_ends_at_the_end_or_at_a_time() {
        assert_eq!(until("end"), Ok(Until::End));
        assert!(matches!(until("2026-11-29T10:00:00Z"), Ok(Until::Time(_))));
        assert!(until("tomorrow").is_err());
    }

    #[test]
    fn an_absurd_patience_is_refused() {
        assert_eq!(wait_open("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(wait_open("365d"), Ok(WAIT_OPEN_MAX));
        assert!(wait_open("18446744073709551615s").is_err());
    }
}
