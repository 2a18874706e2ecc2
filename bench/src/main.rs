//! The race: this mirror, MirrorMaker 1 and MirrorMaker 2 copy the same topic between the same two brokers, one
//! after the other, round by round.
//!
//! Only ratios within one run mean anything; nothing here asserts a time.
#![deny(unsafe_code)]

mod arguments;
mod figures;
mod java;
mod peers;
mod process;
mod race;
mod report;
mod watch;

use std::process::ExitCode;

use arguments::{Arguments, USAGE};

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error:#}\n\n{USAGE}");
            return ExitCode::from(64);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runs = race::race(arguments)?;
    std::fs::write(&arguments.json, report::json(arguments, &runs)?)?;
    eprintln!("the raw figures are in {}", arguments.json.display());
    print!("{}", report::tables(arguments, &runs));
    Ok(())
}
