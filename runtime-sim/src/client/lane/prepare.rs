//! The second half of `Prepare`: what the target partitions hold, read by a consumer of its own.

use super::LanePlace;
use super::know::Known;
use crate::client::fetcher::{Fetcher, Read, Start};
use crate::client::io::Io;
use crate::client::library::{Library, SOCKET_TIMEOUT_MS};
use crate::client::offsets::{Found, NoOffset, Offsets};
use kafka_model::Millis;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_types::{ErrorCode, TargetOffset, TargetPartition, TopicPartition};
use std::collections::BTreeMap;
use verbatim_core::Attempt;
use verbatim_core::command::PrepareFrom;
use verbatim_core::event::TargetState;
use verbatim_core::failure::{Failure, Trouble};

const ASK_MAX_MS: Millis = 10_000;
/// How long looking for strays may take.
const LOOK_MAX_MS: Millis = 20_000;

type Answers = BTreeMap<TargetPartition, Result<TargetState, Failure>>;

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Stage {
    Ends { starts: Offsets, found_starts: Option<Found>, ends: Offsets, found_ends: Option<Found> },
    Strays { searched: BTreeMap<TargetPartition, TargetOffset>, until: Millis },
}

pub(super) struct Preparing {
    pub(super) attempt: Attempt,
    targets: BTreeMap<TargetPartition, PrepareFrom>,
    answers: Answers,
    fetcher: Fetcher,
    stage: Stage,
}

impl Preparing {
    pub(super) fn start(io: &mut Io, place: &LanePlace, known: Known) -> Preparing {
        let Known { attempt, mut targets, unknown } = known;
        targets.retain(|target, _| !unknown.contains_key(target));
        let library = Library::new(io, &place.target, SOCKET_TIMEOUT_MS);
        let mut fetcher = Fetcher::new(library, 1_000);
        let mut ask = |spec| {
            let asked: Vec<_> = targets.keys().map(topic_partition).collect();
            let until = io.now + ASK_MAX_MS;
            Offsets::ask(&mut fetcher.library, asked, spec, IsolationLevel::ReadUncommitted, until)
        };
        let stage = Stage::Ends {
            starts: ask(OffsetSpec::Earliest),
            found_starts: None,
            ends: ask(OffsetSpec::Latest),
            found_ends: None,
        };
        let answers = unknown.into_iter().map(|(target, failure)| (target, Err(failure))).collect();
        Preparing { attempt, targets, answers, fetcher, stage }
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.fetcher.close(io);
    }

    /// The answers, once there are all.
    pub(super) fn advance(&mut self, io: &mut Io) -> Option<Answers> {
        self.fetcher.advance(io);
        if let Stage::Ends { starts, found_starts, ends, found_ends } = &mut self.stage {
            if found_starts.is_none() {
                *found_starts = starts.advance(io, &mut self.fetcher.library);
            }
            if found_ends.is_none() {
                *found_ends = ends.advance(io, &mut self.fetcher.library);
            }
            if found_starts.is_none() || found_ends.is_none() {
                return None;
            }
            let (starts, ends) = (found_starts.take()?, found_ends.take()?);
            let searched = self.book_ends(&starts, &ends);
            let from = searched.iter().map(|(target, offset)| Start {
                partition: topic_partition(target),
                offset: offset.0,
                epoch: None,
            });
            self.fetcher.assign(from);
            self.stage = Stage::Strays { searched, until: io.now + LOOK_MAX_MS };
            self.fetcher.advance(io);
        }
        let Stage::Strays { searched, until } = &mut self.stage else { return None };
        while let Some(read) = self.fetcher.poll(1) {
            let (place, stray) = match read {
                Read::Records(place, records) => (place, records.first().map(|it| TargetOffset(it.offset))),
                Read::End(place, _) => (place, None),
                // Not to be read for now: the time-out tells.
                Read::OutOfRange(_)
                | Read::Truncated(..)
                | Read::Unreadable(..)
                | Read::NotAuthorized(_)
                | Read::Gone(_) => {
                    continue;
                }
            };
            let target = TargetPartition { topic: place.topic.clone(), partition: place.partition };
            if searched.remove(&target).is_some() {
                self.fetcher.unassign(&place);
                if let Some(Ok(state)) = self.answers.get_mut(&target) {
                    state.stray = stray;
                }
            }
        }
        if searched.is_empty() {
            return Some(std::mem::take(&mut self.answers));
        }
        if !io.is_due(*until) {
            return None;
        }
        for place in std::mem::take(searched).into_keys() {
            let failure = Failure::Retry(format!("{place} could not be read in time"));
            self.answers.insert(place, Err(failure));
        }
        Some(std::mem::take(&mut self.answers))
    }

    /// Books both ends of each partition; where strays are to be looked for.
    fn book_ends(&mut self, starts: &Found, ends: &Found) -> BTreeMap<TargetPartition, TargetOffset> {
        let mut searched = BTreeMap::new();
        for (target, from) in &self.targets {
            let place = topic_partition(target);
            let state = found(starts, &place).and_then(|log_start| {
                let high_watermark = found(ends, &place)?;
                Ok(TargetState { log_start, high_watermark, stray: None })
            });
            if let (Ok(state), PrepareFrom::Offset(offset)) = (&state, from) {
                let offset = (*offset).max(state.log_start);
                if offset < state.high_watermark {
                    searched.insert(target.clone(), offset);
                }
            }
            self.answers.insert(target.clone(), state);
        }
        searched
    }
}

fn found(found: &Found, place: &TopicPartition) -> Result<TargetOffset, Failure> {
    match found.get(place) {
        Some(Ok(told)) => Ok(TargetOffset(told.offset)),
        Some(Err(NoOffset::Error(ErrorCode::TopicAuthorizationFailed))) => {
            Err(Failure::Fatal(Trouble::NotAuthorized {
                resource: format!("Topic {}", place.topic),
                operation: "Read".into(),
            }))
        }
        Some(Err(_)) | None => Err(Failure::Retry(format!("no offsets of {place}"))),
    }
}

fn topic_partition(place: &TargetPartition) -> TopicPartition {
    TopicPartition { topic: place.topic.clone(), partition: place.partition }
}
