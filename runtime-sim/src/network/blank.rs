//! Answers to requests that were never looked at: a place for an error wherever the request has a part.

use kafka_model::api::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};
use kafka_model::api::configs::{DescribeConfigsRequest, DescribeConfigsResponse, DescribedConfigs};
use kafka_model::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse};
use kafka_model::api::create_topics::{CreateTopicsRequest, CreateTopicsResponse, CreatedTopic};
use kafka_model::api::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, DescribedProducers,
};
use kafka_model::api::end_txn::EndTxnResponse;
use kafka_model::api::fetch::{FetchPartitionResponse, FetchRequest, FetchResponse};
use kafka_model::api::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse, FoundCoordinator};
use kafka_model::api::heartbeat::HeartbeatResponse;
use kafka_model::api::init_producer_id::InitProducerIdResponse;
use kafka_model::api::join_group::{JoinGroupRequest, JoinGroupResponse};
use kafka_model::api::leave_group::LeaveGroupResponse;
use kafka_model::api::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse};
use kafka_model::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};
use kafka_model::api::produce::{ProducePartitionResponse, ProduceRequest, ProduceResponse};
use kafka_model::api::sync_group::SyncGroupResponse;
use kafka_model::{MemberId, Request, Response};
use kafka_types::{ErrorCode, NO_PRODUCER_EPOCH, NO_PRODUCER_ID};
use std::collections::BTreeMap;

const NONE: ErrorCode = ErrorCode::None;

pub(super) fn blank(request: &Request) -> Response {
    match request {
        Request::CreateTopics(request) => Response::CreateTopics(create_topics(request)),
        Request::CreatePartitions(request) => Response::CreatePartitions(create_partitions(request)),
        Request::DescribeConfigs(request) => Response::DescribeConfigs(describe_configs(request)),
        Request::Produce(request) => Response::Produce(produce(request)),
        Request::Fetch(request) => Response::Fetch(fetch(request)),
        Request::ListOffsets(request) => Response::ListOffsets(list_offsets(request)),
        Request::OffsetForLeaderEpoch(request) => Response::OffsetForLeaderEpoch(ends_of_epochs(request)),
        Request::FindCoordinator(request) => Response::FindCoordinator(find_coordinator(request)),
        Request::InitProducerId(_) => Response::InitProducerId(InitProducerIdResponse {
            error_code: NONE,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
        }),
        Request::AddPartitionsToTxn(request) => Response::AddPartitionsToTxn(add_partitions(request)),
        Request::EndTxn(_) => Response::EndTxn(EndTxnResponse { error_code: NONE }),
        Request::JoinGroup(request) => Response::JoinGroup(join_group(request)),
        Request::SyncGroup(_) => Response::SyncGroup(SyncGroupResponse {
            error_code: NONE,
            protocol_type: None,
            protocol_name: None,
            assignment: bytes::Bytes::new(),
        }),
        Request::Heartbeat(_) => Response::Heartbeat(HeartbeatResponse { error_code: NONE }),
        Request::LeaveGroup(_) => {
            Response::LeaveGroup(LeaveGroupResponse { error_code: NONE, members: Vec::new() })
        }
        Request::DescribeProducers(request) => Response::DescribeProducers(describe_producers(request)),
        Request::Metadata(_)
        | Request::DescribeTransactions(_)
        | Request::ApiVersions(_)
        | Request::DeleteTopics(_)
        | Request::IncrementalAlterConfigs(_)
        | Request::DeleteRecords(_)
        | Request::AddOffsetsToTxn(_)
        | Request::TxnOffsetCommit(_)
        | Request::OffsetCommit(_)
        | Request::OffsetFetch(_)
        | Request::DescribeGroups(_)
        | Request::ListGroups(_)
        | Request::DeleteGroups(_) => unreachable!("it is never refused unseen"),
    }
}

fn create_topics(request: &CreateTopicsRequest) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|topic| CreatedTopic {
        name: topic.name.clone(),
        topic_id: None,
        error_code: NONE,
    });
    CreateTopicsResponse { topics: topics.collect() }
}

fn create_partitions(request: &CreatePartitionsRequest) -> CreatePartitionsResponse {
    CreatePartitionsResponse { topics: request.topics.iter().map(|(name, _)| (name.clone(), NONE)).collect() }
}

fn describe_configs(request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
    let topics = request.topics.iter().map(|topic| DescribedConfigs {
        topic: topic.clone(),
        error_code: NONE,
        configs: BTreeMap::new(),
    });
    DescribeConfigsResponse { topics: topics.collect() }
}

fn produce(request: &ProduceRequest) -> ProduceResponse {
    let partitions = request.partitions.iter().map(|asked| ProducePartitionResponse {
        topic_partition: asked.topic_partition.clone(),
        error_code: NONE,
        base_offset: -1,
        log_append_time: None,
        log_start_offset: -1,
        record_errors: Vec::new(),
        current_leader: None,
    });
    ProduceResponse { partitions: partitions.collect() }
}

fn fetch(request: &FetchRequest) -> FetchResponse {
    let partitions = request.partitions.iter().map(|asked| FetchPartitionResponse {
        topic_partition: asked.topic_partition.clone(),
        error_code: NONE,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        diverging_epoch: None,
        current_leader: None,
        aborted_transactions: Vec::new(),
        records: Vec::new(),
    });
    FetchResponse { partitions: partitions.collect() }
}

fn list_offsets(request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let partitions = request.partitions.iter().map(|asked| ListOffsetsPartitionResponse {
        topic_partition: asked.topic_partition.clone(),
        error_code: NONE,
        timestamp: -1,
        offset: -1,
        leader_epoch: None,
    });
    ListOffsetsResponse { partitions: partitions.collect() }
}

fn ends_of_epochs(request: &OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse {
    let partitions = request.partitions.iter().map(|asked| EpochEndOffset {
        topic_partition: asked.topic_partition.clone(),
        error_code: NONE,
        leader_epoch: None,
        end_offset: -1,
    });
    OffsetForLeaderEpochResponse { partitions: partitions.collect() }
}

fn find_coordinator(request: &FindCoordinatorRequest) -> FindCoordinatorResponse {
    let found = |key: &String| FoundCoordinator { key: key.clone(), error_code: NONE, broker: None };
    FindCoordinatorResponse { coordinators: request.keys.iter().map(found).collect() }
}

fn add_partitions(request: &AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse {
    AddPartitionsToTxnResponse {
        partitions: request.partitions.iter().map(|tp| (tp.clone(), NONE)).collect(),
    }
}

fn join_group(request: &JoinGroupRequest) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: NONE,
        generation_id: -1,
        protocol_type: None,
        protocol_name: None,
        leader: MemberId::default(),
        skip_assignment: false,
        member_id: request.member_id.clone(),
        members: Vec::new(),
    }
}

fn describe_producers(request: &DescribeProducersRequest) -> DescribeProducersResponse {
    let partitions = request.partitions.iter().map(|tp| DescribedProducers {
        topic_partition: tp.clone(),
        error_code: NONE,
        active_producers: Vec::new(),
    });
    DescribeProducersResponse { partitions: partitions.collect() }
}
