//! DescribeProducers (KIP-664): what a partition remembers of its producers.
//!
//! Modelled: everything that the response holds.
//! Not modelled: nothing more.

use crate::{Cluster, Millis, Offset, RequestHeader};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeProducersRequest {
    pub partitions: Vec<TopicPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeProducersResponse {
    pub partitions: Vec<DescribedProducers>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedProducers {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    pub active_producers: Vec<DescribedProducer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedProducer {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// Minus one when the last batch was a marker of another epoch.
    pub last_sequence: i32,
    pub last_timestamp: Millis,
    pub coordinator_epoch: i32,
    /// Minus one without an open transaction.
    pub current_transaction_start_offset: Offset,
}

impl Cluster {
    pub(crate) fn describe_producers(
        &self,
        header: &RequestHeader,
        request: DescribeProducersRequest,
    ) -> DescribeProducersResponse {
        let describe = |tp: TopicPartition| {
            let checked = self.check_leader(&tp, header.broker);
            let producers = self.topics.partition(&tp).filter(|_| checked.is_ok());
            let active_producers = producers.into_iter().flat_map(|it| it.log.producers.iter());
            DescribedProducers {
                error_code: checked.err().unwrap_or(ErrorCode::None),
                active_producers: active_producers
                    .map(|(producer_id, state)| DescribedProducer {
                        producer_id,
                        producer_epoch: state.epoch,
                        last_sequence: state.last_sequence(),
                        last_timestamp: state.last_timestamp,
                        coordinator_epoch: state.coordinator_epoch,
                        current_transaction_start_offset: state.transaction_first_offset.unwrap_or(-1),
                    })
                    .collect(),
                topic_partition: tp,
            }
        };
        DescribeProducersResponse { partitions: request.partitions.into_iter().map(describe).collect() }
    }
}
