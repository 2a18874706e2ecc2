//! `Prepare`: the lane's producer gets to know target partitions, and what they hold is looked at.

use super::LaneSettings;
use super::emitter::Emitter;
use super::failure::of_writing;
use super::target_reader::{Seen, TargetReader};
use crate::ffi::{End, RdError, TransactionalProducer};
use kafka_types::{TargetOffset, TargetPartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use verbatim_core::Attempt;
use verbatim_core::command::PrepareFrom;
use verbatim_core::event::{LaneEvent, Step, TargetState};
use verbatim_core::failure::{Failure, Trouble};

pub(super) type Targets = BTreeMap<TargetPartition, PrepareFrom>;
pub(super) type Answers = BTreeMap<TargetPartition, Result<TargetState, Failure>>;

/// How long a new partition may take to show in the producer's metadata.
const KNOWN_MAX: Duration = Duration::from_secs(5);
/// Between two questions for the same topic.
const PAUSE: Duration = Duration::from_millis(100);
/// How long looking for strays may take.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// Asks for each topic's metadata on the producer itself until it shows the partitions (H10); those that it
/// does not show in time have their failure.
pub(super) fn know(producer: &mut TransactionalProducer, targets: &Targets) -> Answers {
    let until = Instant::now() + KNOWN_MAX;
    let mut wanted: BTreeMap<TopicName, u32> = BTreeMap::new();
    for place in targets.keys() {
        let count = wanted.entry(place.topic.clone()).or_default();
        *count = (*count).max(place.partition.index() as u32 + 1);
    }
    let mut unknown = Answers::new();
    for (topic, count) in wanted {
        let shown = await_partitions(producer, &topic, count, until);
        let shown = shown.unwrap_or_else(|(shown, failure)| {
            let hidden =
                targets.keys().filter(|place| place.topic == topic && shown <= place.partition.index());
            unknown.extend(hidden.map(|place| (place.clone(), Err(failure.clone()))));
            shown
        });
        tracing::debug!(%topic, shown, "the producer knows a topic's partitions");
    }
    unknown
}

fn await_partitions(
    producer: &mut TransactionalProducer,
    topic: &TopicName,
    count: u32,
    until: Instant,
) -> Result<usize, (usize, Failure)> {
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let (shown, failure) = match producer.partitions_of(topic, left) {
            Ok(shown) if count <= shown => return Ok(shown as usize),
            Ok(shown) => {
                (shown as usize, Failure::Retry(format!("only {shown} partitions of {topic} are known")))
            }
            Err(error) => (0, topic_failure(&error, topic)),
        };
        if matches!(failure, Failure::Fatal(_)) || until < Instant::now() {
            return Err((shown, failure));
        }
        std::thread::sleep(PAUSE);
    }
}

fn topic_failure(error: &RdError, topic: &TopicName) -> Failure {
    match of_writing(error, topic) {
        Some(trouble) => Failure::Fatal(trouble),
        None => Failure::Retry(error.to_string()),
    }
}

/// Looks at the partitions that the producer knows, on a thread of its own, and emits `Prepared`.
pub(super) fn look(
    emitter: &Emitter,
    attempt: Attempt,
    settings: &Arc<LaneSettings>,
    targets: Targets,
    unknown: Answers,
) {
    let (emits, settings) = (emitter.clone(), Arc::clone(settings));
    emitter.spawn(attempt, Step::Prepare, "prepare", move || {
        let mut answers = unknown;
        let known: Targets = targets.into_iter().filter(|(place, _)| !answers.contains_key(place)).collect();
        match TargetReader::new(&settings.target, &emits).and_then(|reader| inspect(&reader, &known, &emits))
        {
            Ok(found) => {
                answers.extend(found);
                emits.emit(attempt, LaneEvent::Prepared(answers));
            }
            Err(failure) => emits.failed(attempt, Step::Prepare, failure),
        }
    });
}

fn inspect(reader: &TargetReader, targets: &Targets, emitter: &Emitter) -> Result<Answers, Failure> {
    let places: Vec<_> = targets.keys().cloned().collect();
    let topics: BTreeSet<&TopicName> = targets.keys().map(|place| &place.topic).collect();
    let denied = if topics.is_empty() { Vec::new() } else { reader.denied(&topics) };
    let mut starts = reader.ends(&places, End::Start);
    let mut ends = reader.ends(&places, End::Latest);
    let mut answers = Answers::new();
    let mut searched: BTreeMap<TargetPartition, TargetOffset> = BTreeMap::new();
    for (place, &from) in targets {
        if denied.contains(&place.topic) {
            let (resource, operation) = (format!("Topic {}", place.topic), "Write".into());
            let trouble = Trouble::NotAuthorized { resource, operation };
            answers.insert(place.clone(), Err(Failure::Fatal(trouble)));
            continue;
        }
        let take = |of: &mut BTreeMap<_, _>| of.remove(place).expect("as many as asked for");
        let state = take(&mut starts).and_then(|log_start| {
            let high_watermark = take(&mut ends)?;
            Ok(TargetState { log_start, high_watermark, stray: None })
        });
        if let (Ok(state), PrepareFrom::Offset(offset)) = (&state, from) {
            let offset = offset.max(state.log_start);
            if offset < state.high_watermark {
                searched.insert(place.clone(), offset);
            }
        }
        answers.insert(place.clone(), state);
    }
    if !searched.is_empty() {
        find_strays(reader, searched, &mut answers, emitter)?;
    }
    Ok(answers)
}

/// The first committed record of each partition at or after its offset.
fn find_strays(
    reader: &TargetReader,
    mut searched: BTreeMap<TargetPartition, TargetOffset>,
    answers: &mut Answers,
    emitter: &Emitter,
) -> Result<(), Failure> {
    reader.start(searched.iter().map(|(place, offset)| (place, offset.0)))?;
    let until = Instant::now() + LOOK_MAX;
    while !searched.is_empty() && !emitter.is_abandoned() && Instant::now() < until {
        for seen in reader.poll()? {
            match seen {
                Seen::Record(place, message) => {
                    if searched.remove(&place).is_some() {
                        let found = Some(TargetOffset(message.offset()));
                        let state = answers.get_mut(&place).expect("it has an answer").as_mut();
                        state.expect("else it would not be searched").stray = found;
                    }
                }
                Seen::End(place) => {
                    searched.remove(&place);
                }
            }
        }
    }
    for place in searched.into_keys() {
        let text = format!("{place} could not be read in time");
        answers.insert(place, Err(Failure::Retry(text)));
    }
    Ok(())
}
