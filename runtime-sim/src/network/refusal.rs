//! Answers with an error in them: made from a request that was never looked at, or from an answer that said yes.

use kafka_model::api;
use kafka_model::{Request, Response};
use kafka_types::{ErrorCode, LeaderEpoch, NO_PRODUCER_EPOCH, NO_PRODUCER_ID};

/// What a broker answers that refuses all of `request` for one reason.
pub(super) fn refuse(request: &Request, code: ErrorCode) -> Response {
    let mut response = blank(request);
    spoil(&mut response, code);
    response
}

/// The same answer with this error in all its parts.
pub(super) fn spoil(response: &mut Response, code: ErrorCode) {
    if let Response::Produce(produce) = response {
        produce.partitions.iter_mut().for_each(|partition| partition.base_offset = -1);
    }
    codes_mut(response, |place| *place = code);
}

/// Every error in it.
pub(super) fn codes(response: &Response, mut see: impl FnMut(ErrorCode)) {
    let mut seen = |code: ErrorCode| {
        if code.is_error() {
            see(code);
        }
    };
    match response {
        Response::ApiVersions(_) => {}
        Response::Metadata(it) => it.topics.iter().for_each(|it| seen(it.error_code)),
        Response::CreateTopics(it) => it.topics.iter().for_each(|it| seen(it.error_code)),
        Response::CreatePartitions(it) => it.topics.iter().for_each(|it| seen(it.1)),
        Response::DescribeConfigs(it) => it.topics.iter().for_each(|it| seen(it.error_code)),
        Response::Produce(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::Fetch(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::ListOffsets(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::OffsetForLeaderEpoch(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::FindCoordinator(it) => it.coordinators.iter().for_each(|it| seen(it.error_code)),
        Response::InitProducerId(it) => seen(it.error_code),
        Response::AddPartitionsToTxn(it) => it.partitions.iter().for_each(|it| seen(it.1)),
        Response::EndTxn(it) => seen(it.error_code),
        Response::JoinGroup(it) => seen(it.error_code),
        Response::SyncGroup(it) => seen(it.error_code),
        Response::Heartbeat(it) => seen(it.error_code),
        Response::LeaveGroup(it) => seen(it.error_code),
        Response::DescribeProducers(it) => it.partitions.iter().for_each(|it| seen(it.error_code)),
        Response::DescribeTransactions(it) => it.transactions.iter().for_each(|it| seen(it.error_code)),
        // Not a mirror's: nobody counts their errors.
        Response::DeleteTopics(_)
        | Response::IncrementalAlterConfigs(_)
        | Response::DeleteRecords(_)
        | Response::AddOffsetsToTxn(_)
        | Response::TxnOffsetCommit(_)
        | Response::OffsetCommit(_)
        | Response::OffsetFetch(_)
        | Response::DescribeGroups(_)
        | Response::ListGroups(_)
        | Response::DeleteGroups(_) => {}
    }
}

fn codes_mut(response: &mut Response, mut set: impl FnMut(&mut ErrorCode)) {
    match response {
        Response::Metadata(it) => it.topics.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::CreateTopics(it) => it.topics.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::CreatePartitions(it) => it.topics.iter_mut().for_each(|it| set(&mut it.1)),
        Response::DescribeConfigs(it) => it.topics.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::Produce(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::Fetch(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::ListOffsets(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::OffsetForLeaderEpoch(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::FindCoordinator(it) => it.coordinators.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::InitProducerId(it) => set(&mut it.error_code),
        Response::AddPartitionsToTxn(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.1)),
        Response::EndTxn(it) => set(&mut it.error_code),
        Response::JoinGroup(it) => set(&mut it.error_code),
        Response::SyncGroup(it) => set(&mut it.error_code),
        Response::Heartbeat(it) => set(&mut it.error_code),
        Response::LeaveGroup(it) => set(&mut it.error_code),
        Response::DescribeProducers(it) => it.partitions.iter_mut().for_each(|it| set(&mut it.error_code)),
        Response::DescribeTransactions(it) => {
            it.transactions.iter_mut().for_each(|it| set(&mut it.error_code))
        }
        Response::ApiVersions(_)
        | Response::DeleteTopics(_)
        | Response::IncrementalAlterConfigs(_)
        | Response::DeleteRecords(_)
        | Response::AddOffsetsToTxn(_)
        | Response::TxnOffsetCommit(_)
        | Response::OffsetCommit(_)
        | Response::OffsetFetch(_)
        | Response::DescribeGroups(_)
        | Response::ListGroups(_)
        | Response::DeleteGroups(_) => unreachable!("no error is made up for it"),
    }
}

/// An answer with a place for an error wherever the request has a part.
fn blank(request: &Request) -> Response {
    let none = ErrorCode::None;
    match request {
        Request::CreateTopics(it) => {
            let created = |topic: &api::create_topics::NewTopic| api::create_topics::CreatedTopic {
                name: topic.name.clone(),
                topic_id: None,
                error_code: none,
            };
            let topics = it.topics.iter().map(created).collect();
            Response::CreateTopics(api::create_topics::CreateTopicsResponse { topics })
        }
        Request::CreatePartitions(it) => {
            let topics = it.topics.iter().map(|(name, _)| (name.clone(), none)).collect();
            Response::CreatePartitions(api::create_partitions::CreatePartitionsResponse { topics })
        }
        Request::DescribeConfigs(it) => {
            let described = |topic: &kafka_types::TopicName| api::configs::DescribedConfigs {
                topic: topic.clone(),
                error_code: none,
                configs: std::collections::BTreeMap::new(),
            };
            let topics = it.topics.iter().map(described).collect();
            Response::DescribeConfigs(api::configs::DescribeConfigsResponse { topics })
        }
        Request::Produce(it) => Response::Produce(blank_produce(it)),
        Request::Fetch(it) => Response::Fetch(blank_fetch(it)),
        Request::ListOffsets(it) => Response::ListOffsets(blank_list_offsets(it)),
        Request::OffsetForLeaderEpoch(it) => {
            let ended = |asked: &api::offset_for_leader_epoch::OffsetForLeaderEpochPartition| {
                api::offset_for_leader_epoch::EpochEndOffset {
                    topic_partition: asked.topic_partition.clone(),
                    error_code: none,
                    leader_epoch: None,
                    end_offset: -1,
                }
            };
            let partitions = it.partitions.iter().map(ended).collect();
            let response = api::offset_for_leader_epoch::OffsetForLeaderEpochResponse { partitions };
            Response::OffsetForLeaderEpoch(response)
        }
        Request::FindCoordinator(it) => {
            let found = |key: &String| api::find_coordinator::FoundCoordinator {
                key: key.clone(),
                error_code: none,
                broker: None,
            };
            let coordinators = it.keys.iter().map(found).collect();
            Response::FindCoordinator(api::find_coordinator::FindCoordinatorResponse { coordinators })
        }
        Request::InitProducerId(_) => {
            Response::InitProducerId(api::init_producer_id::InitProducerIdResponse {
                error_code: none,
                producer_id: NO_PRODUCER_ID,
                producer_epoch: NO_PRODUCER_EPOCH,
            })
        }
        Request::AddPartitionsToTxn(it) => {
            let partitions = it.partitions.iter().map(|tp| (tp.clone(), none)).collect();
            Response::AddPartitionsToTxn(api::add_partitions_to_txn::AddPartitionsToTxnResponse {
                partitions,
            })
        }
        Request::EndTxn(_) => Response::EndTxn(api::end_txn::EndTxnResponse { error_code: none }),
        Request::JoinGroup(it) => Response::JoinGroup(api::join_group::JoinGroupResponse {
            error_code: none,
            generation_id: -1,
            protocol_type: None,
            protocol_name: None,
            leader: kafka_model::MemberId::default(),
            skip_assignment: false,
            member_id: it.member_id.clone(),
            members: Vec::new(),
        }),
        Request::SyncGroup(_) => Response::SyncGroup(api::sync_group::SyncGroupResponse {
            error_code: none,
            protocol_type: None,
            protocol_name: None,
            assignment: bytes::Bytes::new(),
        }),
        Request::Heartbeat(_) => Response::Heartbeat(api::heartbeat::HeartbeatResponse { error_code: none }),
        Request::LeaveGroup(_) => {
            let members = Vec::new();
            Response::LeaveGroup(api::leave_group::LeaveGroupResponse { error_code: none, members })
        }
        Request::DescribeProducers(it) => {
            let described = |tp: &kafka_types::TopicPartition| api::describe_producers::DescribedProducers {
                topic_partition: tp.clone(),
                error_code: none,
                active_producers: Vec::new(),
            };
            let partitions = it.partitions.iter().map(described).collect();
            Response::DescribeProducers(api::describe_producers::DescribeProducersResponse { partitions })
        }
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

fn blank_produce(request: &api::produce::ProduceRequest) -> api::produce::ProduceResponse {
    let answered = |asked: &api::produce::ProducePartition| api::produce::ProducePartitionResponse {
        topic_partition: asked.topic_partition.clone(),
        error_code: ErrorCode::None,
        base_offset: -1,
        log_append_time: None,
        log_start_offset: -1,
        record_errors: Vec::new(),
        current_leader: None,
    };
    api::produce::ProduceResponse { partitions: request.partitions.iter().map(answered).collect() }
}

fn blank_fetch(request: &api::fetch::FetchRequest) -> api::fetch::FetchResponse {
    let answered = |asked: &api::fetch::FetchPartition| api::fetch::FetchPartitionResponse {
        topic_partition: asked.topic_partition.clone(),
        error_code: ErrorCode::None,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        diverging_epoch: None,
        current_leader: None,
        aborted_transactions: Vec::new(),
        records: Vec::new(),
    };
    api::fetch::FetchResponse { partitions: request.partitions.iter().map(answered).collect() }
}

fn blank_list_offsets(
    request: &api::list_offsets::ListOffsetsRequest,
) -> api::list_offsets::ListOffsetsResponse {
    let answered =
        |asked: &api::list_offsets::ListOffsetsPartition| api::list_offsets::ListOffsetsPartitionResponse {
            topic_partition: asked.topic_partition.clone(),
            error_code: ErrorCode::None,
            timestamp: -1,
            offset: -1,
            leader_epoch: None::<LeaderEpoch>,
        };
    let partitions = request.partitions.iter().map(answered).collect();
    api::list_offsets::ListOffsetsResponse { partitions }
}
