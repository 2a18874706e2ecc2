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
mod output;
mod progress;
mod status;
mod table;
mod usage;
mod verify;

pub use exit_code::Code;

use args::{Args, Command, ConfigCommand};
use clap::Parser;
use failed::Failed;
use std::process::ExitCode;

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
        _ => Err(Failed::new(Code::Internal, "to do")),
    }
}
