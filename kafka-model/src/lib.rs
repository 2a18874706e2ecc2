//! A Kafka cluster as a pure state machine: what is true when a mirror is put to the test.
//!
//! Requests go in, Kafka's own, each addressed to a broker; replies come out. No socket, no clock, no thread, no
//! randomness: time is an argument, and faults are calls (`admin.rs`). The cluster is a value: clone it to
//! branch, hash it to recognise it, compare it to prove that two runs were one.
//!
//! ```text
//! handle(now, header, request) ─┐                       ┌─ Reply { token, outcome }, now or later
//! tick(now)  (next_deadline)   ─┼─► Cluster ────────────┤
//! crash_broker(now, ..) ...    ─┘   api/  one file an API, what it models and what it does not
//!                                   partition, log/, producer_state     leaders, replicas, records
//!                                   transaction/, group/, coordinators  who decides what
//!                                   views, history                      for an oracle only
//! ```
//!
//! What is true of Kafka here is what Kafka's source says; each file names the class it follows.

mod access;
mod admin;
pub mod api;
mod brokers;
mod cluster;
mod config;
mod coordinators;
mod faults;
pub mod group;
mod history;
mod ids;
mod log;
mod partition;
mod producer_state;
#[cfg(test)]
mod properties;
mod timer;
mod topics;
pub mod transaction;
mod views;
mod waiting;

pub use access::Resource;
pub use api::{Request, Response};
pub use cluster::{Cluster, Outcome, Reply, RequestHeader};
pub use config::{BadSetting, CleanupPolicy, ClusterConfig, TopicConfig};
pub use coordinators::{CoordinatorKind, GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC};
pub use faults::BrokerFaults;
pub use history::{History, LogEvent};
pub use ids::{
    BrokerId, ClientId, GroupId, InstanceId, MemberId, Millis, Offset, RequestToken, TransactionalId,
};
pub use timer::Timer;
pub use views::{CommittedRecord, Fate, PartitionView};

pub(crate) use kafka_types::{ErrorCode, TopicPartition};
