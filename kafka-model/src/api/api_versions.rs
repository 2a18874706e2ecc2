//! ApiVersions: what a client may send.
//!
//! Modelled: a table of the APIs and the versions whose meaning the model knows, those of Kafka 3.9 where
//! transactions are of version 1.
//! Not modelled: features (none is finalised, `transaction.version` least of all). An embedded broker narrows
//! the table to what its codec can read.

use crate::Cluster;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApiVersionsRequest {}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApiVersionsResponse {
    pub apis: Vec<ApiVersion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion {
    pub name: &'static str,
    /// Kafka's number of the API.
    pub key: i16,
    pub min: i16,
    pub max: i16,
}

const fn api(name: &'static str, key: i16, min: i16, max: i16) -> ApiVersion {
    ApiVersion { name, key, min, max }
}

const APIS: [ApiVersion; 29] = [
    api("Produce", 0, 3, 11),
    api("Fetch", 1, 4, 17),
    api("ListOffsets", 2, 1, 9),
    api("Metadata", 3, 0, 12),
    api("OffsetCommit", 8, 2, 9),
    api("OffsetFetch", 9, 1, 9),
    api("FindCoordinator", 10, 0, 6),
    api("JoinGroup", 11, 0, 9),
    api("Heartbeat", 12, 0, 4),
    api("LeaveGroup", 13, 0, 5),
    api("SyncGroup", 14, 0, 5),
    api("DescribeGroups", 15, 0, 5),
    api("ListGroups", 16, 0, 5),
    api("ApiVersions", 18, 0, 4),
    api("CreateTopics", 19, 2, 7),
    api("DeleteTopics", 20, 1, 6),
    api("DeleteRecords", 21, 0, 2),
    api("InitProducerId", 22, 0, 5),
    api("OffsetForLeaderEpoch", 23, 2, 4),
    api("AddPartitionsToTxn", 24, 0, 3),
    api("AddOffsetsToTxn", 25, 0, 4),
    api("EndTxn", 26, 0, 4),
    api("TxnOffsetCommit", 28, 0, 4),
    api("DescribeConfigs", 32, 1, 4),
    api("CreatePartitions", 37, 0, 3),
    api("DeleteGroups", 42, 0, 2),
    api("IncrementalAlterConfigs", 44, 0, 1),
    api("DescribeProducers", 61, 0, 0),
    api("DescribeTransactions", 65, 0, 0),
];

impl Cluster {
    pub(crate) fn api_versions(&self, _: &ApiVersionsRequest) -> ApiVersionsResponse {
        ApiVersionsResponse { apis: APIS.to_vec() }
    }
}
