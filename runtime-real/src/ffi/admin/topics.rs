use super::{Answer, ByTopic, Handle, Options, ask, c_string, elements, error, text};
use crate::trouble::ApiError;
use rdkafka::bindings as rk;
use rdkafka::client::NativeClient;
use rdkafka::types::RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
use std::ffi::CString;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicDescription {
    pub id: u128,
    pub partitions: u32,
    pub internal: bool,
}

/// DescribeTopics: one Metadata request for all `names`, which must differ from each other.
pub(crate) fn describe_topics(
    client: &NativeClient,
    names: &[&str],
    timeout: Duration,
) -> Result<ByTopic<TopicDescription>, ApiError> {
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout);
    let answer = describe(client, names, &options, timeout)?;
    Ok(answered(&answer, |topic| {
        // SAFETY: the topic belongs to the answer, which is alive.
        unsafe { description(topic) }
    }))
}

/// Whether the client may write to each of `names`, which must differ from each other: the same request,
/// which needs DESCRIBE.
pub(crate) fn writable_topics(
    client: &impl Handle,
    names: &[&str],
    timeout: Duration,
) -> Result<ByTopic<bool>, ApiError> {
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout).authorized_operations();
    let answer = describe(client, names, &options, timeout)?;
    Ok(answered(&answer, |topic| {
        let mut count = 0;
        // SAFETY: the topic belongs to the answer, which is alive; the operations to the topic.
        let operations = unsafe {
            let operations = rk::rd_kafka_TopicDescription_authorized_operations(topic, &mut count);
            if operations.is_null() { &[] } else { std::slice::from_raw_parts(operations, count) }
        };
        operations.contains(&rk::rd_kafka_AclOperation_t::RD_KAFKA_ACL_OPERATION_WRITE)
    }))
}

fn describe(
    client: &impl Handle,
    names: &[&str],
    options: &Options,
    timeout: Duration,
) -> Result<Answer, ApiError> {
    let names: Vec<CString> = names.iter().map(|name| c_string(name)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    ask(client, "DescribeTopics", timeout, |queue| {
        // SAFETY: client, options, queue and names are alive; librdkafka copies names and options, and the
        // collection is destroyed here.
        unsafe {
            let topics = rk::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
            rk::rd_kafka_DescribeTopics(client.handle(), topics, options.ptr(), queue);
            rk::rd_kafka_TopicCollection_destroy(topics);
        }
    })
}

/// What `read` finds for each topic of an answer to DescribeTopics that is no error.
fn answered<T>(answer: &Answer, read: impl Fn(*const rk::rd_kafka_TopicDescription_t) -> T) -> ByTopic<T> {
    // SAFETY: the answer is alive and is one to DescribeTopics; what is read from it is copied.
    unsafe {
        let result = rk::rd_kafka_event_DescribeTopics_result(answer.event());
        let mut count = 0;
        let topics = rk::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        // A topic that the broker left out of its answer is a null here.
        let topics = elements(topics, count).iter().filter(|topic| !topic.is_null());
        topics
            .map(|&topic| {
                let name = text(rk::rd_kafka_TopicDescription_name(topic)).unwrap_or_default();
                (name, failure(topic).map_or_else(|| Ok(read(topic)), Err))
            })
            .collect()
    }
}

/// # Safety
/// `topic` belongs to a live answer.
unsafe fn failure(topic: *const rk::rd_kafka_TopicDescription_t) -> Option<ApiError> {
    // SAFETY: as the caller promises; the text is copied.
    unsafe {
        let failure = rk::rd_kafka_TopicDescription_error(topic);
        if failure.is_null() {
            return None;
        }
        let message = text(rk::rd_kafka_error_string(failure)).unwrap_or_default();
        error(rk::rd_kafka_error_code(failure), message)
    }
}

/// # Safety
/// `topic` belongs to a live answer.
unsafe fn description(topic: *const rk::rd_kafka_TopicDescription_t) -> TopicDescription {
    // SAFETY: as the caller promises.
    unsafe {
        let id = rk::rd_kafka_TopicDescription_topic_id(topic);
        let most = rk::rd_kafka_Uuid_most_significant_bits(id);
        let least = rk::rd_kafka_Uuid_least_significant_bits(id);
        let mut partitions = 0;
        rk::rd_kafka_TopicDescription_partitions(topic, &mut partitions);
        TopicDescription {
            id: (u128::from(most.cast_unsigned()) << 64) | u128::from(least.cast_unsigned()),
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
            internal: rk::rd_kafka_TopicDescription_is_internal(topic) != 0,
        }
    }
}
