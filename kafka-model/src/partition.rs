//! A partition: the leader's log, how far each replica has copied it, and what waits for that.
//!
//! Modelled: in-sync replicas, the high watermark of leader and followers, leader epochs, leaders that move,
//! clean elections that lose nothing acknowledged by all in-sync replicas, unclean ones that truncate, and a
//! former leader whose records came to differ from those of its successor.
//! Not modelled: reassignment, followers with a log start of their own, reading from followers (KIP-392).
//!
//! Only one log is kept, the leader's. Every other replica is a length: its log equals the leader's up to
//! `end_offset`, and what it holds beyond that, left over from an earlier leader, is kept aside in `diverged`.

use crate::log::PartitionLog;
use crate::{BrokerId, Millis, Offset, RequestToken, TopicConfig, TransactionalId};
use kafka_types::{LeaderEpoch, RecordBatch};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replica {
    pub(crate) broker: BrokerId,
    /// Up to here its log is the leader's. Of no meaning for the log's owner.
    pub(crate) end_offset: Offset,
    /// What the last fetch told it, so it lags.
    pub(crate) high_watermark: Offset,
    pub(crate) diverged: Vec<Arc<RecordBatch>>,
    /// An administrator's fault: it does not fetch.
    pub(crate) is_stalled: bool,
    pub(crate) caught_up_at: Millis,
    /// The leader epoch of its last fetch. A leader knows what a follower has only from a fetch of its own
    /// epoch.
    fetched_epoch: Option<LeaderEpoch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partition {
    pub(crate) leader: Option<BrokerId>,
    pub(crate) leader_epoch: LeaderEpoch,
    /// Where the leader's epoch began in the log.
    pub(crate) epoch_start: Offset,
    /// Whose log `log` is: the leader or, while there is none, the last one.
    log_owner: BrokerId,
    /// In the order of their assignment; the first alive and in sync is preferred as leader.
    pub(crate) replicas: Vec<Replica>,
    pub(crate) in_sync: BTreeSet<BrokerId>,
    pub(crate) log: PartitionLog,
    pub(crate) high_watermark: Offset,
    pub(crate) waiting_requests: BTreeSet<RequestToken>,
    /// Markers in the log that are not replicated yet.
    pub(crate) waiting_markers: BTreeMap<TransactionalId, Offset>,
}

impl Partition {
    pub(crate) fn new(brokers: &[BrokerId], now: Millis) -> Partition {
        let replica = |&broker: &BrokerId| Replica {
            broker,
            end_offset: 0,
            high_watermark: 0,
            diverged: Vec::new(),
            is_stalled: false,
            caught_up_at: now,
            fetched_epoch: Some(LeaderEpoch(0)),
        };
        let mut log = PartitionLog::new();
        log.epochs.assign(LeaderEpoch(0), 0);
        Partition {
            leader: brokers.first().copied(),
            leader_epoch: LeaderEpoch(0),
            epoch_start: 0,
            log_owner: brokers.first().copied().unwrap_or(BrokerId(-1)),
            replicas: brokers.iter().map(replica).collect(),
            in_sync: brokers.iter().copied().collect(),
            log,
            high_watermark: 0,
            waiting_requests: BTreeSet::new(),
            waiting_markers: BTreeMap::new(),
        }
    }

    pub(crate) fn replica_mut(&mut self, broker: BrokerId) -> Option<&mut Replica> {
        self.replicas.iter_mut().find(|replica| replica.broker == broker)
    }

    pub(crate) fn end_offset_of(&self, replica: &Replica) -> Offset {
        if replica.broker == self.log_owner { self.log.end_offset() } else { replica.end_offset }
    }

    pub(crate) fn last_stable_offset(&self) -> Offset {
        self.log.last_stable_offset(self.high_watermark)
    }

    /// Where the high watermark will be when every in-sync replica has told the leader what it has.
    pub(crate) fn replicated_offset(&self) -> Offset {
        let in_sync = self.replicas.iter().filter(|replica| self.in_sync.contains(&replica.broker));
        in_sync.map(|replica| self.end_offset_of(replica)).min().unwrap_or(self.high_watermark)
    }

    pub(crate) fn is_under_min_in_sync(&self, config: &TopicConfig) -> bool {
        self.in_sync.len() < config.min_insync_replicas.min(self.replicas.len())
    }

    /// The leader's high watermark follows the slowest in-sync replica, but stands while too few are in sync
    /// (Partition.maybeIncrementLeaderHW). Answers whether it moved.
    pub(crate) fn advance_high_watermark(&mut self, config: &TopicConfig) -> bool {
        let is_unknown = |replica: &Replica| {
            Some(replica.broker) != self.leader
                && self.in_sync.contains(&replica.broker)
                && replica.fetched_epoch != Some(self.leader_epoch)
        };
        if self.leader.is_none() || self.is_under_min_in_sync(config) || self.replicas.iter().any(is_unknown)
        {
            return false;
        }
        let reached = self.replicated_offset();
        let moved = self.high_watermark < reached;
        if moved {
            self.high_watermark = reached;
            self.log.producers.high_watermark_moved(reached);
        }
        moved
    }

    /// One round of fetches by the followers that can. Answers whether the high watermark moved.
    pub(crate) fn replicate(
        &mut self,
        now: Millis,
        is_alive: impl Fn(BrokerId) -> bool,
        config: &TopicConfig,
    ) -> bool {
        let Some(leader) = self.leader.filter(|leader| is_alive(*leader)) else { return false };
        let (end_offset, high_watermark) = (self.log.end_offset(), self.high_watermark);
        for replica in &mut self.replicas {
            if replica.broker == leader || replica.is_stalled || !is_alive(replica.broker) {
                continue;
            }
            replica.diverged.clear();
            replica.end_offset = end_offset;
            replica.high_watermark = high_watermark;
            replica.caught_up_at = now;
            replica.fetched_epoch = Some(self.leader_epoch);
            self.in_sync.insert(replica.broker);
        }
        self.advance_high_watermark(config)
    }

    /// Whether a further round of fetches would change anything.
    pub(crate) fn has_lagging_follower(&self, is_alive: impl Fn(BrokerId) -> bool) -> bool {
        self.leader.is_some_and(&is_alive)
            && self.replicas.iter().any(|replica| {
                Some(replica.broker) != self.leader
                    && !replica.is_stalled
                    && is_alive(replica.broker)
                    && (replica.end_offset < self.log.end_offset()
                        || replica.high_watermark < self.high_watermark
                        || !replica.diverged.is_empty()
                        || replica.fetched_epoch != Some(self.leader_epoch)
                        || !self.in_sync.contains(&replica.broker))
            })
    }

    /// Followers that have been behind since before `since` leave the in-sync replicas. Only a living leader
    /// sees to that.
    pub(crate) fn drop_laggards(&mut self, since: Millis, is_alive: impl Fn(BrokerId) -> bool) {
        if !self.leader.is_some_and(is_alive) {
            return;
        }
        for replica in &self.replicas {
            let is_behind = replica.end_offset < self.log.end_offset() && replica.caught_up_at <= since;
            if is_behind && Some(replica.broker) != self.leader {
                self.in_sync.remove(&replica.broker);
            }
        }
    }

    /// The last in-sync replica stays in the set even when it is gone: only it may lead cleanly.
    pub(crate) fn leave_in_sync(&mut self, broker: BrokerId) {
        if 1 < self.in_sync.len() {
            self.in_sync.remove(&broker);
        }
    }

    /// Makes `leader` the leader, with what it has as the log. Answers from where on the log is another one, if it is.
    pub(crate) fn elect(&mut self, leader: BrokerId, config: &TopicConfig) -> Option<Offset> {
        let cut = if leader == self.log_owner { None } else { self.hand_log_to(leader, config) };
        if !self.in_sync.contains(&leader) {
            self.in_sync = BTreeSet::from([leader]);
        }
        self.leader = Some(leader);
        self.leader_epoch = LeaderEpoch(self.leader_epoch.0 + 1);
        self.epoch_start = self.log.end_offset();
        self.log.epochs.assign(self.leader_epoch, self.epoch_start);
        self.log.producers.high_watermark_moved(self.high_watermark);
        cut
    }

    /// Nobody leads until a replica comes back.
    pub(crate) fn lose_leader(&mut self) {
        self.leader = None;
        self.leader_epoch = LeaderEpoch(self.leader_epoch.0 + 1);
    }

    fn hand_log_to(&mut self, owner: BrokerId, config: &TopicConfig) -> Option<Offset> {
        let old_owner = std::mem::replace(&mut self.log_owner, owner);
        let old_high_watermark = self.high_watermark;
        let new_owner = self.replica_mut(owner)?;
        let common = new_owner.end_offset;
        let own_tail = std::mem::take(&mut new_owner.diverged);
        self.high_watermark = new_owner.high_watermark;
        // Also when it only brings a tail back that its predecessor did not have.
        let differs = common < self.log.end_offset() || !own_tail.is_empty();
        let removed = self.log.truncate_to(common);
        for replica in &mut self.replicas {
            if replica.broker == old_owner {
                replica.high_watermark = old_high_watermark;
                replica.end_offset = common;
                replica.diverged.clone_from(&removed);
            } else if common < replica.end_offset {
                let held = removed.iter().filter(|batch| batch.last_offset() < replica.end_offset);
                let mut diverged: Vec<_> = held.cloned().collect();
                diverged.append(&mut replica.diverged);
                replica.diverged = diverged;
                replica.end_offset = common;
            }
        }
        for batch in own_tail {
            self.log.push(batch, config);
        }
        self.high_watermark = self.high_watermark.min(self.log.end_offset());
        differs.then_some(common)
    }
}
