//! Reading committed records of one or more target partitions, from a thread of its own.

use super::emitter::Emitter;
use super::failure::of_reading;
use crate::ffi::admin::{Isolation, Spec, list_offsets, writable_topics};
use crate::ffi::{AssignedConsumer, ClientError, Code, OwnedMessage, StartAt};
use kafka_types::{Partition, TargetOffset, TargetPartition, TopicName};
use rdkafka::ClientConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use verbatim_core::failure::{Failure, Trouble};

pub(super) struct TargetReader {
    consumer: AssignedConsumer,
}

/// What came while reading.
pub(super) enum Seen {
    Record(TargetPartition, OwnedMessage),
    /// The reader's view of the partition ended at this offset when this was said.
    End(TargetPartition),
}

/// Offsets by partition, or why one could not be told.
pub(super) type Ends = BTreeMap<TargetPartition, Result<TargetOffset, Failure>>;

const ASK_MAX: Duration = Duration::from_secs(10);

impl TargetReader {
    pub(super) fn new(config: &ClientConfig, emitter: &Emitter) -> Result<TargetReader, Failure> {
        let made = AssignedConsumer::new(config, emitter.liveness());
        let consumer = made.map_err(|error| Failure::Fatal(Trouble::Refused(error.to_string())))?;
        Ok(TargetReader { consumer })
    }

    pub(super) fn start<'a>(
        &self,
        from: impl Iterator<Item = (&'a TargetPartition, i64)>,
    ) -> Result<(), Failure> {
        let starts = from.map(|(partition, offset)| StartAt {
            topic: partition.topic.as_str(),
            partition: partition.partition.0,
            offset,
            epoch: -1,
        });
        self.consumer.assign(starts).map_err(|error| Failure::Retry(error.to_string()))
    }

    /// Waits a while for what comes next, in order. Errors that pass are left to pass.
    pub(super) fn poll(&self) -> Result<Vec<Seen>, Failure> {
        let mut seen = Vec::new();
        for message in self.consumer.poll(1_000, Duration::from_millis(200)) {
            let place = message.topic().map(|topic| TargetPartition {
                topic: TopicName::from(topic),
                partition: Partition(message.partition()),
            });
            match (message.error(), place) {
                (None, Some(place)) => seen.push(Seen::Record(place, message)),
                (Some(error), Some(place)) if error.code == Code::RD_KAFKA_RESP_ERR__PARTITION_EOF => {
                    seen.push(Seen::End(place));
                }
                (Some(error), place) => heed(&error, place)?,
                (None, None) => {}
            }
        }
        Ok(seen)
    }

    /// One end of each partition, committed or not; those that could not be told in time have their failure.
    pub(super) fn ends(&self, partitions: &[TargetPartition], end: Spec) -> Ends {
        let until = Instant::now() + ASK_MAX;
        loop {
            let ends = self.ask_ends(partitions, end);
            let again = ends.values().any(|answer| matches!(answer, Err(Failure::Retry(_))));
            if !again || until < Instant::now() {
                return ends;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Of these topics, those that may not be written to. Those of which nothing can be learnt are left out:
    /// whatever is wrong there shows where it is asked for.
    pub(super) fn denied(&self, topics: &BTreeSet<&TopicName>) -> Vec<TopicName> {
        let names: Vec<&str> = topics.iter().map(|topic| topic.as_str()).collect();
        match writable_topics(&**self.consumer.client(), &names, ASK_MAX) {
            Ok(answers) => {
                let denied = answers.into_iter().filter(|(_, answer)| matches!(answer, Ok(false)));
                denied.map(|(topic, _)| TopicName::new(topic)).collect()
            }
            Err(error) => {
                tracing::debug!(?error, "who may write to the target topics is not known");
                Vec::new()
            }
        }
    }

    fn ask_ends(&self, partitions: &[TargetPartition], end: Spec) -> Ends {
        let asked: Vec<_> = partitions.iter().map(|place| (place.topic.clone(), place.partition)).collect();
        let answers =
            list_offsets(&**self.consumer.client(), &asked, end, Isolation::ReadUncommitted, ASK_MAX);
        let failure = |error: &ClientError, topic: &TopicName| match of_reading(error, topic) {
            Some(trouble) => Failure::Fatal(trouble),
            None => Failure::Retry(error.to_string()),
        };
        let of = |place: &TargetPartition| match &answers {
            Err(error) => Err(failure(error, &place.topic)),
            Ok(answers) => match answers.get(&(place.topic.clone(), place.partition)) {
                Some(Ok(Some(told))) => Ok(TargetOffset(told.offset)),
                Some(Err(error)) => Err(failure(error, &place.topic)),
                Some(Ok(None)) | None => Err(Failure::Retry(format!("no offsets of {place}"))),
            },
        };
        partitions.iter().map(|place| (place.clone(), of(place))).collect()
    }
}

/// An error while reading: fatal ones end it, others pass.
fn heed(error: &ClientError, place: Option<TargetPartition>) -> Result<(), Failure> {
    let topic = place.map_or_else(|| TopicName::from(""), |place| place.topic);
    match error.code {
        // The group is never used (S10).
        Code::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED => return Ok(()),
        Code::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET => return Err(Failure::Retry(error.to_string())),
        _ => tracing::debug!(%topic, %error, "target reader"),
    }
    match of_reading(error, &topic) {
        Some(trouble) => Err(Failure::Fatal(trouble)),
        None => Ok(()),
    }
}
