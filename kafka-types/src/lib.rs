//! Kafka's own nouns as types: offsets, epochs, topic ids, names and partitions.
//!
//! A leaf crate. It holds no behaviour beyond what keeps its values apart: a source offset can never be
//! compared with, added to or assigned from a target offset.

mod epoch;
mod names;
mod offset;
mod topic_id;

pub use epoch::LeaderEpoch;
pub use names::{Partition, SourcePartition, TargetPartition, TopicName};
pub use offset::{SourceOffset, TargetOffset};
pub use topic_id::TopicId;
