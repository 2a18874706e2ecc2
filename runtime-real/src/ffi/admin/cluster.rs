use super::{Answer, Options, ask, elements, text};
use crate::trouble::ApiError;
use rdkafka::bindings as rk;
use rdkafka::client::NativeClient;
use rdkafka::types::RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterDescription {
    /// Empty where the brokers give none.
    pub id: String,
    pub brokers: u32,
}

/// DescribeCluster (a Metadata request).
pub(crate) fn describe_cluster(
    client: &NativeClient,
    timeout: Duration,
) -> Result<ClusterDescription, ApiError> {
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER, timeout);
    let answer = ask(client, "DescribeCluster", timeout, |queue| {
        // SAFETY: client, options and queue are alive; librdkafka copies the options.
        unsafe { rk::rd_kafka_DescribeCluster(client.ptr(), options.ptr(), queue) }
    })?;
    Ok(description(&answer))
}

fn description(answer: &Answer) -> ClusterDescription {
    // SAFETY: the answer is alive and is one to DescribeCluster; what is read from it is copied.
    unsafe {
        let result = rk::rd_kafka_event_DescribeCluster_result(answer.event());
        let mut count = 0;
        let nodes = rk::rd_kafka_DescribeCluster_result_nodes(result, &mut count);
        ClusterDescription {
            id: text(rk::rd_kafka_DescribeCluster_result_cluster_id(result)).unwrap_or_default(),
            brokers: u32::try_from(elements(nodes, count).len()).unwrap_or(u32::MAX),
        }
    }
}

/// The cluster id of the last metadata that the client received, without asking.
pub(crate) fn cluster_id(client: &NativeClient) -> Option<String> {
    // SAFETY: the client is alive. The string is ours, is copied and then freed by its own allocator.
    unsafe {
        let id = rk::rd_kafka_clusterid(client.ptr(), 0);
        let copy = text(id);
        if !id.is_null() {
            rk::rd_kafka_mem_free(client.ptr(), id.cast());
        }
        copy
    }
}
