//! What the mirrors say in their logs, to be shown between the events of a run.

use kafka_model::Millis;
use runtime_sim::Handle;
use std::cell::RefCell;
use std::fmt::Write;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

type Lines = Vec<(Millis, String)>;

thread_local! {
    /// A run has one thread, and a subscriber may hold nothing that belongs to it.
    static RUN: RefCell<Option<(Handle, Lines)>> = const { RefCell::new(None) };
}

/// From now on what is logged on this thread is kept.
pub fn listen(handle: &Handle) -> DefaultGuard {
    RUN.set(Some((handle.clone(), Vec::new())));
    tracing::subscriber::set_default(Listener)
}

/// All that was logged, with its time.
pub fn take() -> Lines {
    RUN.take().map(|(_, lines)| lines).unwrap_or_default()
}

/// Puts what was logged between a run's events, by time.
pub fn merge(events: Vec<String>, logged: Lines) -> Vec<String> {
    let mut merged = Vec::with_capacity(events.len() + logged.len());
    let mut logged = logged.into_iter().peekable();
    for event in events {
        let at = event.trim_start().split('s').next().and_then(|text| text.parse::<f64>().ok());
        let at = at.map_or(Millis::MAX, |seconds| (seconds * 1000.0).round() as Millis);
        while let Some((_, line)) = logged.next_if(|(time, _)| *time < at) {
            merged.push(line);
        }
        merged.push(event);
    }
    merged.extend(logged.map(|(_, line)| line));
    merged
}

struct Listener;

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        RUN.with_borrow_mut(|run| {
            let Some((handle, lines)) = run else { return };
            let now = handle.now();
            let target = event.metadata().target().rsplit("::").next().unwrap_or("");
            let level = event.metadata().level();
            lines.push((now, format!("{:>10.3}s {level:<10} {target:<26}{}", now as f64 / 1000.0, text.0)));
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
