//! One end of partitions, asked of their leaders until each has answered or time is over.

use super::io::Io;
use super::library::Library;
use super::wire::Pending;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, OffsetSpec};
use kafka_model::{BrokerId, Millis, Response};
use kafka_types::{ErrorCode, LeaderEpoch, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

const RETRY_MS: Millis = 100;

/// Why a partition has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoOffset {
    /// A broker's last word.
    Error(ErrorCode),
    Unanswered,
}

/// An offset that a leader told, below zero where no record is young enough, with the epoch of the log there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToldOffset {
    pub(super) offset: i64,
    pub(super) epoch: Option<LeaderEpoch>,
}

pub(super) type Found = BTreeMap<TopicPartition, Result<ToldOffset, NoOffset>>;

pub(super) struct Offsets {
    spec: OffsetSpec,
    isolation: IsolationLevel,
    open: BTreeSet<TopicPartition>,
    asked: Vec<(Pending, Vec<TopicPartition>)>,
    last_error: BTreeMap<TopicPartition, ErrorCode>,
    found: Found,
    may_ask_at: Millis,
    until: Millis,
}

impl Offsets {
    pub(super) fn ask(
        library: &mut Library,
        partitions: impl IntoIterator<Item = TopicPartition>,
        spec: OffsetSpec,
        isolation: IsolationLevel,
        until: Millis,
    ) -> Offsets {
        let open: BTreeSet<_> = partitions.into_iter().collect();
        open.iter().for_each(|tp| library.metadata.want_anew(&tp.topic));
        Offsets {
            spec,
            isolation,
            open,
            asked: Vec::new(),
            last_error: BTreeMap::new(),
            found: Found::new(),
            may_ask_at: 0,
            until,
        }
    }

    /// All answers, once there are no more to wait for.
    pub(super) fn advance(&mut self, io: &mut Io, library: &mut Library) -> Option<Found> {
        let mut retry = false;
        for (pending, partitions) in std::mem::take(&mut self.asked) {
            match io.wire.take(pending) {
                None => self.asked.push((pending, partitions)),
                Some(Ok(Response::ListOffsets(response))) => {
                    for told in response.partitions {
                        let place = ToldOffset { offset: told.offset, epoch: told.leader_epoch };
                        retry |= self.heard(library, told.topic_partition, told.error_code, place);
                    }
                }
                Some(_) => {
                    retry = true;
                    partitions.iter().for_each(|tp| library.metadata.doubt(&tp.topic));
                }
            }
        }
        if retry {
            self.may_ask_at = io.now + RETRY_MS;
        }
        if self.open.is_empty() || io.is_due(self.until) {
            return Some(self.finish(io));
        }
        if io.is_due(self.may_ask_at) {
            self.send(io, library);
        }
        None
    }

    fn heard(
        &mut self,
        library: &mut Library,
        tp: TopicPartition,
        error: ErrorCode,
        place: ToldOffset,
    ) -> bool {
        if !self.open.contains(&tp) {
            return false;
        }
        match error {
            ErrorCode::None => {
                self.open.remove(&tp);
                self.found.insert(tp, Ok(place));
                false
            }
            ErrorCode::TopicAuthorizationFailed => {
                self.open.remove(&tp);
                self.found.insert(tp, Err(NoOffset::Error(error)));
                false
            }
            error => {
                library.metadata.doubt(&tp.topic);
                self.last_error.insert(tp, error);
                true
            }
        }
    }

    fn send(&mut self, io: &mut Io, library: &mut Library) {
        let under_way: BTreeSet<&TopicPartition> = self.asked.iter().flat_map(|(_, tps)| tps).collect();
        let mut by_leader: BTreeMap<BrokerId, Vec<TopicPartition>> = BTreeMap::new();
        let (mut denied, mut unknown) = (Vec::new(), Vec::new());
        for tp in self.open.iter().filter(|tp| !under_way.contains(tp)) {
            if let Some((ErrorCode::TopicAuthorizationFailed, _)) = library.metadata.error(&tp.topic) {
                denied.push(tp.clone());
            } else if let Some(broker) = library.metadata.leader(tp).and_then(|leader| leader.broker) {
                by_leader.entry(broker).or_default().push(tp.clone());
            } else {
                unknown.push(tp.topic.clone());
            }
        }
        unknown.iter().for_each(|topic| library.metadata.doubt(topic));
        for tp in denied {
            self.open.remove(&tp);
            self.found.insert(tp, Err(NoOffset::Error(ErrorCode::TopicAuthorizationFailed)));
            io.look_again = true;
        }
        for (broker, partitions) in by_leader {
            let asked = partitions.iter().map(|tp| ListOffsetsPartition {
                topic_partition: tp.clone(),
                current_leader_epoch: library.metadata.leader(tp).map(|leader| leader.epoch),
                position: self.spec,
            });
            let request = ListOffsetsRequest { isolation_level: self.isolation, partitions: asked.collect() };
            let patience = (self.until - io.now).max(1);
            self.asked.push((library.send_within(io, broker, request, patience), partitions));
        }
    }

    fn finish(&mut self, io: &mut Io) -> Found {
        self.asked.drain(..).for_each(|(pending, _)| io.wire.forget(pending));
        let mut found = std::mem::take(&mut self.found);
        for tp in std::mem::take(&mut self.open) {
            let why = self.last_error.get(&tp).map_or(NoOffset::Unanswered, |error| NoOffset::Error(*error));
            found.insert(tp, Err(why));
        }
        found
    }
}
