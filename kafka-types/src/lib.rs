//! Kafka's own nouns as types: offsets, epochs, topic ids, names and partitions.
//!
//! A leaf crate. It holds no behaviour beyond what keeps its values apart: a source offset can never be
//! compared with, added to or assigned from a target offset.

mod epoch;
mod error_code;
mod names;
mod offset;
mod record;
mod topic_id;

pub use epoch::{LeaderEpoch, OffsetAndEpoch};
pub use error_code::ErrorCode;
pub use names::{Partition, SourcePartition, TargetPartition, TopicName, TopicPartition};
pub use offset::{SourceOffset, TargetOffset};
pub use record::{
    BATCH_HEADER_BYTES, Compression, EndMarker, Header, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE,
    NO_TIMESTAMP, ProducerEpoch, ProducerId, Record, RecordBatch, TimestampType, TransactionResult,
};
pub use topic_id::TopicId;
