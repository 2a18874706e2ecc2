//! What a wrong command line is answered with.

use crate::args::{LATER_COMMANDS, LATER_FLAGS};
use crate::exit_code::Code;
use crate::output;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Prints what clap has to say, or that what was asked for comes in a later version.
pub(crate) fn explain(error: &clap::Error) -> Code {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return Code::Done;
        }
        ErrorKind::InvalidSubcommand => later(error, ContextKind::InvalidSubcommand, &LATER_COMMANDS),
        ErrorKind::UnknownArgument => later(error, ContextKind::InvalidArg, &LATER_FLAGS),
        _ => None,
    }
    .map_or_else(
        || {
            let _ = error.print();
        },
        |word| output::print_error(&format!("error: `{word}` is not in this version of verbatim\n")),
    );
    Code::Usage
}

fn later(error: &clap::Error, context: ContextKind, later: &[&str]) -> Option<String> {
    let ContextValue::String(word) = error.get(context)? else { return None };
    let bare = word.split('=').next().unwrap_or(word);
    later.contains(&bare).then(|| bare.to_string())
}
