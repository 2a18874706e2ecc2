//! All of this crate's `unsafe`: the parts of librdkafka that rust-rdkafka does not reach, or reaches at a loss.
//!
//! What leaves this module is safe to use in any order. One rule makes it so: whatever librdkafka hands out
//! (messages, queues, topics) keeps its client alive, and a client is destroyed on a thread of its own once
//! nothing refers to it any more.

pub(crate) mod admin;
mod assigned_consumer;
mod client;
mod codes;
mod end_txns;
mod error;
pub(crate) mod group;
mod message;
mod partition_list;
mod text;
mod topic;
mod transactional_producer;

pub(crate) use assigned_consumer::AssignedConsumer;
pub(crate) use client::{Liveness, Waker};
pub(crate) use codes::{Code, describe};
pub(crate) use error::ClientError;
pub(crate) use message::OwnedMessage;
pub(crate) use partition_list::StartAt;
pub(crate) use topic::Topic;
pub(crate) use transactional_producer::{Begun, Delivery, TransactionalProducer};
