use crate::access::Resource;
use crate::api::{Request, Response};
use crate::brokers::Brokers;
use crate::coordinators::Coordinators;
use crate::group::Groups;
use crate::history::History;
use crate::timer::{Timer, Timers};
use crate::topics::Topics;
use crate::transaction::Transactions;
use crate::waiting::WaitingRequests;
use crate::{BrokerFaults, BrokerId, ClientId, ClusterConfig, Millis, RequestToken};
use kafka_types::TopicPartition;
use std::collections::BTreeSet;

/// What comes with every request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestHeader {
    /// The broker that it was sent to. Another than the right one says so, as Kafka's do.
    pub broker: BrokerId,
    pub token: RequestToken,
    pub client_id: ClientId,
    /// The version of the request, by which some answers differ.
    pub api_version: i16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Response(Response),
    /// The broker hung up: it is dead, or it refuses to answer an acks=0 produce.
    ConnectionClosed,
}

/// The end of a request. A produce with acks=0 has none unless it fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    pub token: RequestToken,
    pub broker: BrokerId,
    /// The client's quota: for so long after this response the broker reads nothing more from the connection
    /// (KIP-219).
    pub throttle_time_ms: Millis,
    pub outcome: Outcome,
}

/// A Kafka cluster as a pure state machine.
///
/// Requests go in with [`Cluster::handle`], time with [`Cluster::tick`], faults with the calls of `admin.rs`;
/// each answers with the replies that it made possible, to whichever requests. Equal clusters that are told
/// the same things stay equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    pub(crate) config: ClusterConfig,
    pub(crate) faults: BrokerFaults,
    pub(crate) now: Millis,
    pub(crate) brokers: Brokers,
    pub(crate) coordinators: Coordinators,
    pub(crate) topics: Topics,
    /// What clients may not use, beside topics.
    pub(crate) denied: BTreeSet<Resource>,
    pub(crate) transactions: Transactions,
    pub(crate) groups: Groups,
    pub(crate) timers: Timers,
    pub(crate) waiting: WaitingRequests,
    pub(crate) history: History,
    /// Partitions in which something changed that somebody waits for. Empty between calls, like the next two.
    pub(crate) touched: Vec<TopicPartition>,
    /// Waiting requests whose topic was deleted.
    pub(crate) orphaned: Vec<RequestToken>,
    replies: Vec<Reply>,
    /// What was due in the last call.
    fired: Vec<Timer>,
}

impl Cluster {
    /// A cluster of living brokers without topics, whose clock stands at `now`.
    pub fn new(now: Millis, brokers: &[BrokerId], config: ClusterConfig) -> Cluster {
        let mut timers = Timers::default();
        timers.set(Timer::Retention, now + config.log_retention_check_ms);
        timers.set(Timer::ProducerExpiry, now + config.producer_id_expiration_check_ms);
        timers.set(Timer::OffsetsExpiry, now + config.offsets_retention_check_ms);
        Cluster {
            faults: BrokerFaults::default(),
            now,
            brokers: Brokers::new(brokers.iter().copied()),
            coordinators: Coordinators::new(config.coordinator_partitions, brokers),
            topics: Topics::default(),
            denied: BTreeSet::new(),
            transactions: Transactions::default(),
            groups: Groups::default(),
            timers,
            waiting: WaitingRequests::default(),
            history: History::new(config.keeps_history),
            touched: Vec::new(),
            orphaned: Vec::new(),
            replies: Vec::new(),
            fired: Vec::new(),
            config,
        }
    }

    /// Takes a request that reached its broker. It may be answered now, by a later call, or never.
    ///
    /// A clock that goes back is taken to stand still.
    pub fn handle(&mut self, now: Millis, header: RequestHeader, request: Request) -> Vec<Reply> {
        self.advance_to(now);
        if self.brokers.is_alive(header.broker) {
            self.dispatch(header, request);
        } else {
            self.reply(header, Outcome::ConnectionClosed);
        }
        self.finish()
    }

    /// Does what is due by `now`, each at its own moment.
    pub fn tick(&mut self, now: Millis) -> Vec<Reply> {
        self.advance_to(now);
        self.finish()
    }

    /// When [`Cluster::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.timers.next()
    }

    /// What the last call found due and did before anything else, in that order.
    pub fn fired(&self) -> &[Timer] {
        &self.fired
    }

    pub fn now(&self) -> Millis {
        self.now
    }

    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// Plants bugs. For tests of oracles only.
    pub fn plant(&mut self, faults: BrokerFaults) {
        self.faults = faults;
    }

    pub(crate) fn advance_to(&mut self, now: Millis) {
        self.fired.clear();
        while let Some((at, timer)) = self.timers.pop_due(now) {
            self.now = self.now.max(at);
            self.fired.push(timer.clone());
            self.fire(timer);
            self.settle();
        }
        self.now = self.now.max(now);
    }

    pub(crate) fn finish(&mut self) -> Vec<Reply> {
        self.settle();
        std::mem::take(&mut self.replies)
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Failover(broker) => self.fail_over(broker),
            Timer::Replication(tp) => self.replication_due(&tp),
            Timer::ReplicaLag(tp) => self.replica_lag_due(&tp),
            Timer::Markers(id) => self.write_due_markers(&id),
            Timer::TransactionTimeOuts => self.scan_transaction_time_outs(),
            Timer::TransactionalIdExpiry => self.expire_idle_transactional_ids(),
            Timer::ProducerExpiry => self.producer_expiry_due(),
            Timer::GroupMember(group, member) => self.group_member_expired(&group, &member),
            Timer::GroupJoin(group) => self.group_join_due(&group),
            Timer::GroupSync(group) => self.group_sync_due(&group),
            Timer::OffsetsExpiry => self.offsets_expiry_due(),
            Timer::Retention => self.retention_due(),
            Timer::Cleaner => self.cleaner_due(),
            Timer::Request(token) => self.try_to_answer(token, true),
        }
    }

    pub(crate) fn respond(&mut self, header: RequestHeader, response: Response) {
        self.reply(header, Outcome::Response(response));
    }

    pub(crate) fn reply(&mut self, header: RequestHeader, outcome: Outcome) {
        self.replies.push(Reply {
            token: header.token,
            broker: header.broker,
            throttle_time_ms: self.brokers.throttle_ms(&header.client_id),
            outcome,
        });
    }
}
