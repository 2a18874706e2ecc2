//! Requests and responses, one API a file: Kafka's own, with names of topics in full and lists flat.
//!
//! A file opens with what it models and what it does not.

pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod api_versions;
pub mod configs;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_groups;
pub mod describe_producers;
pub mod describe_transactions;
pub mod end_txn;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_offsets;
pub mod metadata;
pub mod offset_commit;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sync_group;
pub mod txn_offset_commit;

use crate::{Cluster, RequestHeader};

macro_rules! requests {
    ($($name:ident($request:ty, $response:ty),)*) => {
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Request {
            $($name($request),)*
        }

        /// Of the same kind as its request.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Response {
            $($name($response),)*
        }

        impl Request {
            /// Kafka's name of the API.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Request::$name(_) => stringify!($name),)*
                }
            }
        }

        $(
            impl From<$request> for Request {
                fn from(request: $request) -> Request {
                    Request::$name(request)
                }
            }
        )*
    };
}

requests! {
    ApiVersions(api_versions::ApiVersionsRequest, api_versions::ApiVersionsResponse),
    Metadata(metadata::MetadataRequest, metadata::MetadataResponse),
    CreateTopics(create_topics::CreateTopicsRequest, create_topics::CreateTopicsResponse),
    DeleteTopics(delete_topics::DeleteTopicsRequest, delete_topics::DeleteTopicsResponse),
    CreatePartitions(create_partitions::CreatePartitionsRequest, create_partitions::CreatePartitionsResponse),
    DescribeConfigs(configs::DescribeConfigsRequest, configs::DescribeConfigsResponse),
    IncrementalAlterConfigs(configs::IncrementalAlterConfigsRequest, configs::IncrementalAlterConfigsResponse),
    Produce(produce::ProduceRequest, produce::ProduceResponse),
    Fetch(fetch::FetchRequest, fetch::FetchResponse),
    ListOffsets(list_offsets::ListOffsetsRequest, list_offsets::ListOffsetsResponse),
    OffsetForLeaderEpoch(
        offset_for_leader_epoch::OffsetForLeaderEpochRequest,
        offset_for_leader_epoch::OffsetForLeaderEpochResponse
    ),
    DeleteRecords(delete_records::DeleteRecordsRequest, delete_records::DeleteRecordsResponse),
    FindCoordinator(find_coordinator::FindCoordinatorRequest, find_coordinator::FindCoordinatorResponse),
    InitProducerId(init_producer_id::InitProducerIdRequest, init_producer_id::InitProducerIdResponse),
    AddPartitionsToTxn(
        add_partitions_to_txn::AddPartitionsToTxnRequest,
        add_partitions_to_txn::AddPartitionsToTxnResponse
    ),
    AddOffsetsToTxn(add_offsets_to_txn::AddOffsetsToTxnRequest, add_offsets_to_txn::AddOffsetsToTxnResponse),
    EndTxn(end_txn::EndTxnRequest, end_txn::EndTxnResponse),
    TxnOffsetCommit(txn_offset_commit::TxnOffsetCommitRequest, txn_offset_commit::TxnOffsetCommitResponse),
    OffsetCommit(offset_commit::OffsetCommitRequest, offset_commit::OffsetCommitResponse),
    OffsetFetch(offset_fetch::OffsetFetchRequest, offset_fetch::OffsetFetchResponse),
    JoinGroup(join_group::JoinGroupRequest, join_group::JoinGroupResponse),
    SyncGroup(sync_group::SyncGroupRequest, sync_group::SyncGroupResponse),
    Heartbeat(heartbeat::HeartbeatRequest, heartbeat::HeartbeatResponse),
    LeaveGroup(leave_group::LeaveGroupRequest, leave_group::LeaveGroupResponse),
    DescribeGroups(describe_groups::DescribeGroupsRequest, describe_groups::DescribeGroupsResponse),
    ListGroups(describe_groups::ListGroupsRequest, describe_groups::ListGroupsResponse),
    DeleteGroups(delete_groups::DeleteGroupsRequest, delete_groups::DeleteGroupsResponse),
    DescribeProducers(
        describe_producers::DescribeProducersRequest,
        describe_producers::DescribeProducersResponse
    ),
    DescribeTransactions(
        describe_transactions::DescribeTransactionsRequest,
        describe_transactions::DescribeTransactionsResponse
    ),
}

impl Cluster {
    pub(crate) fn dispatch(&mut self, header: RequestHeader, request: Request) {
        let response = match request {
            Request::Produce(request) => return self.produce(header, request),
            Request::Fetch(request) => return self.fetch(header, request),
            Request::DeleteRecords(request) => return self.delete_records(header, request),
            Request::JoinGroup(request) => return self.join_group(header, request),
            Request::SyncGroup(request) => return self.sync_group(header, request),
            Request::ApiVersions(request) => Response::ApiVersions(self.api_versions(&request)),
            Request::Metadata(request) => Response::Metadata(self.metadata(request)),
            Request::CreateTopics(request) => Response::CreateTopics(self.create_topics(request)),
            Request::DeleteTopics(request) => Response::DeleteTopics(self.delete_topics(request)),
            Request::CreatePartitions(request) => Response::CreatePartitions(self.create_partitions(request)),
            Request::DescribeConfigs(request) => Response::DescribeConfigs(self.describe_configs(request)),
            Request::IncrementalAlterConfigs(request) => {
                Response::IncrementalAlterConfigs(self.incremental_alter_configs(request))
            }
            Request::ListOffsets(request) => Response::ListOffsets(self.list_offsets(&header, request)),
            Request::OffsetForLeaderEpoch(request) => {
                Response::OffsetForLeaderEpoch(self.offset_for_leader_epoch(&header, request))
            }
            Request::FindCoordinator(request) => Response::FindCoordinator(self.find_coordinator(request)),
            Request::InitProducerId(request) => {
                Response::InitProducerId(self.init_producer_id(&header, &request))
            }
            Request::AddPartitionsToTxn(request) => {
                Response::AddPartitionsToTxn(self.add_partitions_to_txn(&header, request))
            }
            Request::AddOffsetsToTxn(request) => {
                Response::AddOffsetsToTxn(self.add_offsets_to_txn(&header, &request))
            }
            Request::EndTxn(request) => Response::EndTxn(self.end_txn(&header, &request)),
            Request::TxnOffsetCommit(request) => {
                Response::TxnOffsetCommit(self.txn_offset_commit(&header, request))
            }
            Request::OffsetCommit(request) => Response::OffsetCommit(self.offset_commit(&header, request)),
            Request::OffsetFetch(request) => Response::OffsetFetch(self.offset_fetch(&header, request)),
            Request::Heartbeat(request) => Response::Heartbeat(self.heartbeat(&header, &request)),
            Request::LeaveGroup(request) => Response::LeaveGroup(self.leave_group(&header, request)),
            Request::DescribeGroups(request) => {
                Response::DescribeGroups(self.describe_groups(&header, request))
            }
            Request::ListGroups(request) => Response::ListGroups(self.list_groups(&header, &request)),
            Request::DeleteGroups(request) => Response::DeleteGroups(self.delete_groups(&header, request)),
            Request::DescribeProducers(request) => {
                Response::DescribeProducers(self.describe_producers(&header, request))
            }
            Request::DescribeTransactions(request) => {
                Response::DescribeTransactions(self.describe_transactions(&header, request))
            }
        };
        self.respond(header, response);
    }
}
