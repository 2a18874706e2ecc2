//! `verbatim`, the command: configuration, exit codes, and what a person sees.

mod args;
mod check;
mod clusters;
pub mod config;
mod exit_code;
mod failed;
#[cfg(test)]
mod fake;
mod ledger;
mod logging;
mod matching;
mod output;
mod parallel;
mod progress;
mod real;
mod run;
mod status;
mod table;
mod usage;
mod verify;

pub use exit_code::Code;

use args::{Args, CheckArgs, Command, Common, ConfigCommand, Output, TopicArgs};
use clap::Parser;
use config::Config;
use failed::Failed;
use matching::Matched;
use real::Real;
use std::process::ExitCode;
use verbatim_core::time::Timestamp;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage::explain(&error).into(),
    };
    logging::start(&args.common);
    let outcome = std::panic::catch_unwind(|| dispatch(&args))
        .unwrap_or_else(|_| Err(Failed::new(Code::Internal, "a bug in verbatim: see the panic above")));
    match outcome {
        Ok(code) => code.into(),
        Err(failed) => {
            failed.show();
            failed.code.into()
        }
    }
}

fn dispatch(args: &Args) -> Result<Code, Failed> {
    match &args.command {
        Command::Config(ConfigCommand::Init) => {
            output::print(config::STARTER);
            Ok(Code::Done)
        }
        Command::Run(run_args) => run::run(&load(&args.common)?, run_args, args.common.output),
        Command::Check(check_args) => check(&load(&args.common)?, check_args, args.common.output),
        Command::Status(topics) => status(&load(&args.common)?, topics, args.common.output),
        Command::Verify(topics) => verify(&load(&args.common)?, topics, args.common.output),
    }
}

fn status(config: &Config, topics: &TopicArgs, form: Output) -> Result<Code, Failed> {
    let rows = status::gather(&Real::connect(config)?, &config.flow, &topics.topic, now())?;
    if rows.is_empty() {
        warn(&Matched::default().warnings(&config.include));
    }
    match form {
        Output::Text => output::print(&status::text(&rows)),
        Output::Json => output::print_json(&rows),
    }
    Ok(Code::Done)
}

fn verify(config: &Config, topics: &TopicArgs, form: Output) -> Result<Code, Failed> {
    let clusters = Real::connect(config)?;
    let report = verify::verify(&clusters, &config.flow, &topics.topic, verify::Patience::default())?;
    if topics.topic.is_empty() {
        warn(&report.matched.warnings(&config.include));
    }
    match form {
        Output::Text => output::print(&verify::text(&report)),
        Output::Json => output::print_json(&report),
    }
    Ok(report.code())
}

fn check(config: &Config, args: &CheckArgs, form: Output) -> Result<Code, Failed> {
    let findings = if args.connect {
        check::connect(&Real::connect(config)?, &config.flow, &config.include)
    } else {
        check::Findings::of_configuration()
    };
    match form {
        Output::Text => output::print(&check::text(&findings)),
        Output::Json => output::print_json(&findings),
    }
    Ok(findings.code())
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

fn load(common: &Common) -> Result<Config, Failed> {
    let config = config::load(&common.config, &common.set);
    config.map_err(|errors| match common.config.is_empty() {
        true => Failed::from(errors).help("no file was given: use -c FILE"),
        false => Failed::from(errors),
    })
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}
