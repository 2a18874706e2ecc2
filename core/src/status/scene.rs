use super::row::age;
use super::{Extent, Extents, Row, State};
use crate::config::Flow;
use crate::event::{Listing, OpenTransaction};
use crate::lane::lane_of;
use crate::ledger::FlowLedger;
use crate::time::Timestamp;
use kafka_types::{Partition, SourceOffset, SourcePartition};
use std::collections::{BTreeMap, BTreeSet};

/// A partition that has something to copy and settles nothing for this long is remarked upon.
const SILENCE_MIN_MS: u64 = 60_000;

/// Everything that rows are made from, as of one moment.
pub struct Scene<'a> {
    pub flow: &'a Flow,
    pub source: Listing,
    pub ledger: FlowLedger,
    /// Of the partitions that the source has.
    pub extents: Extents<SourcePartition, SourceOffset>,
    /// Who holds partitions back, where that is so and could be asked.
    pub open: BTreeMap<SourcePartition, Vec<OpenTransaction>>,
    pub now: Timestamp,
}

impl Scene<'_> {
    fn position(&self, partition: &SourcePartition) -> Option<SourceOffset> {
        let start = || Some(self.ledger.topic(&partition.topic)?.start(partition.partition).offset);
        self.ledger.entry(partition).map(|entry| entry.next).or_else(start)
    }

    /// Whether the ledger speaks of a topic that was there before the present one.
    fn is_another_topic(&self, partition: &SourcePartition) -> bool {
        let of_entry = self.ledger.entry(partition).map(|entry| entry.source_id);
        let known = of_entry.or_else(|| self.ledger.topic(&partition.topic).map(|record| record.source_id));
        let listed = self.source.topics.get(&partition.topic).map(|info| info.id);
        known.zip(listed).is_some_and(|(known, listed)| known != listed)
    }

    fn extent(&self, partition: &SourcePartition) -> Option<&Extent<SourceOffset>> {
        self.extents.get(partition)?.as_ref().ok()
    }

    /// What the rules take at the source, and what the ledger knows, in order.
    pub fn partitions(flow: &Flow, source: &Listing, ledger: &FlowLedger) -> BTreeSet<SourcePartition> {
        let taken = source.topics.iter().filter(|(topic, info)| !info.internal && flow.filter.takes(topic));
        let taken = taken.flat_map(|(topic, info)| {
            Partition::all(info.partitions)
                .map(|partition| SourcePartition { topic: topic.clone(), partition })
        });
        let known = ledger.entries().map(|(partition, _)| partition.clone());
        taken.chain(known).collect()
    }

    /// Whether all that is left to copy lies behind an open transaction.
    pub fn is_held_back(&self, partition: &SourcePartition) -> bool {
        let Some((position, extent)) = self.position(partition).zip(self.extent(partition)) else {
            return false;
        };
        extent.last_stable <= position && position < extent.high_watermark
    }

    /// Where the next record to copy is; nothing where nobody can tell.
    pub fn unread(&self, partition: &SourcePartition) -> Option<Unread> {
        let (position, extent) = (self.position(partition)?, self.extent(partition)?);
        if self.is_another_topic(partition) {
            return None;
        }
        let from = position.max(extent.start);
        Some(if extent.high_watermark <= from {
            Unread::Nothing
        } else if extent.last_stable <= from {
            Unread::HeldBack
        } else {
            Unread::Between(from, extent.last_stable)
        })
    }

    /// How old the next record to copy is, as far as it is known: the timestamp of the first that was read where
    /// [`Scene::unread`] said, or none where nothing but markers and aborted records is there.
    pub fn lag_time(&self, partition: &SourcePartition, next: Option<i64>) -> Option<u64> {
        match next {
            Some(timestamp) if timestamp < 0 => None,
            Some(timestamp) => Some(u64::try_from(self.now.0.saturating_sub(timestamp)).unwrap_or(0)),
            None => {
                let extent = self.extent(partition)?;
                (extent.last_stable == extent.high_watermark).then_some(0)
            }
        }
    }

    pub fn row(&self, partition: SourcePartition, lag_time_ms: Option<u64>) -> Row {
        let lane = lane_of(&partition, self.flow.lanes);
        let (position, extent) = (self.position(&partition), self.extent(&partition));
        let is_another = self.is_another_topic(&partition);
        let (state, reason) = self.state(&partition, lag_time_ms);
        Row {
            flow: self.flow.name.to_string(),
            lane: lane.0,
            owner: self.ledger.claim(lane).map(|claim| claim.incarnation.clone()),
            position,
            source_end: extent.map(|extent| extent.high_watermark),
            lag: position
                .zip(extent)
                .filter(|_| !is_another)
                .map(|(position, extent)| extent.high_watermark.distance_from(position)),
            lag_time_ms,
            state,
            reason,
            topic: partition.topic,
            partition: partition.partition,
        }
    }

    fn state(&self, partition: &SourcePartition, lag_time_ms: Option<u64>) -> (State, Option<String>) {
        let entry = self.ledger.entry(partition);
        let record = self.ledger.topic(&partition.topic);
        let waiting = |reason: &str| (State::Waiting, Some(reason.to_string()));
        // Judged before any halt: leaving a topic out is how an operator ends one.
        if !self.flow.filter.takes(&partition.topic) {
            return waiting("topics.include and topics.exclude leave it out");
        }
        if let Some(halt) = entry.and_then(|entry| entry.halted.as_ref()) {
            return (State::Halted, Some(halt.to_string()));
        }
        if let Some(unfit) = record.and_then(|record| record.target.as_ref()?.unfit.as_ref()) {
            return (State::Halted, Some(format!("unfit: {unfit}")));
        }
        let extent = match self.extents.get(partition) {
            None => match self.source.trouble.get(&partition.topic) {
                Some(trouble) => return waiting(&format!("its topic cannot be described: {trouble}")),
                None => return waiting("the source has no such partition"),
            },
            Some(Err(trouble)) => return waiting(&format!("its ends cannot be told: {trouble}")),
            Some(Ok(extent)) => extent,
        };
        if self.is_another_topic(partition) {
            return waiting("the source topic was deleted and made again, and no instance has noticed yet");
        }
        match self.position(partition) {
            None => waiting("not in the ledger yet"),
            Some(_) if entry.is_none() && record.is_some_and(|record| record.target.is_none()) => {
                waiting("the target topic does not exist yet")
            }
            Some(position) => self.progress(partition, position, extent, lag_time_ms),
        }
    }

    fn progress(
        &self,
        partition: &SourcePartition,
        position: SourceOffset,
        extent: &Extent<SourceOffset>,
        lag_time_ms: Option<u64>,
    ) -> (State, Option<String>) {
        if position < extent.start {
            let lost = extent.start.distance_from(position);
            let offsets = if lost == 1 { "offset" } else { "offsets" };
            let reason = format!("the source deleted {lost} {offsets} from {position} on, uncopied");
            (State::Gap, Some(reason))
        } else if extent.high_watermark <= position {
            (State::CaughtUp, None)
        } else if extent.last_stable <= position {
            (
                State::Copying,
                Some(held_back_by(self.open.get(partition).map(Vec::as_slice).unwrap_or_default())),
            )
        } else {
            (State::Copying, self.silence(partition, lag_time_ms))
        }
    }

    /// What to think of a partition in which nothing moves although something could: the ledger names the last owner
    /// of a lane, whether or not it is still there.
    fn silence(&self, partition: &SourcePartition, lag_time_ms: Option<u64>) -> Option<String> {
        if lag_time_ms? < SILENCE_MIN_MS {
            return None;
        }
        let Some(entry) = self.ledger.entry(partition) else {
            return Some("nothing settled yet: is an instance running?".into());
        };
        let silent = u64::try_from(self.now.0.saturating_sub(entry.settled_at.0)).unwrap_or(0);
        (SILENCE_MIN_MS <= silent)
            .then(|| format!("nothing settled for {}: is an instance running?", age(silent)))
    }
}

/// What is left to copy of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    Nothing,
    /// What an open transaction holds back cannot be read, so it has no known age.
    HeldBack,
    /// The next record lies between these, if there is one.
    Between(SourceOffset, SourceOffset),
}

/// Names the producers of open transactions as far as they are known.
fn held_back_by(open: &[OpenTransaction]) -> String {
    let producer = |open: &OpenTransaction| {
        let id = open.producer_id?;
        Some(match open.first {
            Some(first) => format!("producer id {id} since offset {first}"),
            None => format!("producer id {id}"),
        })
    };
    let producers: Vec<String> = open.iter().filter_map(producer).collect();
    match producers.as_slice() {
        [] => "a source transaction is open".into(),
        known => format!("a source transaction is open: {}", known.join(", ")),
    }
}
