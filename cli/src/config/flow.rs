//! Settings to a validated flow.

use super::client::{self, Properties, Property};
use super::error::{ConfigError, ConfigErrors};
use super::layers::Layered;
use super::reader::{Placed, Reader, not_in_this_version};
use super::tree::{Setting, Value};
use super::values::{parse_bytes, parse_duration, parse_time};
use std::ops::RangeInclusive;
use std::time::Duration;
use verbatim_core::config::{Flow, FlowName, Limits, Start};
use verbatim_core::failure::Side;
use verbatim_core::route::{Rename, TopicFilter};

/// A whole configuration, valid in itself; whether it fits the clusters only they can tell.
#[derive(Clone, Debug)]
pub struct Config {
    /// The flow as every instance runs it. The incarnation is empty: a process that runs it names itself.
    pub flow: Flow,
    /// The stable id of this instance, if it has one.
    pub instance: Option<String>,
    /// `topics.include` as it was written, to be shown where it matches nothing.
    pub include: Vec<String>,
    /// librdkafka's properties for each cluster.
    pub source: Properties,
    pub target: Properties,
    /// Bounds every queue, in bytes.
    pub memory: u64,
}

const COMMIT_INTERVAL_DEFAULT: Duration = Duration::from_millis(500);
/// As the clients have it by default.
const TRANSACTION_TIMEOUT_DEFAULT_MS: u128 = 60_000;
const MEMORY_DEFAULT: u64 = 512 << 20;
/// Two records of the largest usual size in every queue, and what the clients need for themselves.
const MEMORY_MIN: u64 = 32 << 20;

pub(super) fn validate(settings: Layered) -> Result<Config, ConfigErrors> {
    let mut reader = Reader::new(settings);
    let name = name(&mut reader);
    let instance = instance(&mut reader);
    let filter = filter(&mut reader);
    let rename = rename(&mut reader);
    let refresh = duration(&mut reader, "topics.refresh", Duration::from_secs(30), 100..=86_400_000);
    let replication_factor = replication_factor(&mut reader, "topics.replication.factor");
    halts_only(&mut reader);
    mode(&mut reader);
    not_yet(&mut reader, "delivery.streams", "1");
    not_yet(&mut reader, "limits.rate", "none");
    let start = reader.parsed("delivery.start", parse_start).map_or(Start::Earliest, |start| start.value);
    let commit_interval = optional_duration(&mut reader, "delivery.commit.interval", 1..=30_000);
    let lanes = reader.integer("delivery.lanes", 1..=1000).map_or(8, |lanes| lanes.value);
    let ledger_replication_factor = replication_factor_of_ledger(&mut reader);
    let memory = memory(&mut reader);
    let source = cluster(&mut reader, Side::Source);
    let target = cluster(&mut reader, Side::Target);
    if let (Some(interval), Some(target)) = (&commit_interval, &target) {
        fits_a_transaction(&mut reader, interval, target);
    }
    let config = match (name, filter, source, target) {
        (Some(name), Some((filter, include)), Some(source), Some(target)) => Some(Config {
            flow: Flow {
                name,
                incarnation: String::new(),
                filter,
                rename: rename.unwrap_or_else(Rename::identity),
                refresh,
                replication_factor,
                start,
                commit_interval: commit_interval.map_or(COMMIT_INTERVAL_DEFAULT, |interval| interval.value),
                lanes: u32::try_from(lanes).expect("the range is checked"),
                ledger_replication_factor,
                intake_bytes_max: intake_bytes_max(memory, &target),
                until: None,
                wait_open: Duration::from_secs(60),
                limits: Limits::default(),
            },
            instance,
            include,
            source,
            target,
            memory,
        }),
        _ => None,
    };
    reader.finish(config)
}

fn name(reader: &mut Reader) -> Option<FlowName> {
    match reader.text("name") {
        Some(Placed { value, place }) => match FlowName::new(&value) {
            Ok(name) => Some(name),
            Err(error) => {
                reader.error(ConfigError::at(&place, format!("name: {error}")).label("not a flow name"));
                None
            }
        },
        None => {
            reader.error(ConfigError::new("name is missing").help(
                "give the flow a name, as in name = \"orders-dr\"; `verbatim config init` writes a file to start from",
            ));
            None
        }
    }
}

/// A group.instance.id, which Kafka checks as it checks topic names.
fn instance(reader: &mut Reader) -> Option<String> {
    let Placed { value, place } = reader.text("instance")?;
    if kafka_types::TopicName::from(value.as_str()).is_legal() {
        return Some(value);
    }
    let message = format!("instance: {value:?} is not an instance id");
    reader.error(ConfigError::at(&place, message).label("1 to 249 letters, digits, '.', '_' or '-'"));
    None
}

/// The topic rules, and the include patterns as they were written.
fn filter(reader: &mut Reader) -> Option<(TopicFilter, Vec<String>)> {
    let mut valid = true;
    let mut patterns = |key: &str, default: &[&str]| -> Vec<String> {
        let Some(texts) = reader.texts(key) else {
            return default.iter().map(|text| text.to_string()).collect();
        };
        for pattern in &texts {
            if let Err(error) = check_pattern(key, pattern) {
                reader.error(error);
                valid = false;
            }
        }
        texts.into_iter().map(|pattern| pattern.value).collect()
    };
    let include = patterns("topics.include", &[".*"]);
    let exclude = patterns("topics.exclude", &[]);
    if !valid {
        return None;
    }
    match TopicFilter::new(&include, &exclude) {
        Ok(filter) => Some((filter, include)),
        Err(error) => {
            reader.error(ConfigError::new(error.to_string()));
            None
        }
    }
}

fn check_pattern(key: &str, pattern: &Placed<String>) -> Result<(), ConfigError> {
    let Err(error) = regex_syntax::parse(&pattern.value) else {
        // What the parser lets pass may still be too large to compile.
        return TopicFilter::new(std::slice::from_ref(&pattern.value), &[])
            .map(|_| ())
            .map_err(|error| ConfigError::at(&pattern.place, format!("{key}: {error}")));
    };
    let (what, offset) = match &error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.offset),
        other => (other.to_string(), 0),
    };
    let index = pattern.value.get(..offset).map_or(0, |before| before.chars().count());
    let place = pattern.place.character(&pattern.value, index);
    let message = format!("{key}: {:?} is not a regular expression: {what}", pattern.value);
    Err(ConfigError::at(&place, message).label(what))
}

fn rename(reader: &mut Reader) -> Option<Rename> {
    let Placed { value, place } = reader.text("topics.rename")?;
    match Rename::new(&value) {
        Ok(rename) => Some(rename),
        Err(error) => {
            reader.error(ConfigError::at(&place, format!("topics.rename: {error}")).label(error.why));
            None
        }
    }
}

fn duration(reader: &mut Reader, key: &str, default: Duration, millis: RangeInclusive<u128>) -> Duration {
    optional_duration(reader, key, millis).map_or(default, |duration| duration.value)
}

fn optional_duration(
    reader: &mut Reader,
    key: &str,
    millis: RangeInclusive<u128>,
) -> Option<Placed<Duration>> {
    let duration = reader.parsed(key, parse_duration)?;
    if !millis.contains(&duration.value.as_millis()) {
        let message = format!("{key} is between {} ms and {} ms", millis.start(), millis.end());
        reader.error(ConfigError::at(&duration.place, message).label("out of range"));
    }
    Some(duration)
}

/// A transaction that collects for as long as it may live is never committed.
fn fits_a_transaction(reader: &mut Reader, interval: &Placed<Duration>, target: &Properties) {
    let given = target.get("transaction.timeout.ms").and_then(|text| text.parse::<u128>().ok());
    let timeout = given.unwrap_or(TRANSACTION_TIMEOUT_DEFAULT_MS);
    if timeout < 2 * interval.value.as_millis() {
        let message = format!(
            "delivery.commit.interval is at most half of target.transaction.timeout.ms, which is {timeout} ms"
        );
        reader.error(ConfigError::at(&interval.place, message).label("too long"));
    }
}

fn replication_factor(reader: &mut Reader, key: &str) -> Option<i16> {
    let factor = reader.integer(key, 1..=i64::from(i16::MAX))?;
    i16::try_from(factor.value).ok()
}

fn replication_factor_of_ledger(reader: &mut Reader) -> Option<i16> {
    replication_factor(reader, "delivery.ledger.replication.factor")
}

fn parse_start(text: &str) -> Result<Start, String> {
    match text {
        "earliest" => Ok(Start::Earliest),
        "latest" => Ok(Start::Latest),
        time => parse_time(time).map(Start::Time).map_err(|_| {
            format!(
                "{text:?} is neither \"earliest\" nor \"latest\" nor a time such as \"2026-11-29T10:00:00Z\""
            )
        }),
    }
}

fn memory(reader: &mut Reader) -> u64 {
    let Some(Placed { value, place }) = reader.parsed("limits.memory", parse_bytes) else {
        return MEMORY_DEFAULT;
    };
    if value < MEMORY_MIN {
        reader.error(ConfigError::at(&place, "limits.memory is at least 32MiB").label("too little"));
    }
    value
}

fn mode(reader: &mut Reader) {
    one_of(reader, "delivery.mode", &["exactly-once"], &["at-least-once"]);
}

/// A key of a later version, given as it is by default, asks for nothing that is missing.
fn not_yet(reader: &mut Reader, key: &str, default: &str) {
    let Some(Placed { value, place }) = reader.written(key) else { return };
    if value != default {
        let error = not_in_this_version(&place, &format!("{key} = {value:?}"));
        reader.error(error.help(format!("in this version it is {default:?}")));
    }
}

fn halts_only(reader: &mut Reader) {
    one_of(reader, "on.gap", &["halt"], &["continue"]);
    one_of(reader, "on.truncated", &["halt"], &["continue"]);
    one_of(reader, "on.recreated", &["halt"], &["restart"]);
    one_of(reader, "on.oversized", &["halt"], &["dead-letter", "skip"]);
}

/// A choice, of which some only come in a later version.
fn one_of(reader: &mut Reader, key: &str, now: &[&str], later: &[&str]) {
    let Some(Placed { value, place }) = reader.text(key) else { return };
    if now.contains(&value.as_str()) {
        return;
    }
    let only = now.iter().map(|choice| format!("{choice:?}")).collect::<Vec<_>>().join(" or ");
    let error = if later.contains(&value.as_str()) {
        not_in_this_version(&place, &format!("{key} = {value:?}"))
    } else {
        ConfigError::at(&place, format!("{key} cannot be {value:?}")).label("unknown value")
    };
    reader.error(error.help(format!("in this version it is {only}")));
}

fn cluster(reader: &mut Reader, side: Side) -> Option<Properties> {
    let settings = reader.section(&side.to_string());
    let mut properties = Vec::new();
    for setting in settings {
        match property(side, setting) {
            Ok(property) => properties.push(property),
            Err(error) => reader.error(error),
        }
    }
    match client::translate(side, properties, &ask_librdkafka) {
        Ok(translated) => {
            if !translated.contains_key("bootstrap.servers") {
                reader.error(
                    ConfigError::new(format!("{side}.bootstrap.servers is missing"))
                        .help(format!("where is the {side}? [{side}] bootstrap.servers = \"host:9092\"")),
                );
            }
            Some(translated)
        }
        Err(errors) => {
            errors.into_iter().for_each(|error| reader.error(error));
            None
        }
    }
}

/// Bytes of records under way: a quarter of the memory, as the clients hold as much again, allocators and threads
/// their own; or what the user gives the producer, if that is less. More of it makes nothing faster: a partition has
/// no more than five requests of a megabyte in flight.
fn intake_bytes_max(memory: u64, target: &Properties) -> u64 {
    let kilobytes = target.get("queue.buffering.max.kbytes").and_then(|text| text.parse::<u64>().ok());
    kilobytes.map_or(memory / 4, |kilobytes| (kilobytes * 1024).min(memory / 4))
}

fn ask_librdkafka(name: &str, value: &str) -> client::Verdict {
    match runtime_real::check_property(name, value) {
        Ok(()) => client::Verdict::Taken,
        Err(runtime_real::BadProperty::Unknown) => client::Verdict::Unknown,
        Err(runtime_real::BadProperty::Invalid(why)) => client::Verdict::Invalid(why),
    }
}

/// A client property's value as a text: Kafka knows no other kind.
fn property(side: Side, setting: Setting) -> Result<Property, ConfigError> {
    let Setting { key, key_place, value, layer } = setting;
    let name = key.strip_prefix(&format!("{side}.")).unwrap_or(&key).to_string();
    let wrong = |kind: &str| {
        Err(ConfigError::at(&value.place, format!("{key} is a text, a number or true or false, not {kind}")))
    };
    let text = match &value.value {
        Value::Text(text) | Value::Number(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::List(items) => {
            let mut texts = Vec::new();
            for item in items {
                match &item.value {
                    Value::Text(text) | Value::Number(text) => texts.push(text.as_str()),
                    other => return wrong(other.kind()),
                }
            }
            texts.join(",")
        }
        Value::Empty => return wrong("a section"),
    };
    Ok(Property { name, value: text, name_place: key_place, value_place: value.place, layer })
}
