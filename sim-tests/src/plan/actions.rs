//! When what strikes: each class of faults draws its own events over the active time.

use super::action::{Action, BrokerNumber, Cluster, Right, TimedAction, Urgency};
use super::draw::Draw;
use super::{FaultClass, FlowPlan, Profile, TopicPlan};
use runtime_sim::{Moment, Random, Slot};

/// By then every instance has started for the first time.
pub const STARTED_MS: i64 = 3_000;
pub const BROKERS: BrokerNumber = 3;
const LEDGER: &str = "verbatim.sim.ledger.internal";

struct Draft<'a> {
    random: &'a mut Random,
    flow: &'a FlowPlan,
    topics: &'a [TopicPlan],
    actions: Vec<TimedAction>,
}

/// When each instance first starts.
pub fn starts(flow: &FlowPlan, random: &mut Random) -> Vec<TimedAction> {
    let start = |slot| TimedAction {
        at_ms: random.between(0, STARTED_MS),
        action: Action::Start { slot: Slot(slot) },
    };
    (0..u32::from(flow.instances)).map(start).collect()
}

/// What the classes of a profile do, by time.
pub fn draw(
    profile: &Profile,
    flow: &FlowPlan,
    topics: &[TopicPlan],
    active_ms: i64,
    random: &mut Random,
) -> Vec<TimedAction> {
    let mut draft = Draft { random, flow, topics, actions: Vec::new() };
    for (class, rate) in &profile.rates {
        let mut at = draft.random.until_next(*rate);
        while at < active_ms {
            draft.strike(*class, at);
            at += draft.random.until_next(*rate).max(1);
        }
    }
    let mut actions = draft.actions;
    actions.retain(|action| action.at_ms < active_ms);
    actions.sort_by_key(|action| action.at_ms);
    actions
}

impl Draft<'_> {
    fn push(&mut self, at_ms: i64, action: Action) {
        self.actions.push(TimedAction { at_ms, action });
    }

    fn strike(&mut self, class: FaultClass, at: i64) {
        match class {
            FaultClass::Crash
            | FaultClass::CrashAtMoment
            | FaultClass::Pause
            | FaultClass::Stop
            | FaultClass::CutOff
            | FaultClass::WorkerStall
            | FaultClass::CrashInRelease
            | FaultClass::ClockSkew => {
                self.strike_instance(class, at);
            }
            FaultClass::BrokerCrash
            | FaultClass::LeaderMove
            | FaultClass::CoordinatorMove
            | FaultClass::ReplicaStall
            | FaultClass::DiskFull
            | FaultClass::Throttling
            | FaultClass::BrokerCrashAtMoment
            | FaultClass::MarkerDelay => self.strike_brokers(class, at),
            FaultClass::UncleanElection
            | FaultClass::Retention
            | FaultClass::Compaction
            | FaultClass::TopicsCreated
            | FaultClass::TopicsGrown
            | FaultClass::TopicsDeleted
            | FaultClass::TargetTopics
            | FaultClass::TopicsDenied
            | FaultClass::TopicsRecreated => self.strike_topics(class, at),
            FaultClass::RightsDenied | FaultClass::ForeignWrites | FaultClass::DamagedBatches => {
                self.strike_rarely(class, at)
            }
            FaultClass::RebalanceStorm => {
                let member = self.number(0, 2);
                self.push(at, Action::ExpireMember { member });
            }
            FaultClass::AdminTool => {
                let deletes = self.random.chance(0.5);
                self.push(at, if deletes { Action::DeleteGroup } else { Action::CommitForeignOffsets });
            }
            FaultClass::LedgerCompaction => {
                let lane = self.lane();
                self.push(at, Action::CompactLedger { lane });
            }
            FaultClass::IdExpiry => {
                let lane = self.lane();
                let cluster = self.cluster();
                let is_producer = self.random.chance(0.5);
                self.push(
                    at,
                    match is_producer {
                        true => Action::ExpireProducers { cluster },
                        false => Action::ExpireTransactionalId { lane },
                    },
                );
            }
            // These strike messages while they travel, at no time of their own.
            FaultClass::RequestLost
            | FaultClass::ResponseLost
            | FaultClass::SlowMessages
            | FaultClass::ErrorAnswers
            | FaultClass::SlowSteps
            | FaultClass::TransactionTrouble
            | FaultClass::LateRequests
            | FaultClass::PartialSend => {}
        }
    }

    fn strike_instance(&mut self, class: FaultClass, at: i64) {
        let slot = Slot(u32::from(self.number(0, self.flow.instances - 1)));
        let back = at + self.duration(500.0, 20_000.0);
        match class {
            FaultClass::CrashAtMoment => {
                let moment = *self.random.one_of(Moment::ALL);
                self.push(at, Action::CrashAt { slot, moment });
                self.push(back + 5_000, Action::Start { slot });
            }
            FaultClass::Pause => {
                self.push(at, Action::Pause { slot });
                let resumed = at + self.duration(1_000.0, 90_000.0);
                self.push(resumed, Action::Resume { slot });
            }
            FaultClass::CutOff => {
                let cluster = self.cluster();
                let broker = if self.random.chance(0.5) { Some(self.broker()) } else { None };
                let answers_only = self.random.chance(0.5);
                let cut = |is_cut| Action::CutOff { slot, cluster, broker, answers_only, is_cut };
                self.push(at, cut(true));
                let end = at + self.duration(500.0, 90_000.0);
                self.push(end, cut(false));
            }
            FaultClass::WorkerStall => {
                self.push(at, Action::StallWorker { slot, is_stalled: true });
                let end = at + self.duration(500.0, 90_000.0);
                self.push(end, Action::StallWorker { slot, is_stalled: false });
            }
            FaultClass::CrashInRelease => {
                self.push(at, Action::CrashAt { slot, moment: Moment::LaneClosed });
                self.push(back + 5_000, Action::Start { slot });
            }
            FaultClass::ClockSkew => {
                let milliseconds = self.random.between(-3_600_000, 3_600_000);
                self.push(at, Action::SkewClock { slot, milliseconds });
            }
            FaultClass::Stop => {
                let is_soft = self.random.chance(0.7);
                let urgency = if is_soft { Urgency::Settle } else { Urgency::Now };
                self.push(at, Action::Stop { slot, urgency });
                self.push(back, Action::Start { slot });
            }
            _ => {
                self.push(at, Action::Crash { slot });
                self.push(back, Action::Start { slot });
            }
        }
    }

    fn strike_brokers(&mut self, class: FaultClass, at: i64) {
        let (cluster, broker) = (self.cluster(), self.broker());
        match class {
            FaultClass::LeaderMove => {
                let (topic, partition) = self.partition_of(cluster);
                self.push(at, Action::MoveLeader { cluster, topic, partition });
            }
            FaultClass::CoordinatorMove => {
                let lane = self.lane();
                let of_group = self.random.chance(0.4);
                self.push(
                    at,
                    match of_group {
                        true => Action::MoveGroupCoordinator { to: broker },
                        false => Action::MoveTransactionCoordinator { lane, to: broker },
                    },
                );
            }
            FaultClass::ReplicaStall => {
                let (topic, partition) = self.partition_of(cluster);
                let stall = |is_stalled, topic: String| Action::StallReplica {
                    cluster,
                    topic,
                    partition,
                    broker,
                    is_stalled,
                };
                self.push(at, stall(true, topic.clone()));
                let end = at + self.duration(500.0, 45_000.0);
                self.push(end, stall(false, topic));
            }
            FaultClass::DiskFull => {
                self.push(at, Action::FillDisk { cluster, broker, is_full: true });
                let end = at + self.duration(500.0, 20_000.0);
                self.push(end, Action::FillDisk { cluster, broker, is_full: false });
            }
            FaultClass::Throttling => {
                let milliseconds = self.duration(10.0, 5_000.0);
                self.push(at, Action::Throttle { cluster, milliseconds });
                let end = at + self.duration(500.0, 20_000.0);
                self.push(end, Action::Throttle { cluster, milliseconds: 0 });
            }
            FaultClass::BrokerCrashAtMoment => {
                let slot = Slot(u32::from(self.number(0, self.flow.instances - 1)));
                let moment = *self.random.one_of(Moment::ALL);
                self.push(at, Action::CrashBrokerAt { slot, moment });
                let end = at + self.duration(500.0, 20_000.0);
                for broker in 1..=BROKERS {
                    self.push(end, Action::RestartBroker { cluster: Cluster::Target, broker });
                }
            }
            FaultClass::MarkerDelay => {
                let (topic, partition) = self.partition_of(cluster);
                let delay = |milliseconds, topic: String| Action::DelayMarkers {
                    cluster,
                    topic,
                    partition,
                    milliseconds,
                };
                let milliseconds = self.duration(50.0, 10_000.0);
                self.push(at, delay(Some(milliseconds), topic.clone()));
                let end = at + self.duration(500.0, 20_000.0);
                self.push(end, delay(None, topic));
            }
            _ => {
                self.push(at, Action::CrashBroker { cluster, broker });
                let end = at + self.duration(200.0, 20_000.0);
                self.push(end, Action::RestartBroker { cluster, broker });
            }
        }
    }

    fn strike_topics(&mut self, class: FaultClass, at: i64) {
        let (topic, partition) = self.source_partition();
        let partitions = i32::from(self.number(1, 4));
        let action = match class {
            FaultClass::UncleanElection => {
                self.lag_behind(at, Cluster::Source, &topic, partition);
                if self.random.chance(0.5) {
                    self.strike_everybody(at - 1);
                }
                Action::UncleanElection { cluster: Cluster::Source, topic, partition }
            }
            FaultClass::Retention => {
                let percent = self.number(1, 100);
                Action::DeleteRecords { topic, partition, percent }
            }
            FaultClass::Compaction => Action::Compact { topic, partition },
            FaultClass::TopicsCreated => {
                let topic = format!("new-{}", self.random.below(1_000));
                Action::CreateTopic { topic, partitions }
            }
            FaultClass::TopicsGrown => Action::GrowTopic { topic, to: partitions + 2 },
            FaultClass::TopicsDenied => {
                let (cluster, topic) = match self.cluster() {
                    Cluster::Source => (Cluster::Source, topic),
                    Cluster::Target => (Cluster::Target, format!("{}{topic}", self.flow.target_prefix)),
                };
                let end = at + self.duration(200.0, 20_000.0);
                self.push(end, Action::DenyTopic { cluster, topic: topic.clone(), is_denied: false });
                Action::DenyTopic { cluster, topic, is_denied: true }
            }
            FaultClass::TopicsDeleted => Action::DeleteTopic { cluster: Cluster::Source, topic },
            FaultClass::TargetTopics => {
                let (cluster, topic) = (Cluster::Target, format!("{}{topic}", self.flow.target_prefix));
                if self.random.chance(0.5) {
                    Action::DeleteTopic { cluster, topic }
                } else {
                    Action::RecreateTopic { cluster, topic, partitions }
                }
            }
            _ => Action::RecreateTopic { cluster: Cluster::Source, topic, partitions },
        };
        self.push(at, action);
    }

    /// A replica that lags makes an election lose something.
    fn lag_behind(&mut self, at: i64, cluster: Cluster, topic: &str, partition: i32) {
        let broker = self.broker();
        // Once it is out of sync, the others go on without it.
        let begin = (at - self.flow.replica_lag_ms - self.duration(500.0, 5_000.0)).max(0);
        let stall = |is_stalled| Action::StallReplica {
            cluster,
            topic: topic.to_owned(),
            partition,
            broker,
            is_stalled,
        };
        self.push(begin, stall(true));
        self.push(at + 1, stall(false));
    }

    /// What ends an instance or a partition until somebody acts.
    fn strike_rarely(&mut self, class: FaultClass, at: i64) {
        let (topic, partition) = self.source_partition();
        let copy = format!("{}{topic}", self.flow.target_prefix);
        match class {
            FaultClass::ForeignWrites => self.push(at, Action::ForeignWrite { topic: copy, partition }),
            FaultClass::DamagedBatches => self.push(at, Action::DamagedBatch { topic, partition }),
            _ => self.deny_right(at),
        }
    }

    /// Whoever ends over it is started again once the right is back.
    fn deny_right(&mut self, at: i64) {
        let lane = self.lane();
        let right = *self.random.one_of(&[Right::Group, Right::Lane(lane), Right::SourceCluster]);
        // A producer needs that one only when it begins.
        let at = if right == Right::SourceCluster { 0 } else { at };
        self.push(at, Action::DenyRight { right, is_denied: true });
        let end = at + self.duration(200.0, 10_000.0);
        self.push(end, Action::DenyRight { right, is_denied: false });
        for slot in (0..u32::from(self.flow.instances)).map(Slot) {
            let back = end + self.duration(500.0, 5_000.0);
            self.push(back, Action::Start { slot });
        }
    }

    /// Nobody reads for a while, so that what was read may be gone, and other records in its place, when they do.
    fn strike_everybody(&mut self, at: i64) {
        for slot in (0..u32::from(self.flow.instances)).map(Slot) {
            self.push(at, Action::Crash { slot });
            let back = at + self.duration(1_000.0, 15_000.0);
            self.push(back, Action::Start { slot });
        }
    }

    fn number(&mut self, low: u8, high: u8) -> u8 {
        u8::try_from(self.random.between(i64::from(low), i64::from(high))).unwrap_or(low)
    }

    fn duration(&mut self, low: f64, high: f64) -> i64 {
        self.random.log_uniform(low, high) as i64
    }

    fn lane(&mut self) -> u32 {
        u32::try_from(self.random.below(u64::from(self.flow.lanes))).unwrap_or(0)
    }

    fn broker(&mut self) -> BrokerNumber {
        i32::from(self.number(1, 3)).min(BROKERS)
    }

    /// The target more often: there the promise is kept or broken.
    fn cluster(&mut self) -> Cluster {
        if self.random.chance(0.35) { Cluster::Source } else { Cluster::Target }
    }

    fn source_partition(&mut self) -> (String, i32) {
        let topic = self.random.one_of(self.topics).clone();
        let partition = self.random.between(0, i64::from(topic.partitions) - 1);
        (topic.name, i32::try_from(partition).unwrap_or(0))
    }

    fn partition_of(&mut self, cluster: Cluster) -> (String, i32) {
        if cluster == Cluster::Target && self.random.chance(0.4) {
            return (LEDGER.to_owned(), i32::try_from(self.lane()).unwrap_or(0));
        }
        let (topic, partition) = self.source_partition();
        match cluster {
            Cluster::Source => (topic, partition),
            Cluster::Target => (format!("{}{topic}", self.flow.target_prefix), partition),
        }
    }
}
