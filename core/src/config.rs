//! A flow's configuration after validation: what a [`Mirror`](crate::Mirror) is made from.

use crate::route::{Rename, TopicFilter};
use crate::time::Timestamp;
use kafka_types::TopicName;
use std::fmt;
use std::time::Duration;

/// A flow's name: group, ledger and transactional ids derive from it.
///
/// Lower and upper case letters, digits, `-` and `_`: a `.` is not allowed, since Kafka's metrics make `a.b`
/// and `a_b` one name and so broker-side tools would mix two flows up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a flow name: use 1 to 100 letters, digits, '-' or '_'")]
pub struct BadFlowName(pub String);

impl FlowName {
    pub fn new(name: &str) -> Result<FlowName, BadFlowName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let valid = (1..=100).contains(&name.len()) && name.chars().all(legal);
        valid.then(|| FlowName(name.into())).ok_or_else(|| BadFlowName(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The flow's ledger, a topic on the target.
    pub fn ledger(&self) -> TopicName {
        TopicName::new(format!("verbatim.{}.ledger.internal", self.0))
    }

    /// The group of the flow's instances, on the target.
    pub fn group(&self) -> String {
        format!("verbatim-{}", self.0)
    }

    /// The transactional id under which a lane always produces.
    pub fn transactional_id(&self, lane: crate::LaneId) -> String {
        format!("verbatim-{}-{lane}", self.0)
    }
}

impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where copying starts in what exists when the flow first starts. Later topics start at their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    Earliest,
    Latest,
    Time(Timestamp),
}

/// The end of a bounded run, fixed when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// What exists at start: each partition's high watermark.
    End,
    /// Records before this time.
    Time(Timestamp),
}

/// One flow, as one instance runs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    pub name: FlowName,
    /// Names this process in claims; differs between any two processes, restarts included.
    pub incarnation: String,
    pub filter: TopicFilter,
    pub rename: Rename,
    /// How soon new topics and partitions are seen.
    pub refresh: Duration,
    /// Of topics that the mirror creates; the target's own default where absent.
    pub replication_factor: Option<i16>,
    pub start: Start,
    /// How long a transaction collects records before it is committed.
    pub commit_interval: Duration,
    /// At least 1; fixed when the ledger is created.
    pub lanes: u32,
    /// Of the ledger; min(3, brokers) where absent.
    pub ledger_replication_factor: Option<i16>,
    /// Bytes of records that may lie between source and target at once, over all lanes.
    pub intake_bytes_max: u64,
    pub until: Option<Until>,
    /// How long a bounded run waits for source transactions that are open below its end.
    pub wait_open: Duration,
    pub limits: Limits,
}

/// Bounds in time and size that are the same for every flow unless a test says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How long a cluster may stay unreachable before a start is given up.
    pub connect_max: Duration,
    /// Records in one transaction.
    pub transaction_records_max: u64,
    /// Bytes in one transaction.
    pub transaction_bytes_max: u64,
    /// How long replaying a lane may take before the ledger is named as blocked: well below `unable_max`, at which
    /// the lane is left and the replay with it.
    pub replay_max: Duration,
    /// How long a recalled lane may take to settle before it is given up unsettled.
    pub release_max: Duration,
    /// How long stopping may take before what is open is aborted.
    pub stop_max: Duration,
    /// How long an owner may fail to make a lane progress before it leaves the group to others (S6).
    pub unable_max: Duration,
    /// Pauses between tries: doubling from the first to the second.
    pub retry_min: Duration,
    pub retry_max: Duration,
    /// How long a lane that another instance fenced waits for the group to say so, before it joins anew (H9).
    pub regroup_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect_max: Duration::from_secs(30),
            transaction_records_max: 100_000,
            transaction_bytes_max: 64 << 20,
            replay_max: Duration::from_secs(30),
            release_max: Duration::from_secs(5),
            stop_max: Duration::from_secs(8),
            unable_max: Duration::from_secs(60),
            retry_min: Duration::from_millis(100),
            retry_max: Duration::from_secs(5),
            regroup_max: Duration::from_secs(12),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_names_make_legal_kafka_names() {
        let flow = FlowName::new("orders-dr_2").unwrap();
        assert_eq!(flow.ledger().as_str(), "verbatim.orders-dr_2.ledger.internal");
        assert!(flow.ledger().is_legal());
        assert_eq!(flow.group(), "verbatim-orders-dr_2");
        assert_eq!(flow.transactional_id(crate::LaneId(3)), "verbatim-orders-dr_2-3");
        for bad in ["", "a.b", "a b", "ä", &"x".repeat(101)] {
            assert!(FlowName::new(bad).is_err(), "{bad:?}");
        }
    }
}
