use runtime_sim::{Moment, Slot};
use serde::{Deserialize, Serialize};

pub type BrokerNumber = i32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cluster {
    Source,
    Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Urgency {
    /// SIGTERM.
    Settle,
    /// A second one.
    Now,
}

/// What an administrator can take away beside a right to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// To the flow's group.
    Group,
    /// To a lane's transactional id.
    Lane(u32),
    /// To be an idempotent producer on the source.
    SourceCluster,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Start {
        slot: Slot,
    },
    Crash {
        slot: Slot,
    },
    /// Dies the next time that it comes to the moment.
    CrashAt {
        slot: Slot,
        moment: Moment,
    },
    /// When the slot's process next comes to the moment, the target broker dies that last acknowledged records.
    CrashBrokerAt {
        slot: Slot,
        moment: Moment,
    },
    /// The slot's machine and the brokers of a cluster, or that one, do not reach each other; or do again.
    CutOff {
        slot: Slot,
        cluster: Cluster,
        broker: Option<BrokerNumber>,
        /// What is sent arrives, and only the answers are lost.
        answers_only: bool,
        is_cut: bool,
    },
    /// The slot's machine never reaches that cluster again: the others do its work.
    CutOffForGood {
        slot: Slot,
        cluster: Cluster,
    },
    Pause {
        slot: Slot,
    },
    Resume {
        slot: Slot,
    },
    /// The worker of the slot's process is stuck, or goes on; its clients go on all the while.
    StallWorker {
        slot: Slot,
        is_stalled: bool,
    },
    Stop {
        slot: Slot,
        urgency: Urgency,
    },
    CrashBroker {
        cluster: Cluster,
        broker: BrokerNumber,
    },
    RestartBroker {
        cluster: Cluster,
        broker: BrokerNumber,
    },
    /// To whichever in-sync replica comes next.
    MoveLeader {
        cluster: Cluster,
        topic: String,
        partition: i32,
    },
    MoveTransactionCoordinator {
        lane: u32,
        to: BrokerNumber,
    },
    MoveGroupCoordinator {
        to: BrokerNumber,
    },
    StallReplica {
        cluster: Cluster,
        topic: String,
        partition: i32,
        broker: BrokerNumber,
        is_stalled: bool,
    },
    /// To the replica that is furthest behind.
    UncleanElection {
        #[serde(default = "of_source")]
        cluster: Cluster,
        topic: String,
        partition: i32,
    },
    /// An administrator takes the clients' right to a topic away, or gives it back.
    DenyTopic {
        cluster: Cluster,
        topic: String,
        is_denied: bool,
    },
    /// The same of a right to something else.
    DenyRight {
        right: Right,
        is_denied: bool,
    },
    /// Somebody else writes a record of their own to a copy.
    ForeignWrite {
        topic: String,
        partition: i32,
    },
    /// A batch in which no client can make out a record comes to stand in the source's log.
    DamagedBatch {
        topic: String,
        partition: i32,
    },
    /// Deletes so much of what a source partition holds.
    DeleteRecords {
        topic: String,
        partition: i32,
        percent: u8,
    },
    Compact {
        topic: String,
        partition: i32,
    },
    /// The wall clock of the slot's machine is off by so much from now on.
    SkewClock {
        slot: Slot,
        milliseconds: i64,
    },
    CreateTopic {
        topic: String,
        partitions: i32,
    },
    GrowTopic {
        topic: String,
        to: i32,
    },
    DeleteTopic {
        cluster: Cluster,
        topic: String,
    },
    RecreateTopic {
        cluster: Cluster,
        topic: String,
        partitions: i32,
    },
    /// The same, when a process next comes to the moment.
    RecreateTopicAt {
        moment: Moment,
        cluster: Cluster,
        topic: String,
        partitions: i32,
    },
    /// An operator gives the ledger more partitions, which nobody may do.
    GrowLedger {
        partitions: i32,
    },
    FillDisk {
        cluster: Cluster,
        broker: BrokerNumber,
        is_full: bool,
    },
    /// All instances.
    Throttle {
        cluster: Cluster,
        milliseconds: i64,
    },
    /// Throws the n-th member out of the group.
    ExpireMember {
        member: u8,
    },
    /// A tool deletes the group; a broker refuses while it has members.
    DeleteGroup,
    /// A tool commits offsets into the group.
    CommitForeignOffsets,
    /// A tool removes the n-th member from the group.
    RemoveMember {
        member: u8,
    },
    /// A tool initialises a lane's transactional id, which fences whoever has the lane.
    FenceLane {
        lane: u32,
    },
    CompactLedger {
        lane: u32,
    },
    ExpireTransactionalId {
        lane: u32,
    },
    ExpireProducers {
        cluster: Cluster,
    },
    DelayMarkers {
        cluster: Cluster,
        topic: String,
        partition: i32,
        milliseconds: Option<i64>,
    },
}

impl Action {
    /// What it does, whatever to.
    pub fn name(&self) -> String {
        let told = format!("{self:?}");
        told.split([' ', '{']).next().unwrap_or_default().to_owned()
    }
}

/// Before there were elections on the target, plans named no cluster.
fn of_source() -> Cluster {
    Cluster::Source
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedAction {
    pub at_ms: i64,
    pub action: Action,
}
