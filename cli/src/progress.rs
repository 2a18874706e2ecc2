//! What a bounded run shows on a terminal: a bar with log lines scrolling above it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;
use verbatim_core::command::Report;

/// The one bar of this process; log lines step around it.
static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Draws reports as they come.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn start() -> Progress {
        let bar =
            BAR.get_or_init(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())).clone();
        bar.set_style(style("{spinner} {pos} offsets, waiting for the end to be known"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    pub(crate) fn show(&self, report: &Report) {
        if let Some(total) = report.total
            && self.bar.length() != Some(total)
        {
            self.bar.set_length(total);
            self.bar.set_style(style(
                "{bar:40} {percent}%  {human_pos}/{human_len} offsets  {rate}  {eta} left  {msg}",
            ));
        }
        self.bar.set_position(report.done);
        if report.halted != 0 {
            self.bar.set_message(crate::table::count(report.halted, "halted partition"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the templates above are well formed")
        .with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{:.0}/s", state.per_sec());
        })
        .progress_chars("=> ")
}

/// Writes log lines to stderr, above the bar where there is one.
#[derive(Debug, Default)]
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match BAR.get() {
            Some(bar) if !bar.is_finished() => bar.suspend(|| io::stderr().write(line)),
            _ => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
