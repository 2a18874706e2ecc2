//! What a client believes of topics and leaders. Belief: it changes only when a broker is asked.

use super::io::Io;
use super::library::Line;
use super::wire::Pending;
use kafka_model::api::metadata::{MetadataRequest, MetadataResponse, MetadataTopics};
use kafka_model::{BrokerId, Millis, Response};
use kafka_types::{ErrorCode, LeaderEpoch, TopicId, TopicName, TopicPartition};
use std::collections::BTreeMap;

/// Between two questions about what is not known yet (`retry.backoff.ms`).
const RETRY_MS: Millis = 100;
/// `topic.metadata.refresh.interval.ms` is five minutes; it is not the one that finds things out.
const REFRESH_MS: Millis = 300_000;
const PATIENCE_MS: Millis = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) broker: Option<BrokerId>,
    pub(super) epoch: LeaderEpoch,
}

#[derive(Default)]
struct Topic {
    id: Option<TopicId>,
    partitions: Vec<Leader>,
    /// The last answer's error, and since when there has been one.
    error: Option<(ErrorCode, Millis)>,
    /// What is known is not to be trusted.
    is_stale: bool,
    /// Counts answers, so that a question can tell whether it was answered.
    answers: u64,
}

#[derive(Default)]
pub(super) struct Metadata {
    topics: BTreeMap<TopicName, Topic>,
    pending: Option<Pending>,
    may_ask_at: Millis,
    asked_all_at: Millis,
}

impl Metadata {
    /// From now on the topic is asked about.
    pub(super) fn want(&mut self, topic: &TopicName) {
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.clone(), Topic { is_stale: true, ..Topic::default() });
        }
    }

    /// The same, and what was wrong with it before is to be shown again.
    pub(super) fn want_anew(&mut self, topic: &TopicName) {
        self.want(topic);
        if let Some(topic) = self.topics.get_mut(topic)
            && topic.error.take().is_some()
        {
            topic.is_stale = true;
        }
    }

    /// Something a broker said does not fit what is known of the topic.
    pub(super) fn doubt(&mut self, topic: &TopicName) {
        self.want(topic);
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.is_stale = true;
        }
    }

    pub(super) fn leader(&self, tp: &TopicPartition) -> Option<Leader> {
        self.topics.get(&tp.topic)?.partitions.get(tp.partition.index()).copied()
    }

    pub(super) fn partitions(&self, topic: &TopicName) -> usize {
        self.topics.get(topic).map_or(0, |topic| topic.partitions.len())
    }

    /// How often the topic was answered for.
    pub(super) fn answers(&self, topic: &TopicName) -> u64 {
        self.topics.get(topic).map_or(0, |topic| topic.answers)
    }

    /// What is wrong with the topic, and since when.
    pub(super) fn error(&self, topic: &TopicName) -> Option<(ErrorCode, Millis)> {
        self.topics.get(topic)?.error
    }

    pub(super) fn advance(&mut self, io: &mut Io, line: &Line) {
        if let Some(pending) = self.pending {
            let Some(answer) = io.wire.take(pending) else { return };
            self.pending = None;
            self.may_ask_at = io.now + RETRY_MS;
            if let Ok(Response::Metadata(response)) = answer {
                self.heard(io.now, response);
                io.look_again = true;
            }
        }
        if self.topics.is_empty() {
            return;
        }
        let stale = self.topics.values().any(|topic| topic.is_stale);
        let at = if stale { self.may_ask_at } else { self.asked_all_at + REFRESH_MS };
        if !io.is_due(at) {
            return;
        }
        self.asked_all_at = io.now;
        let names = self.topics.keys().cloned().collect();
        let request =
            MetadataRequest { topics: MetadataTopics::Named(names), allow_auto_topic_creation: false };
        let broker = line.any_broker(io);
        self.pending = Some(line.send_within(io, broker, request, PATIENCE_MS));
    }

    fn heard(&mut self, now: Millis, response: MetadataResponse) {
        for told in response.topics {
            let Some(topic) = told.name.and_then(|name| self.topics.get_mut(&name)) else { continue };
            topic.answers += 1;
            if told.error_code.is_error() {
                let since = topic.error.map_or(now, |(_, since)| since);
                topic.error = Some((told.error_code, since));
                continue;
            }
            topic.error = None;
            topic.is_stale = false;
            if topic.id != told.topic_id {
                topic.id = told.topic_id;
                topic.partitions.clear();
            }
            for partition in told.partitions {
                let leader = Leader { broker: partition.leader, epoch: partition.leader_epoch };
                topic.is_stale |= leader.broker.is_none();
                match topic.partitions.get_mut(partition.partition.index()) {
                    // An answer from before an election says nothing new.
                    Some(known) if leader.epoch < known.epoch => topic.is_stale = true,
                    Some(known) => *known = leader,
                    None => topic.partitions.push(leader),
                }
            }
        }
    }
}
