//! Carries out the commands that are questions to a cluster or orders to it, on threads of their own: three
//! a cluster, so that a cluster that is gone holds up nothing of the other, and whatever takes long holds up
//! neither a description of named topics, which every commit waits for (H6), nor offsets of the source, which some do.

use crate::cluster::{Cluster, Place};
use crate::ffi::admin::{Isolation, Spec, ToldOffset};
use crate::open_transactions;
use crate::settings::Settings;
use crate::threads::Alarm;
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use rdkafka::error::KafkaError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::command::{NewTopic, Place as At, Topics};
use verbatim_core::event::{Ask, Event, TargetEnd};
use verbatim_core::failure::{Side, Trouble};

/// How often librdkafka's own reports are let through while nothing is asked.
const IDLE: Duration = Duration::from_millis(250);

/// A question or an order, to be answered under its number.
pub(crate) enum Question {
    Describe(Topics),
    Configs(Vec<TopicName>),
    Create(Vec<NewTopic>),
    Grow(BTreeMap<TopicName, u32>),
    SourceOffsets(Vec<SourcePartition>, At),
    TargetEnds(Vec<TargetPartition>),
    OpenTransactions(Vec<SourcePartition>),
}

/// The threads of one cluster. They end when this is dropped.
pub(crate) struct Admin {
    describe: Sender<(Ask, Question)>,
    offsets: Sender<(Ask, Question)>,
    rest: Sender<(Ask, Question)>,
}

impl Admin {
    pub(crate) fn start(
        settings: &Arc<Settings>,
        side: Side,
        events: &UnboundedSender<Event>,
        alarm: &Alarm,
    ) -> Result<Admin, KafkaError> {
        let cluster = Arc::new(Cluster::connect(settings, side, Some(events.clone()))?);
        let start = |name: &str| {
            let (sender, questions) = channel();
            let worker = Worker {
                side,
                cluster: Arc::clone(&cluster),
                settings: Arc::clone(settings),
                events: events.clone(),
            };
            alarm.start(&format!("{side}-{name}"), move || worker.run(&questions));
            sender
        };
        Ok(Admin { describe: start("describe"), offsets: start("offsets"), rest: start("admin") })
    }

    pub(crate) fn ask(&self, ask: Ask, question: Question) {
        let queue = match &question {
            Question::Describe(Topics::Named(_)) => &self.describe,
            Question::SourceOffsets(..) => &self.offsets,
            Question::Describe(Topics::All)
            | Question::Configs(_)
            | Question::Create(_)
            | Question::Grow(_)
            | Question::TargetEnds(_)
            | Question::OpenTransactions(_) => &self.rest,
        };
        if queue.send((ask, question)).is_err() {
            tracing::error!("a question is lost: its thread has ended");
        }
    }
}

struct Worker {
    side: Side,
    cluster: Arc<Cluster>,
    settings: Arc<Settings>,
    events: UnboundedSender<Event>,
}

impl Worker {
    fn run(&self, questions: &Receiver<(Ask, Question)>) {
        loop {
            match questions.recv_timeout(IDLE) {
                Ok((ask, question)) => {
                    let answer = self.answer(ask, question);
                    if self.events.send(answer).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.cluster.serve();
        }
    }

    fn answer(&self, ask: Ask, question: Question) -> Event {
        let (side, cluster) = (self.side, &self.cluster);
        match question {
            Question::Describe(topics) => Event::Described { side, ask, answer: cluster.listing(&topics) },
            Question::Configs(topics) => Event::Configs { side, ask, answer: cluster.configs(&topics) },
            Question::Create(topics) => Event::TopicsCreated { ask, answer: cluster.create(&topics) },
            Question::Grow(topics) => Event::TopicsGrown { ask, answer: cluster.grow(&topics) },
            Question::SourceOffsets(partitions, at) => {
                Event::SourceOffsets { ask, answer: source_offsets(cluster, &partitions, at) }
            }
            Question::TargetEnds(partitions) => {
                Event::TargetEnds { ask, answer: target_ends(cluster, &partitions) }
            }
            Question::OpenTransactions(partitions) => {
                let answer = open_transactions::find(cluster, &self.settings, &partitions);
                Event::OpenTransactions { ask, answer }
            }
        }
    }
}

/// The offsets of a place in time. Where no record is young enough, the last stable offset.
fn source_offsets(
    cluster: &Cluster,
    partitions: &[SourcePartition],
    at: At,
) -> BTreeMap<SourcePartition, Result<OffsetAndEpoch, Trouble>> {
    let places: BTreeSet<Place> =
        partitions.iter().map(|place| (place.topic.clone(), place.partition)).collect();
    let (spec, isolation) = match at {
        At::Earliest => (Spec::Earliest, Isolation::ReadUncommitted),
        At::LastStable => (Spec::Latest, Isolation::ReadCommitted),
        At::HighWatermark => (Spec::Latest, Isolation::ReadUncommitted),
        At::Time(time) => (Spec::Time(time.0), Isolation::ReadCommitted),
    };
    // Asked for first: what comes between the two questions may be young enough.
    let mut ends = match at {
        At::Time(_) => cluster.offsets(&places, Spec::Latest, Isolation::ReadCommitted),
        At::Earliest | At::LastStable | At::HighWatermark => BTreeMap::new(),
    };
    let mut offsets = cluster.offsets(&places, spec, isolation);
    for (place, offset) in offsets.iter_mut().filter(|(_, offset)| **offset == Ok(None)) {
        *offset = ends.remove(place).unwrap_or(Ok(None));
    }
    offsets
        .into_iter()
        .map(|((topic, partition), told)| {
            let place = |it: ToldOffset| OffsetAndEpoch { offset: SourceOffset(it.offset), epoch: it.epoch };
            (SourcePartition { topic, partition }, known(told).map(place))
        })
        .collect()
}

pub(crate) fn target_ends(
    cluster: &Cluster,
    partitions: &[TargetPartition],
) -> BTreeMap<TargetPartition, Result<TargetEnd, Trouble>> {
    let places: BTreeSet<Place> =
        partitions.iter().map(|place| (place.topic.clone(), place.partition)).collect();
    // In this order the last stable offset is never beyond the high watermark.
    let stable = cluster.offsets(&places, Spec::Latest, Isolation::ReadCommitted);
    let mut high = cluster.offsets(&places, Spec::Latest, Isolation::ReadUncommitted);
    stable
        .into_iter()
        .map(|(place, stable)| {
            let high = high.remove(&place).unwrap_or(Ok(None));
            let end = known(stable).and_then(|stable| {
                let high_watermark = TargetOffset(known(high)?.offset);
                Ok(TargetEnd { high_watermark, last_stable: TargetOffset(stable.offset) })
            });
            (TargetPartition { topic: place.0, partition: place.1 }, end)
        })
        .collect()
}

fn known(offset: Result<Option<ToldOffset>, Trouble>) -> Result<ToldOffset, Trouble> {
    offset.and_then(|offset| offset.ok_or_else(|| Trouble::Passing("the broker named no offset".into())))
}
