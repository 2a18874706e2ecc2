//! What happens to a cluster from outside, and never by chance: faults, moves, and time that passes faster.
//!
//! Each call takes the moment and answers with the replies that it made possible, like a request.

use crate::timer::Timer;
use crate::{BrokerId, ClientId, Cluster, CoordinatorKind, GroupId, Millis, Offset, Reply, TransactionalId};
use kafka_types::{ProducerId, TopicName, TopicPartition};

impl Cluster {
    /// The broker dies with everything that waits at it. Its log survives; others lead after `failover_ms`.
    pub fn crash_broker(&mut self, now: Millis, broker: BrokerId) -> Vec<Reply> {
        self.advance_to(now);
        self.broker_died(broker);
        self.finish()
    }

    /// It comes back with the log that it had and follows whoever leads now. What it has and the leader lacks
    /// is cut off when it fetches.
    pub fn restart_broker(&mut self, now: Millis, broker: BrokerId) -> Vec<Reply> {
        self.advance_to(now);
        self.broker_came_back(broker);
        self.finish()
    }

    /// Moves the leadership to a living in-sync replica, as a rolling restart does. Nothing that was
    /// acknowledged by all is lost; what the new leader lacks is. Answers nothing if it may not lead.
    pub fn move_leader(&mut self, now: Millis, tp: &TopicPartition, to: BrokerId) -> Vec<Reply> {
        self.advance_to(now);
        let is_in_sync = self.topics.partition(tp).is_some_and(|partition| partition.in_sync.contains(&to));
        if is_in_sync && self.brokers.is_alive(to) {
            self.elect(tp, to);
        }
        self.finish()
    }

    /// Makes a living replica the leader whether or not it is in sync. What it lacks is lost.
    pub fn unclean_election(&mut self, now: Millis, tp: &TopicPartition, to: BrokerId) -> Vec<Reply> {
        self.advance_to(now);
        let is_replica = self
            .topics
            .partition(tp)
            .is_some_and(|partition| partition.replicas.iter().any(|replica| replica.broker == to));
        if is_replica && self.brokers.is_alive(to) {
            if let Some(partition) = self.topics.partition_mut(tp) {
                partition.in_sync = [to].into();
            }
            self.elect(tp, to);
        }
        self.finish()
    }

    /// Moves the coordinator of a key, and with it of every key of the same slot.
    pub fn move_coordinator(
        &mut self,
        now: Millis,
        kind: CoordinatorKind,
        key: &str,
        to: BrokerId,
    ) -> Vec<Reply> {
        self.advance_to(now);
        if self.brokers.is_alive(to) {
            let index = self.coordinators.index(kind, key);
            self.move_slot(kind, index, Some(to));
        }
        self.finish()
    }

    /// A replica stops fetching, or goes on. After `replica_lag_time_max_ms` it is out of sync.
    pub fn stall_replica(
        &mut self,
        now: Millis,
        tp: &TopicPartition,
        broker: BrokerId,
        is_stalled: bool,
    ) -> Vec<Reply> {
        self.advance_to(now);
        if let Some(replica) = self.topics.partition_mut(tp).and_then(|it| it.replica_mut(broker)) {
            replica.is_stalled = is_stalled;
        }
        self.schedule_replication(tp);
        self.finish()
    }

    /// From now on appends to partitions that the broker leads fail with KAFKA_STORAGE_ERROR.
    pub fn fill_disk(&mut self, now: Millis, broker: BrokerId, is_full: bool) -> Vec<Reply> {
        self.advance_to(now);
        if let Some(broker) = self.brokers.get_mut(broker) {
            broker.is_disk_full = is_full;
        }
        self.finish()
    }

    /// Responses to the client carry this throttle time; zero lifts it.
    pub fn throttle(&mut self, client: ClientId, throttle_time_ms: Millis) {
        self.brokers.set_throttle(client, throttle_time_ms);
    }

    /// Withdraws or restores the clients' access to a topic.
    pub fn deny_topic(&mut self, now: Millis, topic: &TopicName, is_denied: bool) -> Vec<Reply> {
        self.advance_to(now);
        if is_denied {
            self.topics.denied.insert(topic.clone());
        } else {
            self.topics.denied.remove(topic);
        }
        for tp in self.topics.all_partitions().into_iter().filter(|tp| tp.topic == *topic) {
            self.touch(&tp);
        }
        self.finish()
    }

    /// How long after a decision the marker of one partition is written; none for as configured. Counts for
    /// decisions yet to come.
    pub fn delay_markers(&mut self, tp: &TopicPartition, delay_ms: Option<Millis>) {
        match delay_ms {
            Some(delay_ms) => self.transactions.marker_delays.insert(tp.clone(), delay_ms),
            None => self.transactions.marker_delays.remove(tp),
        };
    }

    /// Changes how far followers are behind, for appends yet to come.
    pub fn set_replication_delay(&mut self, delay_ms: Millis) {
        self.config.replication_delay_ms = delay_ms;
    }

    /// Moves the log start up, as retention would.
    pub fn delete_records_below(&mut self, now: Millis, tp: &TopicPartition, offset: Offset) -> Vec<Reply> {
        self.advance_to(now);
        if let Some(partition) = self.topics.partition_mut(tp)
            && partition.log.advance_start(offset.min(partition.high_watermark))
        {
            self.log_start_moved(tp);
        }
        self.finish()
    }

    /// Applies retention to one partition now.
    pub fn apply_retention(&mut self, now: Millis, tp: &TopicPartition) -> Vec<Reply> {
        self.advance_to(now);
        self.retain(tp);
        self.finish()
    }

    /// Rolls the active segment and compacts one partition now, however little is dirty.
    pub fn compact_partition(&mut self, now: Millis, tp: &TopicPartition) -> Vec<Reply> {
        self.advance_to(now);
        if let Some(partition) = self.topics.partition_mut(tp) {
            partition.log.roll();
        }
        self.compact(tp);
        self.finish()
    }

    /// A partition forgets a producer without an open transaction, as if it had been idle for a day.
    pub fn expire_producer(&mut self, tp: &TopicPartition, producer_id: ProducerId) {
        if let Some(partition) = self.topics.partition_mut(tp) {
            partition.log.producers.forget(producer_id);
        }
    }

    /// The coordinator forgets an id without an open transaction, as if it had been idle for a week. Answers
    /// whether it was possible.
    pub fn expire_transactional_id(&mut self, id: &TransactionalId) -> bool {
        self.forget_transactional_id(id)
    }

    /// The committed offsets of a group without members go, as if it had been empty for a week.
    pub fn expire_offsets(&mut self, group: &GroupId) {
        self.forget_offsets(group);
    }

    /// A member is out, as if it had sent no heartbeat for its session time-out.
    pub fn expire_member(&mut self, now: Millis, group: &GroupId, member: &crate::MemberId) -> Vec<Reply> {
        self.advance_to(now);
        self.timers.cancel(Timer::GroupMember(group.clone(), member.clone()));
        self.remove_member_now(group, member);
        self.finish()
    }
}
