//! The process's two clocks, in the core's types.

use std::time::{SystemTime, UNIX_EPOCH};
use verbatim_core::time::{Instant, Now, Timestamp};

/// Counts from its own start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: std::time::Instant::now() }
    }

    pub(crate) fn now(self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
        Now { instant: Instant(self.start.elapsed()), wall: Timestamp(wall) }
    }
}
