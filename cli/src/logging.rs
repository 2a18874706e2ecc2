//! Log lines on stderr: text or JSON, fields apart from messages.

use crate::args::{Common, LogFormat};
use tracing_subscriber::EnvFilter;

/// Starts logging as the flags ask. The Kafka clients speak up only about what breaks, unless asked.
pub(crate) fn start(common: &Common) {
    let levels = match (common.quiet, common.verbose) {
        (0, 0) => "info,rdkafka=error,librdkafka=error",
        (1, _) => "warn,rdkafka=error,librdkafka=error",
        (2.., _) => "error",
        (0, 1) => "debug,rdkafka=warn,librdkafka=warn",
        (0, 2..) => "debug",
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(levels))
        .with_writer(crate::progress::LogWriter::default);
    // A second start, as in tests, leaves the first in force.
    let _ = match common.log_format {
        LogFormat::Text => builder.with_ansi(crate::output::colours()).with_target(false).try_init(),
        // Without the module's name, which would stand beside fields of the same name: `target`.
        LogFormat::Json => builder.json().flatten_event(true).with_target(false).try_init(),
    };
}
