use super::{Answer, ByTopic, Handle, Options, ask, elements};
use crate::ffi::codes;
use crate::ffi::error::ClientError;
use crate::ffi::text::{c_string, text_of};
use rdkafka::bindings as rd;
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
) -> Result<ByTopic<TopicDescription>, ClientError> {
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
) -> Result<ByTopic<bool>, ClientError> {
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout).authorized_operations();
    let answer = describe(client, names, &options, timeout)?;
    Ok(answered(&answer, |topic| {
        let mut count = 0;
        // SAFETY: the topic belongs to the answer, which is alive; the operations to the topic.
        let operations = unsafe {
            let operations = rd::rd_kafka_TopicDescription_authorized_operations(topic, &mut count);
            if operations.is_null() { &[] } else { std::slice::from_raw_parts(operations, count) }
        };
        operations.contains(&rd::rd_kafka_AclOperation_t::RD_KAFKA_ACL_OPERATION_WRITE)
    }))
}

fn describe(
    client: &impl Handle,
    names: &[&str],
    options: &Options,
    timeout: Duration,
) -> Result<Answer, ClientError> {
    let names: Vec<CString> = names.iter().map(|name| c_string(name)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    ask(client, "DescribeTopics", timeout, |queue| {
        // SAFETY: client, options, queue and names are alive; librdkafka copies names and options, and the
        // collection is destroyed here.
        unsafe {
            let topics = rd::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
            rd::rd_kafka_DescribeTopics(client.handle(), topics, options.ptr(), queue);
            rd::rd_kafka_TopicCollection_destroy(topics);
        }
    })
}

/// What `read` finds for each topic of an answer to DescribeTopics that is no error.
fn answered<T>(answer: &Answer, read: impl Fn(*const rd::rd_kafka_TopicDescription_t) -> T) -> ByTopic<T> {
    // SAFETY: the answer is alive and is one to DescribeTopics; what is read from it is copied.
    unsafe {
        let result = rd::rd_kafka_event_DescribeTopics_result(answer.event());
        let mut count = 0;
        let topics = rd::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        // A topic that the broker left out of its answer is a null here.
        let topics = elements(topics, count).iter().filter(|topic| !topic.is_null());
        topics
            .map(|&topic| {
                let name = text_of(rd::rd_kafka_TopicDescription_name(topic));
                (name, check(topic).map(|()| read(topic)))
            })
            .collect()
    }
}

/// # Safety
/// `topic` belongs to a live answer.
unsafe fn check(topic: *const rd::rd_kafka_TopicDescription_t) -> Result<(), ClientError> {
    // SAFETY: as the caller promises; the text is copied.
    unsafe {
        let failure = rd::rd_kafka_TopicDescription_error(topic);
        ClientError::check_told(codes::error_code(failure), || text_of(rd::rd_kafka_error_string(failure)))
    }
}

/// # Safety
/// `topic` belongs to a live answer.
unsafe fn description(topic: *const rd::rd_kafka_TopicDescription_t) -> TopicDescription {
    // SAFETY: as the caller promises.
    unsafe {
        let id = rd::rd_kafka_TopicDescription_topic_id(topic);
        let most = rd::rd_kafka_Uuid_most_significant_bits(id);
        let least = rd::rd_kafka_Uuid_least_significant_bits(id);
        let mut partitions = 0;
        rd::rd_kafka_TopicDescription_partitions(topic, &mut partitions);
        TopicDescription {
            id: (u128::from(most.cast_unsigned()) << 64) | u128::from(least.cast_unsigned()),
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
            internal: rd::rd_kafka_TopicDescription_is_internal(topic) != 0,
        }
    }
}
