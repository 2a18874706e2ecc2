//! A consumer of partitions that it is assigned: fetches ahead, reads committed records only, and notices when
//! its position is no longer in the log.
//!
//! As in librdkafka, there is one fetch on the way to each broker, for all partitions that it leads; what comes
//! is queued until it is polled for, and a queue that is full stops fetching.

mod committed;
mod partition;

pub(super) use committed::ReadRecord;

use super::io::Io;
use super::library::Library;
use super::wire::Pending;
use committed::Committed;
use kafka_model::api::fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, IsolationLevel};
use kafka_model::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochPartition, OffsetForLeaderEpochRequest,
};
use kafka_model::{BrokerId, Millis, Response};
use kafka_types::{ErrorCode, LeaderEpoch, TopicPartition};
use partition::Fetching;
use std::collections::{BTreeMap, VecDeque};

/// Between two questions about topics that lack a partition which is wanted (rd_kafka_topic_scan_all).
const DESIRED_MS: Millis = 10_000;
/// `fetch.wait.max.ms`
const WAIT_MAX_MS: Millis = 500;
/// `fetch.error.backoff.ms`
const BACKOFF_MS: Millis = 500;
/// How long a topic must be unknown before it counts as gone (`topic.metadata.propagation.max.ms`).
const GONE_AFTER_MS: Millis = 30_000;

/// What a poll brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Records(TopicPartition, Vec<ReadRecord>),
    /// No record lies between what came before and this offset, where the reader's view ends for now.
    End(TopicPartition, i64),
    /// OFFSET_OUT_OF_RANGE. Nothing more of the partition until it is assigned anew; so also below.
    OutOfRange(TopicPartition),
    Truncated(TopicPartition, Option<i64>),
    /// A batch that begins there cannot be made out.
    Unreadable(TopicPartition, i64),
    NotAuthorized(TopicPartition),
    Gone(TopicPartition),
}

/// Where to begin; see [`Fetcher::assign`].
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) partition: TopicPartition,
    pub(super) offset: i64,
    /// With it the position is checked for truncation before anything is fetched.
    pub(super) epoch: Option<LeaderEpoch>,
}

struct OnTheWay {
    pending: Pending,
    /// With the version and position that they were asked under.
    partitions: Vec<(TopicPartition, u64, i64)>,
}

pub(super) struct Fetcher {
    pub(super) library: Library,
    partitions: BTreeMap<TopicPartition, Fetching>,
    on_the_way: BTreeMap<BrokerId, OnTheWay>,
    queue: VecDeque<(u64, Read)>,
    /// Records in one partition's queue beyond which it is not fetched.
    queue_max: usize,
    versions: u64,
    /// When topics that lack an assigned partition may be asked for again.
    may_desire_at: Millis,
    isolation: IsolationLevel,
}

impl Fetcher {
    pub(super) fn new(library: Library, queue_max: usize) -> Fetcher {
        Fetcher {
            library,
            partitions: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            queue: VecDeque::new(),
            queue_max,
            versions: 0,
            may_desire_at: 0,
            isolation: IsolationLevel::ReadCommitted,
        }
    }

    /// For mutants: with what open and aborted transactions hold, if so.
    pub(super) fn uncommitted_if(mut self, is_uncommitted: bool) -> Fetcher {
        if is_uncommitted {
            self.isolation = IsolationLevel::ReadUncommitted;
        }
        self
    }

    /// Begins to read these partitions; those that are being read begin anew.
    pub(super) fn assign(&mut self, starts: impl IntoIterator<Item = Start>) {
        for Start { partition, offset, epoch } in starts {
            self.versions += 1;
            self.library.metadata.want(&partition.topic);
            self.partitions.insert(partition, Fetching::new(self.versions, offset, epoch));
        }
    }

    pub(super) fn unassign(&mut self, partition: &TopicPartition) {
        self.partitions.remove(partition);
    }

    pub(super) fn unassign_all(&mut self) {
        self.partitions.clear();
        self.queue.clear();
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.library.close(io);
    }

    /// The next thing read, with at most so many records. Records stay queued for the next poll otherwise.
    pub(super) fn poll(&mut self, records_max: usize) -> Option<Read> {
        loop {
            let (version, read) = self.queue.front_mut()?;
            let version = *version;
            let partition = read.partition();
            let Some(fetching) = self.partitions.get_mut(partition).filter(|it| it.version == version) else {
                self.queue.pop_front();
                continue;
            };
            if let Read::Records(partition, records) = read
                && records_max < records.len()
            {
                let rest = records.split_off(records_max);
                let taken = std::mem::replace(records, rest);
                fetching.queued -= taken.len();
                return Some(Read::Records(partition.clone(), taken));
            }
            let (_, read) = self.queue.pop_front()?;
            if let Read::Records(_, records) = &read {
                fetching.queued -= records.len();
            }
            return Some(read);
        }
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn advance(&mut self, io: &mut Io) {
        self.library.advance(io);
        self.take_fetched(io);
        if self.partitions.is_empty() {
            return;
        }
        self.give_up_on_gone(io);
        self.desire_unknown(io);
        self.validate(io);
        self.fetch(io);
        // What has come into doubt meanwhile is asked about, or the client would wait for something else to wake it.
        self.library.advance(io);
    }

    fn take_fetched(&mut self, io: &mut Io) {
        let brokers: Vec<BrokerId> = self.on_the_way.keys().copied().collect();
        for broker in brokers {
            let Some(answer) = io.wire.take(self.on_the_way[&broker].pending) else { continue };
            let Some(OnTheWay { partitions, .. }) = self.on_the_way.remove(&broker) else { continue };
            match answer {
                Ok(Response::Fetch(response)) => {
                    for (answer, (partition, version, from)) in
                        response.partitions.into_iter().zip(partitions)
                    {
                        self.fetched(io, &partition, version, from, &answer);
                    }
                }
                Ok(_) | Err(_) => {
                    for (partition, version, _) in partitions {
                        self.library.metadata.doubt(&partition.topic);
                        self.back_off(io.now, &partition, version);
                    }
                }
            }
        }
    }

    fn back_off(&mut self, now: Millis, partition: &TopicPartition, version: u64) {
        if let Some(fetching) = self.partitions.get_mut(partition).filter(|it| it.version == version) {
            fetching.may_fetch_at = now + BACKOFF_MS;
        }
    }

    fn fetched(
        &mut self,
        io: &mut Io,
        partition: &TopicPartition,
        version: u64,
        from: i64,
        response: &FetchPartitionResponse,
    ) {
        let Some(fetching) = self.partitions.get_mut(partition) else { return };
        // Asked for before a rewind, or before another answer moved on.
        if fetching.version != version || fetching.next != from || fetching.is_stopped {
            return;
        }
        match response.error_code {
            ErrorCode::None => {}
            ErrorCode::OffsetOutOfRange => {
                fetching.is_stopped = true;
                self.queue.push_back((version, Read::OutOfRange(partition.clone())));
                return;
            }
            ErrorCode::TopicAuthorizationFailed => {
                fetching.is_stopped = true;
                self.queue.push_back((version, Read::NotAuthorized(partition.clone())));
                return;
            }
            // All others pass, or show in the metadata if they do not.
            _ => {
                fetching.may_fetch_at = io.now + BACKOFF_MS;
                self.library.metadata.doubt(&partition.topic);
                return;
            }
        }
        let shows_aborted = io.mutants.aborted_records_are_read;
        let Committed { records, next, damaged } = committed::committed(response, from, shows_aborted);
        fetching.next = next;
        // Of the last batch, be it markers or aborted: the epoch belongs to the position, not to a record.
        let last = response.records.last().and_then(|batch| batch.leader_epoch);
        fetching.epoch = last.or(fetching.epoch);
        if !records.is_empty() {
            fetching.queued += records.len();
            self.queue.push_back((version, Read::Records(partition.clone(), records)));
        }
        if let Some(offset) = damaged {
            fetching.is_stopped = true;
            self.queue.push_back((version, Read::Unreadable(partition.clone(), offset)));
            return;
        }
        if response.last_stable_offset <= next && fetching.end_reported != Some(next) {
            fetching.end_reported = Some(next);
            self.queue.push_back((version, Read::End(partition.clone(), next)));
        }
    }

    fn give_up_on_gone(&mut self, io: &mut Io) {
        for (partition, fetching) in self.partitions.iter_mut().filter(|(_, it)| !it.is_stopped) {
            let Some((error, since)) = self.library.metadata.error(&partition.topic) else { continue };
            let read = match error {
                ErrorCode::TopicAuthorizationFailed => Read::NotAuthorized(partition.clone()),
                ErrorCode::UnknownTopicOrPartition if io.is_due(since + GONE_AFTER_MS) => {
                    Read::Gone(partition.clone())
                }
                _ => continue,
            };
            fetching.is_stopped = true;
            self.queue.push_back((fetching.version, read));
        }
    }

    /// An assigned partition that its topic does not have yet, as far as is known: one that was added.
    fn desire_unknown(&mut self, io: &mut Io) {
        let metadata = &mut self.library.metadata;
        let is_unknown = |partition: &&TopicPartition| {
            metadata.partitions(&partition.topic) != 0 && metadata.leader(partition).is_none()
        };
        let topics: Vec<_> =
            self.partitions.keys().filter(is_unknown).map(|partition| partition.topic.clone()).collect();
        if topics.is_empty() || !io.is_due(self.may_desire_at) {
            return;
        }
        self.may_desire_at = io.now + DESIRED_MS;
        topics.iter().for_each(|topic| metadata.doubt(topic));
    }

    /// A position that came with its epoch is checked against each leader anew (KIP-320).
    fn validate(&mut self, io: &mut Io) {
        for (partition, fetching) in self.partitions.iter_mut().filter(|(_, it)| !it.is_stopped) {
            if let Some((pending, under)) = fetching.validating {
                let Some(answer) = io.wire.take(pending) else { continue };
                fetching.validating = None;
                let told = match answer {
                    Ok(Response::OffsetForLeaderEpoch(response)) => response.partitions.into_iter().next(),
                    Ok(_) | Err(_) => None,
                };
                match told.map(|told| verdict(&told, fetching.next)) {
                    Some(Verdict::Sound) => fetching.validated_under = Some(under),
                    Some(Verdict::Truncated(end)) => {
                        fetching.is_stopped = true;
                        let read = Read::Truncated(partition.clone(), end);
                        self.queue.push_back((fetching.version, read));
                        continue;
                    }
                    Some(Verdict::Unclear) | None => {
                        fetching.may_fetch_at = io.now + BACKOFF_MS;
                        self.library.metadata.doubt(&partition.topic);
                    }
                }
            }
            let Some(leader) = self.library.metadata.leader(partition) else { continue };
            let (Some(epoch), Some(broker)) = (fetching.epoch, leader.broker) else {
                // Nothing to go by: taken as it is.
                fetching.validated_under = fetching.validated_under.max(Some(leader.epoch));
                continue;
            };
            let is_checked = Some(leader.epoch) <= fetching.validated_under;
            if is_checked || fetching.validating.is_some() || !io.is_due(fetching.may_fetch_at) {
                continue;
            }
            let asked = OffsetForLeaderEpochPartition {
                topic_partition: partition.clone(),
                current_leader_epoch: Some(leader.epoch),
                leader_epoch: epoch,
            };
            let request = OffsetForLeaderEpochRequest { partitions: vec![asked] };
            fetching.validating = Some((self.library.send(io, broker, request), leader.epoch));
        }
    }

    fn fetch(&mut self, io: &mut Io) {
        let mut by_leader: BTreeMap<BrokerId, Vec<(TopicPartition, u64, i64)>> = BTreeMap::new();
        for (partition, fetching) in &self.partitions {
            if fetching.is_stopped || fetching.validating.is_some() || self.queue_max <= fetching.queued {
                continue;
            }
            let Some(leader) = self.library.metadata.leader(partition) else { continue };
            let Some(broker) = leader.broker.filter(|_| Some(leader.epoch) <= fetching.validated_under)
            else {
                continue;
            };
            if self.on_the_way.contains_key(&broker) || !io.is_due(fetching.may_fetch_at) {
                continue;
            }
            by_leader.entry(broker).or_default().push((partition.clone(), fetching.version, fetching.next));
        }
        for (broker, mut partitions) in by_leader {
            if io.mutants.unseeded_order {
                partitions = super::unseeded::out_of_a_hash_map(partitions);
            }
            let asked = partitions.iter().map(|(partition, _, offset)| FetchPartition {
                topic_partition: partition.clone(),
                topic_id: None,
                current_leader_epoch: self.library.metadata.leader(partition).map(|leader| leader.epoch),
                fetch_offset: *offset,
                last_fetched_epoch: None,
                partition_max_bytes: 1 << 20,
            });
            let request = FetchRequest {
                max_wait_ms: WAIT_MAX_MS,
                min_bytes: 1,
                max_bytes: 8 << 20,
                isolation_level: self.isolation,
                partitions: asked.collect(),
            };
            let pending = self.library.send(io, broker, request);
            self.on_the_way.insert(broker, OnTheWay { pending, partitions });
        }
    }
}

enum Verdict {
    Sound,
    Truncated(Option<i64>),
    Unclear,
}

fn verdict(told: &EpochEndOffset, position: i64) -> Verdict {
    match (told.error_code, told.leader_epoch) {
        (ErrorCode::None, None) => Verdict::Truncated(None),
        (ErrorCode::None, Some(_)) if told.end_offset < position => Verdict::Truncated(Some(told.end_offset)),
        (ErrorCode::None, Some(_)) => Verdict::Sound,
        _ => Verdict::Unclear,
    }
}

impl Read {
    fn partition(&self) -> &TopicPartition {
        match self {
            Read::Records(partition, _)
            | Read::End(partition, _)
            | Read::OutOfRange(partition)
            | Read::Truncated(partition, _)
            | Read::Unreadable(partition, _)
            | Read::NotAuthorized(partition)
            | Read::Gone(partition) => partition,
        }
    }
}
