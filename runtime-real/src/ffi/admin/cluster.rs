use super::{Answer, Options, ask, elements};
use crate::ffi::codes;
use crate::ffi::error::ClientError;
use crate::ffi::text::{milliseconds, text_of, text_or_null};
use rdkafka::bindings as rd;
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
) -> Result<ClusterDescription, ClientError> {
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER, timeout);
    let answer = ask(client, "DescribeCluster", timeout, |queue| {
        // SAFETY: client, options and queue are alive; librdkafka copies the options.
        unsafe { rd::rd_kafka_DescribeCluster(client.ptr(), options.ptr(), queue) }
    })?;
    Ok(description(&answer))
}

fn description(answer: &Answer) -> ClusterDescription {
    // SAFETY: the answer is alive and is one to DescribeCluster; what is read from it is copied.
    unsafe {
        let result = rd::rd_kafka_event_DescribeCluster_result(answer.event());
        let mut count = 0;
        let nodes = rd::rd_kafka_DescribeCluster_result_nodes(result, &mut count);
        ClusterDescription {
            id: text_of(rd::rd_kafka_DescribeCluster_result_cluster_id(result)),
            brokers: u32::try_from(elements(nodes, count).len()).unwrap_or(u32::MAX),
        }
    }
}

/// Waits for a broker that answers, whichever.
///
/// Unlike an admin request, which waits for one certain broker and, while that one is down, has librdkafka
/// connect to it over and over without a pause: every change of the broker's state makes the request ask
/// for the connection again, and that ask sets the reconnection's backoff to nothing (2.12.1,
/// rd_kafka_admin_common_get_controller and RD_KAFKA_OP_CONNECT).
pub(crate) fn find_broker(client: &NativeClient, timeout: Duration) -> Result<(), ClientError> {
    let mut metadata = std::ptr::null();
    // SAFETY: the client is alive, no topic is named, and what was given is destroyed.
    let code = unsafe {
        let none = std::ptr::null_mut();
        let code = codes::metadata(client.ptr(), none, &mut metadata, milliseconds(timeout));
        if !metadata.is_null() {
            rd::rd_kafka_metadata_destroy(metadata);
        }
        code
    };
    ClientError::check_told(code, || "no broker answers".into())
}

/// The cluster id of the last metadata that the client received, without asking.
pub(crate) fn cluster_id(client: &NativeClient) -> Option<String> {
    // SAFETY: the client is alive. The string is ours, is copied and then freed by its own allocator.
    unsafe {
        let id = rd::rd_kafka_clusterid(client.ptr(), 0);
        let copy = text_or_null(id);
        if !id.is_null() {
            rd::rd_kafka_mem_free(client.ptr(), id.cast());
        }
        copy
    }
}
