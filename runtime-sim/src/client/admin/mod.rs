//! Questions to a cluster and orders to it: three workers a cluster, so that whatever takes long holds up neither a
//! description of named topics nor offsets of the source.

mod answers;
mod open_transactions;

use super::io::Io;
use super::library::{Library, Place};
use super::offsets::{Found, Offsets};
use super::trouble::unreachable;
use super::wire::Pending;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_model::{Millis, Request, Response};
use kafka_types::{SourcePartition, TargetPartition, TopicName, TopicPartition};
use open_transactions::FindingOpen;
use std::collections::{BTreeMap, VecDeque};
use verbatim_core::command::{NewTopic, Place as At, Topics};
use verbatim_core::event::{Ask, Event};
use verbatim_core::failure::{Side, Trouble};

/// How long one question may take.
const REQUEST_MS: Millis = 10_000;
const RETRY_MS: Millis = 100;

#[derive(Clone, Debug)]
pub(super) enum Question {
    Describe(Topics),
    Configs(Vec<TopicName>),
    Create(Vec<NewTopic>),
    Grow(BTreeMap<TopicName, u32>),
    SourceOffsets(Vec<SourcePartition>, At),
    TargetEnds(Vec<TargetPartition>),
    OpenTransactions(Vec<SourcePartition>),
}

/// What a worker is at.
enum Work {
    /// One request, sent again until it is answered or time is over.
    Asking {
        question: Question,
        request: Request,
        pending: Option<Pending>,
        may_ask_at: Millis,
        until: Millis,
    },
    /// Whether a topic that would not grow has that many partitions already.
    Growing {
        wanted: BTreeMap<TopicName, u32>,
        refused: BTreeMap<TopicName, Trouble>,
        pending: Pending,
    },
    SourceOffsets {
        at: At,
        offsets: Offsets,
        /// Of a place in time: where partitions ended before it was looked for.
        ends: Option<Found>,
    },
    TargetEnds {
        stable: Option<Found>,
        offsets: Offsets,
    },
    OpenTransactions(Box<FindingOpen>),
}

#[derive(Default)]
struct Worker {
    questions: VecDeque<(Ask, Question)>,
    work: Option<(Ask, Work)>,
}

pub(super) struct Admin {
    side: Side,
    library: Library,
    describe: Worker,
    offsets: Worker,
    rest: Worker,
    pub(super) events: VecDeque<Event>,
}

impl Admin {
    pub(super) fn new(io: &mut Io, place: &Place) -> Admin {
        Admin {
            side: place.side,
            library: Library::new(io, place, REQUEST_MS),
            describe: Worker::default(),
            offsets: Worker::default(),
            rest: Worker::default(),
            events: VecDeque::new(),
        }
    }

    pub(super) fn ask(&mut self, ask: Ask, question: Question) {
        let worker = match &question {
            Question::Describe(Topics::Named(_)) => &mut self.describe,
            Question::SourceOffsets(..) => &mut self.offsets,
            Question::Describe(Topics::All)
            | Question::Configs(_)
            | Question::Create(_)
            | Question::Grow(_)
            | Question::TargetEnds(_)
            | Question::OpenTransactions(_) => &mut self.rest,
        };
        worker.questions.push_back((ask, question));
    }

    pub(super) fn advance(&mut self, io: &mut Io) {
        self.library.advance(io);
        for worker in [&mut self.describe, &mut self.offsets, &mut self.rest] {
            loop {
                if worker.work.is_none()
                    && let Some((ask, question)) = worker.questions.pop_front()
                {
                    worker.work = Some((ask, begin(io, &mut self.library, question)));
                }
                let Some((ask, work)) = worker.work.take() else { break };
                match go_on(io, &mut self.library, self.side, ask, work) {
                    Ok(event) => self.events.push_back(event),
                    Err(work) => {
                        worker.work = Some((ask, work));
                        break;
                    }
                }
            }
        }
    }
}

fn begin(io: &mut Io, library: &mut Library, question: Question) -> Work {
    let until = io.now + REQUEST_MS;
    match question {
        Question::Describe(_) | Question::Configs(_) | Question::Create(_) | Question::Grow(_) => {
            let request = answers::request(&question);
            Work::Asking { question, request, pending: None, may_ask_at: io.now, until }
        }
        Question::SourceOffsets(partitions, at) => {
            let (spec, isolation) = match at {
                At::Earliest => (OffsetSpec::Earliest, IsolationLevel::ReadUncommitted),
                At::LastStable => (OffsetSpec::Latest, IsolationLevel::ReadCommitted),
                At::HighWatermark => (OffsetSpec::Latest, IsolationLevel::ReadUncommitted),
                // Asked for first: what comes between the two questions may be young enough.
                At::Time(_) => (OffsetSpec::Latest, IsolationLevel::ReadCommitted),
            };
            let places = partitions.iter().map(answers::of_source);
            Work::SourceOffsets {
                at,
                offsets: Offsets::ask(library, places, spec, isolation, until),
                ends: None,
            }
        }
        Question::TargetEnds(partitions) => {
            let places = partitions.iter().map(answers::of_target);
            let isolation = IsolationLevel::ReadCommitted;
            let offsets = Offsets::ask(library, places, OffsetSpec::Latest, isolation, until);
            Work::TargetEnds { stable: None, offsets }
        }
        Question::OpenTransactions(partitions) => {
            Work::OpenTransactions(Box::new(FindingOpen::begin(io, library, &partitions, until)))
        }
    }
}

/// The answer, or the work as it now stands.
#[expect(clippy::result_large_err, reason = "not an error: the work that is left")]
fn go_on(io: &mut Io, library: &mut Library, side: Side, ask: Ask, work: Work) -> Result<Event, Work> {
    match work {
        Work::Asking { question, request, pending, may_ask_at, until } => {
            asking(io, library, side, ask, question, request, pending, may_ask_at, until)
        }
        Work::Growing { wanted, refused, pending } => match io.wire.take(pending) {
            None => Err(Work::Growing { wanted, refused, pending }),
            Some(answer) => Ok(answers::grown(ask, &wanted, refused, answer)),
        },
        Work::SourceOffsets { at, mut offsets, ends } => {
            let Some(found) = offsets.advance(io, library) else {
                return Err(Work::SourceOffsets { at, offsets, ends });
            };
            match (at, ends) {
                (At::Time(time), None) => {
                    let until = io.now + REQUEST_MS;
                    let (places, spec) = (found.keys().cloned().collect::<Vec<_>>(), OffsetSpec::At(time.0));
                    let mut offsets =
                        Offsets::ask(library, places, spec, IsolationLevel::ReadCommitted, until);
                    match offsets.advance(io, library) {
                        Some(by_time) => Ok(answers::source_offsets(ask, answers::or_ends(by_time, found))),
                        None => Err(Work::SourceOffsets { at, offsets, ends: Some(found) }),
                    }
                }
                (At::Time(_), Some(ends)) => Ok(answers::source_offsets(ask, answers::or_ends(found, ends))),
                (At::Earliest | At::LastStable | At::HighWatermark, _) => {
                    Ok(answers::source_offsets(ask, found))
                }
            }
        }
        Work::TargetEnds { stable, mut offsets } => {
            let Some(found) = offsets.advance(io, library) else {
                return Err(Work::TargetEnds { stable, offsets });
            };
            match stable {
                Some(stable) => Ok(answers::target_ends(ask, stable, &found)),
                None => {
                    // In this order the last stable offset is never beyond the high watermark.
                    let places: Vec<TopicPartition> = found.keys().cloned().collect();
                    let until = io.now + REQUEST_MS;
                    let isolation = IsolationLevel::ReadUncommitted;
                    let mut offsets = Offsets::ask(library, places, OffsetSpec::Latest, isolation, until);
                    match offsets.advance(io, library) {
                        Some(high) => Ok(answers::target_ends(ask, found, &high)),
                        None => Err(Work::TargetEnds { stable: Some(found), offsets }),
                    }
                }
            }
        }
        Work::OpenTransactions(mut finding) => match finding.advance(io, library) {
            Some(answer) => Ok(Event::OpenTransactions { ask, answer }),
            None => Err(Work::OpenTransactions(finding)),
        },
    }
}

#[expect(
    clippy::too_many_arguments,
    clippy::result_large_err,
    reason = "the fields of one kind of work; what is left of it is no error"
)]
fn asking(
    io: &mut Io,
    library: &mut Library,
    side: Side,
    ask: Ask,
    question: Question,
    request: Request,
    mut pending: Option<Pending>,
    mut may_ask_at: Millis,
    until: Millis,
) -> Result<Event, Work> {
    if let Some(sent) = pending {
        match io.wire.take(sent) {
            None => {}
            Some(Ok(response)) => return answered(io, library, side, ask, question, response),
            Some(Err(_)) => {
                pending = None;
                may_ask_at = io.now + RETRY_MS;
            }
        }
    }
    if io.is_due(until) {
        if let Some(pending) = pending {
            io.wire.forget(pending);
        }
        return Ok(answers::failed(side, ask, &question, &unreachable()));
    }
    if pending.is_none() && io.is_due(may_ask_at) {
        let broker = library.any_broker(io);
        pending = Some(library.send_within(io, broker, request.clone(), (until - io.now).max(1)));
    }
    Err(Work::Asking { question, request, pending, may_ask_at, until })
}

#[expect(clippy::result_large_err, reason = "not an error: the work that is left")]
fn answered(
    io: &mut Io,
    library: &mut Library,
    side: Side,
    ask: Ask,
    question: Question,
    response: Response,
) -> Result<Event, Work> {
    if let (Question::Grow(wanted), Response::CreatePartitions(response)) = (&question, &response) {
        let refused = answers::not_grown(response);
        if refused.is_empty() {
            return Ok(answers::all_grown(ask, wanted));
        }
        // Also the answer to a topic that has that many already; only a look tells.
        let names = Topics::Named(refused.keys().cloned().collect());
        let broker = library.any_broker(io);
        let pending = library.send_within(io, broker, answers::metadata(&names), REQUEST_MS);
        return Err(Work::Growing { wanted: wanted.clone(), refused, pending });
    }
    Ok(answers::answer(side, ask, &question, response))
}
