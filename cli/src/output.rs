//! Data on stdout, everything else on stderr.

use std::io::{IsTerminal, Write};

/// Whether what goes to stderr may be coloured (https://no-color.org).
pub(crate) fn colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes to stdout. A reader that has gone away, like `head`, has seen what it wanted.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes to stderr, where nobody may listen.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a value to stdout as JSON, indented for people, ended by a newline.
pub(crate) fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("reports have text keys and finite numbers only");
    print(&format!("{text}\n"));
}
