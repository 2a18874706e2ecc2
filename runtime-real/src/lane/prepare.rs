//! `Prepare`: the lane's producer gets to know target partitions, and what they hold is looked at. Both on a thread of
//! their own: meanwhile the producer's thread goes on with all other partitions.

use super::LaneSettings;
use super::emitter::Emitter;
use super::failure::of_writing;
use super::target_reader::{Seen, TargetReader};
use crate::ffi::admin::Spec;
use crate::ffi::{ClientError, Topic, TransactionalProducer};
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

/// The producer's own handles on topics: what is asked through them is known to the producer (H10).
type Topics = BTreeMap<TopicName, Result<Arc<Topic>, ClientError>>;

/// How long a new partition may take to show in the producer's metadata.
const KNOWN_MAX: Duration = Duration::from_secs(5);
/// Between two questions for the same topic.
const PAUSE: Duration = Duration::from_millis(100);
/// How long looking for strays may take.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// Prepares `targets`, and emits `Prepared` once all of them have an answer.
pub(super) fn start(
    producer: &mut TransactionalProducer,
    emitter: &Emitter,
    attempt: Attempt,
    settings: &Arc<LaneSettings>,
    targets: Targets,
) {
    let names: BTreeSet<&TopicName> = targets.keys().map(|place| &place.topic).collect();
    let topics: Topics = names.into_iter().map(|name| (name.clone(), producer.topic(name))).collect();
    let (emits, settings) = (emitter.clone(), Arc::clone(settings));
    emitter.spawn(attempt, Step::Prepare, "prepare", move || {
        let unknown = know(topics, &targets, &emits);
        match look(targets, unknown, &settings, &emits) {
            Ok(answers) => emits.emit(attempt, LaneEvent::Prepared(answers)),
            Err(failure) => emits.failed(attempt, Step::Prepare, failure),
        }
    });
}

/// Asks for each topic's metadata on the producer itself until it shows the partitions (H10); those that it
/// does not show in time have their failure.
fn know(topics: Topics, targets: &Targets, emitter: &Emitter) -> Answers {
    let until = Instant::now() + KNOWN_MAX;
    let mut unknown = Answers::new();
    for (name, topic) in topics {
        let asked = || targets.keys().filter(|place| place.topic == name);
        let count = asked().map(|place| place.partition.index() + 1).max().unwrap_or(0);
        let ask = |timeout| match &topic {
            Ok(topic) => topic.partitions(timeout),
            Err(error) => Err(error.clone()),
        };
        let shown = await_partitions(&name, count, until, || emitter.is_abandoned(), ask);
        let shown = shown.unwrap_or_else(|(shown, failure)| {
            let hidden = asked().filter(|place| shown <= place.partition.index());
            unknown.extend(hidden.map(|place| (place.clone(), Err(failure.clone()))));
            shown
        });
        tracing::debug!(topic = %name, shown, "the producer knows a topic's partitions");
    }
    unknown
}

/// How many partitions of a topic `ask` shows, once they are as many as wanted; else how many it showed last, and why
/// it is not asked any more.
fn await_partitions(
    topic: &TopicName,
    count: usize,
    until: Instant,
    is_abandoned: impl Fn() -> bool,
    mut ask: impl FnMut(Duration) -> Result<u32, ClientError>,
) -> Result<usize, (usize, Failure)> {
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let (shown, failure) = match ask(left).map(|shown| shown as usize) {
            Ok(shown) if count <= shown => return Ok(shown),
            Ok(shown) => (shown, Failure::Retry(format!("only {shown} partitions of {topic} are known"))),
            Err(error) => (0, topic_failure(&error, topic)),
        };
        if matches!(failure, Failure::Fatal(_)) || until < Instant::now() || is_abandoned() {
            return Err((shown, failure));
        }
        std::thread::sleep(PAUSE);
    }
}

fn topic_failure(error: &ClientError, topic: &TopicName) -> Failure {
    match of_writing(error, topic) {
        Some(trouble) => Failure::Fatal(trouble),
        None => Failure::Retry(error.to_string()),
    }
}

/// What the partitions hold that the producer knows; the others have their failure already.
fn look(
    targets: Targets,
    unknown: Answers,
    settings: &LaneSettings,
    emitter: &Emitter,
) -> Result<Answers, Failure> {
    let mut answers = unknown;
    let known: Targets = targets.into_iter().filter(|(place, _)| !answers.contains_key(place)).collect();
    let reader = TargetReader::new(&settings.target_reader, emitter)?;
    answers.extend(inspect(&reader, &known, emitter)?);
    Ok(answers)
}

fn inspect(reader: &TargetReader, targets: &Targets, emitter: &Emitter) -> Result<Answers, Failure> {
    let places: Vec<_> = targets.keys().cloned().collect();
    let topics: BTreeSet<&TopicName> = targets.keys().map(|place| &place.topic).collect();
    let denied = if topics.is_empty() { Vec::new() } else { reader.denied(&topics) };
    let mut starts = reader.ends(&places, Spec::Earliest);
    let mut ends = reader.ends(&places, Spec::Latest);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::Code;

    fn error(code: Code) -> ClientError {
        ClientError::new(code, "told")
    }

    /// Asks for two partitions; what came of it, and how often it was asked.
    fn asked(
        time: Duration,
        is_abandoned: bool,
        answers: Vec<Result<u32, ClientError>>,
    ) -> (Result<usize, (usize, Failure)>, usize) {
        let mut times = 0;
        let ask = |_| {
            times += 1;
            answers[(times - 1).min(answers.len() - 1)].clone()
        };
        let found = await_partitions(&"orders".into(), 2, Instant::now() + time, || is_abandoned, ask);
        (found, times)
    }

    #[test]
    fn partitions_are_waited_for() {
        let unknown = || Err(error(Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART));
        assert_eq!(asked(KNOWN_MAX, false, vec![unknown(), Ok(1), Ok(3)]), (Ok(3), 3));
        let (found, _) = asked(Duration::ZERO, false, vec![Ok(1)]);
        assert!(matches!(found, Err((1, Failure::Retry(_)))));
    }

    #[test]
    fn what_will_not_pass_is_not_waited_for() {
        let denied = error(Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        let (found, times) = asked(KNOWN_MAX, false, vec![Err(denied)]);
        assert!(matches!(found, Err((0, Failure::Fatal(Trouble::NotAuthorized { .. })))));
        assert_eq!(times, 1);
    }

    #[test]
    fn an_abandoned_lane_asks_no_more() {
        let (found, times) = asked(KNOWN_MAX, true, vec![Ok(0)]);
        assert!(matches!(found, Err((0, Failure::Retry(_)))));
        assert_eq!(times, 1);
    }
}
