//! Brokers, and who leads what.
//!
//! Modelled: brokers that die and come back, clean elections among the in-sync replicas in the order of their
//! assignment, partitions without a leader, unclean elections, full disks, quotas as a throttle time.
//! Not modelled: the controller's own log, listeners, racks.

use crate::history::LogEvent;
use crate::timer::Timer;
use crate::{BrokerId, ClientId, Cluster, ErrorCode, Millis, Outcome, TopicPartition};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Broker {
    pub(crate) is_alive: bool,
    pub(crate) is_disk_full: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Brokers {
    brokers: BTreeMap<BrokerId, Broker>,
    /// Throttle time that a client's responses carry.
    throttles: BTreeMap<ClientId, Millis>,
}

impl Brokers {
    pub(crate) fn new(ids: impl IntoIterator<Item = BrokerId>) -> Brokers {
        let alive = Broker { is_alive: true, is_disk_full: false };
        Brokers {
            brokers: ids.into_iter().map(|id| (id, alive.clone())).collect(),
            throttles: BTreeMap::new(),
        }
    }

    pub(crate) fn is_alive(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_alive)
    }

    pub(crate) fn is_disk_full(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_disk_full)
    }

    pub(crate) fn get_mut(&mut self, id: BrokerId) -> Option<&mut Broker> {
        self.brokers.get_mut(&id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = BrokerId> {
        self.brokers.keys().copied()
    }

    pub(crate) fn alive(&self) -> Vec<BrokerId> {
        self.brokers.iter().filter(|(_, broker)| broker.is_alive).map(|(id, _)| *id).collect()
    }

    /// The living broker with the smallest id stands in for the controller.
    pub(crate) fn controller(&self) -> Option<BrokerId> {
        self.brokers.iter().find(|(_, broker)| broker.is_alive).map(|(id, _)| *id)
    }

    pub(crate) fn throttle_ms(&self, client: &ClientId) -> Millis {
        self.throttles.get(client).copied().unwrap_or(0)
    }

    pub(crate) fn set_throttle(&mut self, client: ClientId, throttle_ms: Millis) {
        if 0 < throttle_ms {
            self.throttles.insert(client, throttle_ms);
        } else {
            self.throttles.remove(&client);
        }
    }
}

impl Cluster {
    /// Its requests die with it; others take over after `failover_ms`.
    pub(crate) fn broker_died(&mut self, id: BrokerId) {
        let Some(broker) = self.brokers.get_mut(id).filter(|broker| broker.is_alive) else { return };
        broker.is_alive = false;
        for (token, header) in self.waiting.drop_requests_of(id) {
            self.timers.cancel(Timer::Request(token));
            self.reply(header, Outcome::ConnectionClosed);
        }
        for (_, partition) in self.topics.partitions_mut() {
            partition.waiting_requests.retain(|token| self.waiting.contains(*token));
        }
        self.drop_group_waits_of(id);
        if self.config.failover_ms == 0 {
            self.fail_over(id);
        } else {
            self.timers.set(Timer::Failover(id), self.now + self.config.failover_ms);
        }
    }

    pub(crate) fn fail_over(&mut self, dead: BrokerId) {
        for tp in self.topics.all_partitions() {
            let Some(partition) = self.topics.partition_mut(&tp) else { continue };
            partition.leave_in_sync(dead);
            if partition.leader == Some(dead) {
                self.elect_cleanly(&tp);
            }
            self.advance_high_watermark(&tp);
        }
        self.move_coordinators_away_from(dead);
    }

    pub(crate) fn broker_came_back(&mut self, id: BrokerId) {
        if self.timers.is_set(&Timer::Failover(id)) {
            self.timers.cancel(Timer::Failover(id));
            self.fail_over(id);
        }
        match self.brokers.get_mut(id) {
            Some(broker) if !broker.is_alive => broker.is_alive = true,
            _ => return,
        }
        for tp in self.topics.all_partitions() {
            let Some(partition) = self.topics.partition(&tp) else { continue };
            if partition.leader.is_none() {
                self.elect_cleanly(&tp);
            } else {
                self.schedule_replication(&tp);
            }
        }
        self.assign_orphaned_coordinators();
    }

    /// The first living in-sync replica leads; without one, any living replica where the topic allows unclean
    /// elections; else nobody.
    fn elect_cleanly(&mut self, tp: &TopicPartition) {
        let Some((config, partition)) = self.topics.config_and_partition(tp) else { return };
        let is_alive = |id: &BrokerId| self.brokers.is_alive(*id);
        let in_order: Vec<BrokerId> =
            partition.replicas.iter().map(|replica| replica.broker).filter(is_alive).collect();
        let in_sync = in_order.iter().find(|id| partition.in_sync.contains(id));
        let unclean = in_order.first().filter(|_| config.unclean_leader_election);
        match in_sync.or(unclean) {
            Some(&leader) => self.elect(tp, leader),
            None => {
                if let Some(partition) = self.topics.partition_mut(tp) {
                    partition.lose_leader();
                }
                self.leadership_changed(tp);
            }
        }
    }

    pub(crate) fn elect(&mut self, tp: &TopicPartition, leader: BrokerId) {
        let Some((config, partition)) = self.topics.config_and_partition_mut(tp) else { return };
        if let Some(to) = partition.elect(leader, config) {
            self.record_event(tp, LogEvent::Truncated { to });
            let Some(partition) = self.topics.partition(tp) else { return };
            let regained: Vec<_> = partition.log.batches_from(to).cloned().collect();
            for batch in regained {
                self.record_event(tp, LogEvent::Appended(batch));
            }
        }
        self.leadership_changed(tp);
        self.advance_high_watermark(tp);
        self.schedule_replication(tp);
    }

    fn leadership_changed(&mut self, tp: &TopicPartition) {
        self.touch(tp);
        self.markers_lost_their_leader(tp);
    }

    pub(crate) fn advance_high_watermark(&mut self, tp: &TopicPartition) {
        let Some((config, partition)) = self.topics.config_and_partition_mut(tp) else { return };
        if partition.advance_high_watermark(config) {
            self.touch(tp);
        }
    }

    /// Lets followers fetch: at once, or after the configured delay.
    pub(crate) fn schedule_replication(&mut self, tp: &TopicPartition) {
        let Some(partition) = self.topics.partition(tp) else { return };
        let has_lagging = partition.has_lagging_follower(|id| self.brokers.is_alive(id));
        let has_stalled = partition.replicas.iter().any(|replica| replica.is_stalled);
        if has_stalled && 1 < partition.in_sync.len() {
            let at = self.now + self.config.replica_lag_time_max_ms;
            self.timers.set_no_later(Timer::ReplicaLag(tp.clone()), at);
        }
        if !has_lagging {
            return;
        }
        if self.config.replication_delay_ms == 0 {
            // The second round tells the followers the high watermark that the first one made.
            self.replicate(tp);
            self.replicate(tp);
        } else {
            let at = self.now + self.config.replication_delay_ms;
            self.timers.set_no_later(Timer::Replication(tp.clone()), at);
        }
    }

    pub(crate) fn replicate(&mut self, tp: &TopicPartition) {
        let Some((config, partition)) = self.topics.config_and_partition_mut(tp) else { return };
        partition.replicate(self.now, |id| self.brokers.is_alive(id), config);
        self.touch(tp);
    }

    pub(crate) fn replication_due(&mut self, tp: &TopicPartition) {
        self.replicate(tp);
        self.schedule_replication(tp);
    }

    pub(crate) fn replica_lag_due(&mut self, tp: &TopicPartition) {
        let since = self.now - self.config.replica_lag_time_max_ms;
        if let Some(partition) = self.topics.partition_mut(tp) {
            partition.drop_laggards(since, |id| self.brokers.is_alive(id));
        }
        self.advance_high_watermark(tp);
        self.touch(tp);
    }

    /// Whether `broker` may answer for the partition; the error is what it says instead.
    pub(crate) fn check_leader(&self, tp: &TopicPartition, broker: BrokerId) -> Result<(), ErrorCode> {
        let Some(partition) = self.topics.partition(tp) else {
            return Err(ErrorCode::UnknownTopicOrPartition);
        };
        if partition.leader != Some(broker) {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        Ok(())
    }
}
