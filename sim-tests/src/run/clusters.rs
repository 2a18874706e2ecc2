//! An administrator's hands: what the plan's actions do to the clusters.

use super::setup::FLOW;
use crate::oracle::Oracle;
use crate::plan::{Action, BrokerNumber, Cluster as Named, Right};
use kafka_model::api::create_partitions::CreatePartitionsRequest;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::delete_groups::DeleteGroupsRequest;
use kafka_model::api::delete_topics::{DeleteTopicsRequest, TopicToDelete};
use kafka_model::api::describe_groups::DescribeGroupsRequest;
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::leave_group::{LeaveGroupRequest, LeavingMember};
use kafka_model::api::offset_commit::{OffsetCommitRequest, OffsetToCommit};
use kafka_model::api::produce::{ProducePartition, ProduceRequest};
use kafka_model::group::Committer;
use kafka_model::{
    BrokerId, ClientId, Cluster, CoordinatorKind, GroupId, MemberId, Millis, Offset, Outcome, Reply, Request,
    RequestHeader, RequestToken, Resource, Response, TransactionalId,
};
use kafka_types::{
    ErrorCode, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Partition, Record, RecordBatch, TopicName, TopicPartition,
};
use runtime_sim::{Fault, Handle};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use verbatim_core::failure::Side;

/// No plan has more lanes.
const LANES_MAX: u32 = 8;

#[derive(Clone)]
pub struct Administrator {
    handle: Handle,
    oracle: Rc<RefCell<Oracle>>,
    last_token: Rc<Cell<u64>>,
}

impl Administrator {
    pub fn new(handle: &Handle, oracle: &Rc<RefCell<Oracle>>) -> Administrator {
        // Far from the tokens of everybody else.
        let last_token = Rc::new(Cell::new(1 << 62));
        Administrator { handle: handle.clone(), oracle: Rc::clone(oracle), last_token }
    }

    /// Whether the action was one on a cluster, and so is done.
    pub fn act(&self, action: &Action) -> bool {
        match action {
            Action::CrashBroker { cluster, broker } => {
                self.on(*cluster, |it, now| it.crash_broker(now, BrokerId(*broker)));
            }
            Action::RestartBroker { cluster, broker } => {
                self.on(*cluster, |it, now| it.restart_broker(now, BrokerId(*broker)));
            }
            Action::MoveLeader { cluster, topic, partition } => {
                self.move_leader(*cluster, &TopicPartition::new(topic.as_str(), *partition));
            }
            Action::MoveTransactionCoordinator { lane, to } => {
                let key = lane_id(*lane);
                self.on(Named::Target, |it, now| {
                    it.move_coordinator(now, CoordinatorKind::Transaction, key.as_str(), BrokerId(*to))
                });
            }
            Action::MoveGroupCoordinator { to } => self.on(Named::Target, |it, now| {
                it.move_coordinator(now, CoordinatorKind::Group, group().as_str(), BrokerId(*to))
            }),
            Action::StallReplica { cluster, topic, partition, broker, is_stalled } => {
                let tp = TopicPartition::new(topic.as_str(), *partition);
                self.on(*cluster, |it, now| it.stall_replica(now, &tp, BrokerId(*broker), *is_stalled));
            }
            Action::UncleanElection { cluster: Named::Source, topic, partition } => {
                self.elect_uncleanly(&TopicPartition::new(topic.as_str(), *partition));
            }
            Action::DenyRight { right, is_denied } => self.deny_right(*right, *is_denied),
            Action::ForeignWrite { topic, partition } => self.write_foreign(topic, *partition),
            Action::DamagedBatch { topic, partition } => self.write_damaged(topic, *partition),
            Action::DenyTopic { cluster, topic, is_denied } => self.deny_topic(*cluster, topic, *is_denied),
            Action::FillDisk { cluster, broker, is_full } => {
                self.on(*cluster, |it, now| it.fill_disk(now, BrokerId(*broker), *is_full));
            }
            Action::Throttle { cluster, milliseconds } => self.throttle(*cluster, *milliseconds),
            Action::ExpireMember { member } => self.expire_member(usize::from(*member)),
            Action::DeleteGroup => {
                self.ask(Named::Target, DeleteGroupsRequest { groups: vec![group()] });
            }
            Action::CommitForeignOffsets => self.commit_foreign_offsets(),
            Action::RemoveMember { member } => self.remove_member(usize::from(*member)),
            Action::FenceLane { lane } => self.fence_lane(*lane),
            Action::CompactLedger { lane } => self.compact_ledger(*lane),
            Action::ExpireTransactionalId { lane } => self.expire_transactional_id(*lane),
            Action::ExpireProducers { cluster } => self.expire_producers(*cluster),
            Action::DelayMarkers { cluster, topic, partition, milliseconds } => {
                self.delay_markers(*cluster, &TopicPartition::new(topic.as_str(), *partition), *milliseconds);
            }
            Action::DeleteRecords { .. }
            | Action::GrowLedger { .. }
            | Action::Compact { .. }
            | Action::CreateTopic { .. }
            | Action::GrowTopic { .. }
            | Action::DeleteTopic { .. }
            | Action::RecreateTopic { .. } => self.act_on_topic(action),
            // No plan has one.
            Action::UncleanElection { cluster: Named::Target, .. } => {}
            Action::Start { .. }
            | Action::Crash { .. }
            | Action::CrashAt { .. }
            | Action::CrashBrokerAt { .. }
            | Action::RecreateTopicAt { .. }
            | Action::CutOff { .. }
            | Action::CutOffForGood { .. }
            | Action::Pause { .. }
            | Action::Resume { .. }
            | Action::StallWorker { .. }
            | Action::Stop { .. }
            | Action::SkewClock { .. } => return false,
        }
        true
    }

    fn move_leader(&self, cluster: Named, tp: &TopicPartition) {
        self.on(cluster, |it, now| match next_leader(it, tp) {
            Some(to) => it.move_leader(now, tp, to),
            None => Vec::new(),
        });
    }

    fn act_on_topic(&self, action: &Action) {
        match action {
            Action::DeleteRecords { topic, partition, percent } => {
                let tp = TopicPartition::new(topic.as_str(), *partition);
                self.on(Named::Source, |it, now| {
                    let Some(view) = it.partition_view(&tp) else { return Vec::new() };
                    let held = view.high_watermark - view.log_start_offset;
                    let below = view.log_start_offset + held * i64::from(*percent) / 100;
                    it.delete_records_below(now, &tp, below)
                });
            }
            Action::Compact { topic, partition } => {
                let tp = TopicPartition::new(topic.as_str(), *partition);
                self.on(Named::Source, |it, now| it.compact_partition(now, &tp));
            }
            Action::CreateTopic { topic, partitions } => {
                self.create_topic(Named::Source, topic, *partitions, cleanup(false));
            }
            Action::GrowTopic { topic, to } => self.grow_topic(Named::Source, topic, *to),
            Action::GrowLedger { partitions } => {
                self.grow_topic(Named::Target, &ledger(), *partitions);
            }
            Action::DeleteTopic { cluster, topic } => self.delete_topic(*cluster, topic),
            Action::RecreateTopic { cluster, topic, partitions } => {
                self.delete_topic(*cluster, topic);
                self.create_topic(*cluster, topic, *partitions, cleanup(false));
            }
            _ => {}
        }
    }

    pub fn create_topic(&self, cluster: Named, topic: &str, partitions: i32, config: (&str, &str)) {
        let topic = NewTopic {
            name: topic.into(),
            num_partitions: partitions,
            replication_factor: -1,
            configs: vec![(config.0.to_owned(), config.1.to_owned())],
        };
        self.ask(cluster, CreateTopicsRequest { topics: vec![topic], validate_only: false });
    }

    fn grow_topic(&self, cluster: Named, topic: &str, to: i32) {
        let topics = vec![(TopicName::from(topic), to)];
        self.ask(cluster, CreatePartitionsRequest { topics, validate_only: false });
    }

    /// Whether somebody has given the ledger more partitions than there are lanes.
    pub fn ledger_is_grown(&self, lanes: u32) -> bool {
        self.handle.view(Side::Target, |it| {
            let ledger = it.topic_names().find(|(name, _, _)| name.as_str() == ledger());
            ledger.is_some_and(|(_, _, count)| lanes as usize != count)
        })
    }

    fn delete_topic(&self, cluster: Named, topic: &str) {
        let topics = vec![TopicToDelete::Named(topic.into())];
        self.ask(cluster, DeleteTopicsRequest { topics });
    }

    /// Does something to a cluster from outside.
    pub fn on(&self, cluster: Named, act: impl FnOnce(&mut Cluster, Millis) -> Vec<Reply>) {
        self.handle.administer(side(cluster), act);
    }

    /// Asks living brokers in turn until one answers without an error of its own.
    fn ask(&self, cluster: Named, request: impl Into<Request>) -> Vec<Response> {
        let request: Request = request.into();
        let brokers: Vec<BrokerId> = self.handle.view(side(cluster), |it| {
            it.broker_ids().filter(|(_, is_alive)| *is_alive).map(|(id, _)| id).collect()
        });
        brokers.into_iter().flat_map(|broker| self.ask_broker(cluster, broker, request.clone())).collect()
    }

    fn ask_broker(&self, cluster: Named, broker: BrokerId, request: Request) -> Vec<Response> {
        self.last_token.set(self.last_token.get() + 1);
        let token = RequestToken(self.last_token.get());
        let header = RequestHeader { broker, token, client_id: ClientId::from("tool"), api_version: 9 };
        let mut answers = Vec::new();
        self.on(cluster, |it, now| {
            let (own, others): (Vec<Reply>, Vec<Reply>) =
                it.handle(now, header, request).into_iter().partition(|reply| reply.token == token);
            let outcomes = own.into_iter().map(|reply| reply.outcome);
            answers.extend(outcomes.filter_map(|outcome| match outcome {
                Outcome::Response(response) => Some(response),
                Outcome::ConnectionClosed => None,
            }));
            others
        });
        answers
    }

    fn elect_uncleanly(&self, tp: &TopicPartition) {
        let found = self.handle.view(Side::Source, |it| {
            let view = it.partition_view(tp)?;
            let behind = it
                .broker_ids()
                .find(|(id, is_alive)| *is_alive && Some(*id) != view.leader && !view.in_sync.contains(id))?;
            Some((view.last_stable_offset, behind.0))
        });
        let Some((readable_below, to)) = found else { return };
        let now = self.handle.now();
        self.oracle.borrow_mut().unclean_election_ahead(now, tp, readable_below);
        self.on(Named::Source, |it, now| it.unclean_election(now, tp, to));
    }

    pub fn throttle(&self, cluster: Named, milliseconds: Millis) {
        // By the names of the instances' clients and of the producers.
        let lanes = (0..LANES_MAX).map(|lane| format!("lane-{lane}"));
        let others = ["admin", "group", "survey", "topics"].map(str::to_owned);
        let instances = lanes.chain(others).map(|purpose| format!("verbatim-{FLOW}-{purpose}"));
        let producers = (0..8).map(|number| format!("producer-{number}"));
        for client in instances.chain(producers) {
            self.on(cluster, |it, _| {
                it.throttle(ClientId::from(client), milliseconds);
                Vec::new()
            });
        }
    }

    pub fn deny_topic(&self, cluster: Named, topic: &str, is_denied: bool) {
        let topic = TopicName::from(topic);
        self.on(cluster, |it, now| it.deny_topic(now, &topic, is_denied));
        match cluster {
            Named::Source if is_denied => self.oracle.borrow_mut().topic_denied(self.handle.now(), topic),
            Named::Target if is_denied => self.oracle.borrow_mut().copy_denied(self.handle.now(), &topic),
            Named::Source | Named::Target => {}
        }
    }

    fn deny_right(&self, right: Right, is_denied: bool) {
        let (cluster, resource) = match right {
            Right::Group => (Named::Target, Resource::Group(group())),
            Right::Lane(lane) => (Named::Target, Resource::TransactionalId(lane_id(lane))),
            Right::SourceCluster => (Named::Source, Resource::Cluster),
        };
        self.on(cluster, |it, now| it.deny(now, resource, is_denied));
    }

    fn delay_markers(&self, cluster: Named, tp: &TopicPartition, milliseconds: Option<Millis>) {
        self.on(cluster, |it, _| {
            it.delay_markers(tp, milliseconds);
            Vec::new()
        });
    }

    fn write_foreign(&self, topic: &str, partition: i32) {
        let record = Record::new(self.handle.now(), None, Some("somebody else's".into()));
        let written = self.write(Named::Target, topic, partition, RecordBatch::new(vec![record]));
        if let Some(offset) = written {
            let (now, tp) = (self.handle.now(), TopicPartition::new(topic, partition));
            self.oracle.borrow_mut().foreign_write(now, &tp, offset);
        }
    }

    fn write_damaged(&self, topic: &str, partition: i32) {
        let encoded = Some("nobody can make this out".into());
        let batch = RecordBatch { encoded, ..RecordBatch::new(Vec::new()) };
        self.write(Named::Source, topic, partition, batch);
    }

    /// Somebody who is no part of the flow appends a batch: where, if the leader took it.
    fn write(&self, cluster: Named, topic: &str, partition: i32, batch: RecordBatch) -> Option<Offset> {
        let topic_partition = TopicPartition::new(topic, partition);
        let leader = self.handle.view(side(cluster), |it| it.leader(&topic_partition))?;
        let partitions = vec![ProducePartition { topic_partition, topic_id: None, batch }];
        let request = ProduceRequest { transactional_id: None, acks: 1, timeout_ms: 0, partitions };
        self.ask_broker(cluster, leader, request.into()).into_iter().find_map(|answer| match answer {
            Response::Produce(answer) => Some(answer.partitions.first()?.base_offset).filter(|it| 0 <= *it),
            _ => None,
        })
    }

    fn members(&self) -> Vec<MemberId> {
        let answers = self.ask(Named::Target, DescribeGroupsRequest { groups: vec![group()] });
        let groups = answers.into_iter().flat_map(|answer| match answer {
            Response::DescribeGroups(answer) => answer.groups,
            _ => Vec::new(),
        });
        groups.flat_map(|group| group.members).map(|member| member.member_id).collect()
    }

    fn expire_member(&self, number: usize) {
        if let Some(member) = self.members().get(number) {
            self.on(Named::Target, |it, now| it.expire_member(now, &group(), member));
        }
    }

    fn remove_member(&self, number: usize) {
        let Some(member_id) = self.members().get(number).cloned() else { return };
        let members = vec![LeavingMember { member_id, group_instance_id: None }];
        let answers = self.ask(Named::Target, LeaveGroupRequest { group_id: group(), members });
        let is_gone = |answer: &Response| matches!(answer, Response::LeaveGroup(it) if it.members.iter().any(|it| !it.1.is_error()));
        if answers.iter().any(is_gone) {
            self.handle.count(Fault::MemberRemoved);
        }
    }

    fn fence_lane(&self, lane: u32) {
        let request = InitProducerIdRequest {
            transactional_id: Some(lane_id(lane)),
            transaction_timeout_ms: 60_000,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
        };
        // Where a transaction is open, it is ended first and the tool told to come again.
        let answers = self.ask(Named::Target, request);
        let is_begun = |answer: &Response| {
            let Response::InitProducerId(it) = answer else { return false };
            matches!(it.error_code, ErrorCode::None | ErrorCode::ConcurrentTransactions)
        };
        if answers.iter().any(is_begun) {
            self.handle.count(Fault::LaneFenced);
        }
    }

    fn compact_ledger(&self, lane: u32) {
        let tp = TopicPartition::new(ledger().as_str(), i32::try_from(lane).unwrap_or(0));
        if self.handle.view(Side::Target, |it| it.partition_view(&tp).is_some()) {
            self.on(Named::Target, |it, now| it.compact_partition(now, &tp));
            self.handle.count(Fault::LedgerCompacted);
        }
    }

    fn expire_transactional_id(&self, lane: u32) {
        let id = lane_id(lane);
        let mut has_expired = false;
        self.on(Named::Target, |it, _| {
            has_expired = it.expire_transactional_id(&id);
            Vec::new()
        });
        if has_expired {
            let lane = i32::try_from(lane).unwrap_or(0);
            let now = self.handle.now();
            self.oracle.borrow_mut().transactional_id_expired(now, lane);
        }
    }

    fn commit_foreign_offsets(&self) {
        let offset = OffsetToCommit {
            topic_partition: TopicPartition::new(ledger().as_str(), 0),
            offset: 1,
            leader_epoch: None,
            metadata: "somebody's tool".to_owned(),
        };
        let request =
            OffsetCommitRequest { group_id: group(), committer: Committer::nobody(), offsets: vec![offset] };
        self.ask(Named::Target, request);
    }

    /// Producers without an open transaction are forgotten in all partitions.
    fn expire_producers(&self, cluster: Named) {
        self.on(cluster, |it, _| {
            let places: Vec<TopicPartition> = partitions(it);
            for tp in places {
                let producers: std::collections::BTreeSet<i64> =
                    it.fates(&tp, 0).iter().map(|(batch, _)| batch.producer_id).collect();
                producers.into_iter().for_each(|producer| it.expire_producer(&tp, producer));
            }
            Vec::new()
        });
    }
}

fn ledger() -> String {
    format!("verbatim.{FLOW}.ledger.internal")
}

/// The configuration of a topic that is compacted, or not.
pub fn cleanup(is_compacted: bool) -> (&'static str, &'static str) {
    ("cleanup.policy", if is_compacted { "compact" } else { "delete" })
}

fn lane_id(lane: u32) -> TransactionalId {
    TransactionalId::from(format!("verbatim-{FLOW}-{lane}"))
}

fn group() -> GroupId {
    GroupId::from(format!("verbatim-{FLOW}"))
}

pub fn side(cluster: Named) -> Side {
    match cluster {
        Named::Source => Side::Source,
        Named::Target => Side::Target,
    }
}

pub fn partitions(cluster: &Cluster) -> Vec<TopicPartition> {
    let of = |(name, _, count): (&TopicName, _, usize)| {
        let name = name.clone();
        Partition::all(u32::try_from(count).unwrap_or(0))
            .map(move |partition| TopicPartition { topic: name.clone(), partition })
    };
    cluster.topic_names().flat_map(of).collect()
}

fn next_leader(cluster: &Cluster, tp: &TopicPartition) -> Option<BrokerId> {
    let view = cluster.partition_view(tp)?;
    let now: BrokerNumber = view.leader?.0;
    let others = view.in_sync.iter().copied().filter(|id| id.0 != now);
    let later = others.clone().find(|id| now < id.0);
    later.or(others.into_iter().next())
}
