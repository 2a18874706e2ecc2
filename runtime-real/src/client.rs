//! What every client of this crate does with librdkafka's own reports: log lines and errors that belong to
//! no question.

use crate::ffi::{ClientError, Code};
use crate::trouble::Asked;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::event::Event;
use verbatim_core::failure::{Side, Trouble};

/// How long an error explains why nothing is answered: librdkafka reports it with every try, but at most
/// twice a minute.
const EXPLAINS: Duration = Duration::from_secs(60);

/// How often the same kind of trouble is reported.
const REPEAT: Duration = Duration::from_secs(5);

/// Hands a line of librdkafka's log to tracing.
pub(crate) fn log(side: Side, level: RDKafkaLogLevel, facility: &str, line: &str) {
    match level {
        // One map of properties serves consumers and producers, so each is given some that are not its own.
        _ if facility == "CONFWARN" => tracing::debug!(target: "librdkafka", %side, facility, "{line}"),
        RDKafkaLogLevel::Emerg
        | RDKafkaLogLevel::Alert
        | RDKafkaLogLevel::Critical
        | RDKafkaLogLevel::Error => {
            tracing::error!(target: "librdkafka", %side, facility, "{line}");
        }
        RDKafkaLogLevel::Warning => tracing::warn!(target: "librdkafka", %side, facility, "{line}"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
            tracing::info!(target: "librdkafka", %side, facility, "{line}");
        }
        RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", %side, facility, "{line}"),
    }
}

/// The context of a client that belongs to no group. It remembers what librdkafka says about the brokers, so
/// that a question without an answer can be told why: librdkafka itself only says that it timed out.
pub(crate) struct Watcher {
    side: Side,
    /// Where troubles outside any question are reported, if anybody listens.
    events: Option<UnboundedSender<Event>>,
    seen: Mutex<Seen>,
    /// Whether no broker has answered since a connection failed.
    doubtful: AtomicBool,
}

#[derive(Default)]
struct Seen {
    authentication: Option<(Instant, String)>,
    transport: Option<(Instant, String)>,
    reported: Option<(Instant, Trouble)>,
}

impl Watcher {
    pub(crate) fn new(side: Side, events: Option<UnboundedSender<Event>>) -> Watcher {
        Watcher { side, events, seen: Mutex::default(), doubtful: AtomicBool::new(true) }
    }

    /// Whether a broker must be found before anything is asked of it.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }

    /// Whether the brokers refuse who we are, so that waiting for one is of no use.
    pub(crate) fn is_refused(&self) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).authentication.is_some()
    }

    /// A broker has answered, or a question has failed for want of one.
    pub(crate) fn doubt(&self, doubtful: bool) {
        self.doubtful.store(doubtful, Ordering::Relaxed);
        if !doubtful {
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        }
    }

    /// What `error`, the outcome of a question, means together with what was seen of the brokers meanwhile.
    pub(crate) fn explain(&self, error: &ClientError, asked: &Asked<'_>) -> Trouble {
        let trouble = error.trouble(asked);
        let Trouble::Unreachable(text) = trouble else { return trouble };
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |seen: &Option<(Instant, String)>| {
            seen.as_ref().filter(|(at, _)| at.elapsed() < EXPLAINS).map(|(_, text)| text.clone())
        };
        match (recent(&seen.authentication), recent(&seen.transport)) {
            (Some(why), _) => Trouble::Authentication(why),
            (None, Some(why)) => Trouble::Unreachable(why),
            (None, None) => Trouble::Unreachable(text),
        }
    }

    fn saw(&self, error: &ClientError) {
        self.doubt(true);
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = match error.trouble(&Asked::new("", "")) {
            Trouble::Authentication(text) => {
                seen.authentication = Some((now, text.clone()));
                Trouble::Authentication(text)
            }
            Trouble::Unreachable(_) if error.code == Code::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN => {
                let why = seen.transport.as_ref().map_or(error.text.clone(), |(_, text)| text.clone());
                Trouble::Unreachable(why)
            }
            Trouble::Unreachable(text) => {
                seen.transport = Some((now, text));
                return;
            }
            Trouble::NotAuthorized { .. } | Trouble::Refused(_) | Trouble::Passing(_) => return,
        };
        let repeated = seen.reported.as_ref().is_some_and(|(at, last)| {
            at.elapsed() < REPEAT && std::mem::discriminant(last) == std::mem::discriminant(&trouble)
        });
        if repeated {
            return;
        }
        seen.reported = Some((now, trouble.clone()));
        if let Some(events) = &self.events {
            // Nobody listens any more once the World is shut down.
            let _ = events.send(Event::Trouble(self.side, trouble));
        }
    }
}

impl ClientContext for Watcher {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log(self.side, level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(code) => self.saw(&ClientError::of_rdkafka(code, reason)),
            None => tracing::warn!(side = %self.side, %error, reason, "librdkafka reports an error"),
        }
    }
}

impl ConsumerContext for Watcher {}

#[cfg(test)]
mod tests {
    use super::*;

    fn watcher() -> (Watcher, tokio::sync::mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        (Watcher::new(Side::Source, Some(sender)), receiver)
    }

    #[test]
    fn a_time_out_is_explained_by_what_was_seen() {
        let (watcher, mut events) = watcher();
        let explain =
            |watcher: &Watcher| watcher.explain(&ClientError::timed_out("it"), &Asked::new("Describe", ""));
        assert!(matches!(explain(&watcher), Trouble::Unreachable(text) if text.contains("no answer to it")));
        watcher.saw(&ClientError::new(Code::RD_KAFKA_RESP_ERR__TRANSPORT, "connection refused"));
        assert!(
            matches!(explain(&watcher), Trouble::Unreachable(text) if text.contains("connection refused"))
        );
        watcher.saw(&ClientError::new(Code::RD_KAFKA_RESP_ERR__AUTHENTICATION, "bad password"));
        assert!(matches!(explain(&watcher), Trouble::Authentication(text) if text.contains("bad password")));
        assert!(matches!(
            events.try_recv(),
            Ok(Event::Trouble(Side::Source, Trouble::Authentication(text))) if text.contains("bad password")
        ));
    }

    #[test]
    fn all_brokers_down_is_reported_with_its_reason_and_not_again_at_once() {
        let (watcher, mut events) = watcher();
        watcher.saw(&ClientError::new(Code::RD_KAFKA_RESP_ERR__TRANSPORT, "connection refused"));
        watcher.saw(&ClientError::new(Code::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down"));
        watcher.saw(&ClientError::new(Code::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down"));
        assert!(matches!(
            events.try_recv(),
            Ok(Event::Trouble(Side::Source, Trouble::Unreachable(text))) if text.contains("connection refused")
        ));
        assert!(events.try_recv().is_err());
    }

    #[test]
    fn other_errors_are_not_explained_away() {
        let (watcher, _events) = watcher();
        watcher.saw(&ClientError::new(Code::RD_KAFKA_RESP_ERR__TRANSPORT, "connection refused"));
        let error = ClientError::new(Code::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, "no");
        assert!(matches!(watcher.explain(&error, &Asked::new("Create", "x")), Trouble::Refused(_)));
    }
}
