//! The one port: the abstract brokers and clock that a [`Mirror`](crate::Mirror) runs against.

use crate::command::Command;
use crate::event::Event;
use crate::time::{Instant, Now};

/// Two Kafka clusters, their client library and a clock.
///
/// In production this is rdkafka on real brokers, in tests a script or a simulated cluster. A World makes no
/// decision of policy: it carries out commands, in the order given, and reports what happened.
pub trait World {
    /// Starts `command`. Its outcome arrives later as an event; nothing here waits.
    fn submit(&mut self, command: Command);

    /// The next thing that happened, or [`Event::Woke`] at `wake` when nothing did until then.
    fn next(&mut self, wake: Option<Instant>) -> impl Future<Output = (Now, Event)>;
}
