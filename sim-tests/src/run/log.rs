//! What the mirrors say in their logs, to be shown between the events of a run.

use kafka_model::Millis;
use runtime_sim::Handle;
use std::cell::RefCell;
use std::fmt::Write;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

type Lines = Vec<(Millis, String)>;

struct Heard {
    handle: Handle,
    keeps_all: bool,
    lines: Lines,
    trouble: Option<(Millis, String)>,
}

thread_local! {
    /// A run has one thread, and a subscriber may hold nothing that belongs to it.
    static RUN: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// From now on what is logged on this thread is kept: all of it, or only the last trouble.
pub fn listen(handle: &Handle, keeps_all: bool) -> DefaultGuard {
    RUN.set(Some(Heard { handle: handle.clone(), keeps_all, lines: Vec::new(), trouble: None }));
    let level = if keeps_all { Level::DEBUG } else { Level::WARN };
    tracing::subscriber::set_default(Listener { level })
}

/// All that was logged, with its time.
pub fn take() -> Lines {
    RUN.take().map(|heard| heard.lines).unwrap_or_default()
}

/// The last warning or error of any instance.
pub fn last_trouble() -> Option<String> {
    let told = |(at, text): &(Millis, String)| format!("{:.3}s{text}", *at as f64 / 1000.0);
    RUN.with_borrow(|run| run.as_ref().and_then(|heard| heard.trouble.as_ref().map(told)))
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

struct Listener {
    level: Level,
}

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
        *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level))
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
            let Some(heard) = run else { return };
            let now = heard.handle.now();
            let target = event.metadata().target().rsplit("::").next().unwrap_or("");
            let level = event.metadata().level();
            if heard.keeps_all {
                let line = format!("{:>10.3}s {level:<10} {target:<26}{}", now as f64 / 1000.0, text.0);
                heard.lines.push((now, line));
            }
            if *level <= Level::WARN {
                heard.trouble = Some((now, text.0));
            }
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
