use super::{Answer, ByTopic, Options, ask, c_string, elements, error, text};
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
    let names: Vec<CString> = names.iter().map(|name| c_string(name)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout);
    let answer = ask(client, "DescribeTopics", timeout, |queue| {
        // SAFETY: client, options, queue and names are alive; librdkafka copies names and options, and the
        // collection is destroyed here.
        unsafe {
            let topics = rk::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
            rk::rd_kafka_DescribeTopics(client.ptr(), topics, options.ptr(), queue);
            rk::rd_kafka_TopicCollection_destroy(topics);
        }
    })?;
    Ok(descriptions(&answer))
}

fn descriptions(answer: &Answer) -> ByTopic<TopicDescription> {
    // SAFETY: the answer is alive and is one to DescribeTopics; what is read from it is copied.
    unsafe {
        let result = rk::rd_kafka_event_DescribeTopics_result(answer.event());
        let mut count = 0;
        let topics = rk::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        // A topic that the broker left out of its answer is a null here.
        elements(topics, count).iter().filter(|topic| !topic.is_null()).map(|&topic| one(topic)).collect()
    }
}

/// # Safety
/// `topic` belongs to a live answer.
unsafe fn one(topic: *const rk::rd_kafka_TopicDescription_t) -> (String, Result<TopicDescription, ApiError>) {
    // SAFETY: as the caller promises.
    unsafe {
        let name = text(rk::rd_kafka_TopicDescription_name(topic)).unwrap_or_default();
        let failure = rk::rd_kafka_TopicDescription_error(topic);
        if !failure.is_null() {
            let message = text(rk::rd_kafka_error_string(failure)).unwrap_or_default();
            if let Some(error) = error(rk::rd_kafka_error_code(failure), message) {
                return (name, Err(error));
            }
        }
        let id = rk::rd_kafka_TopicDescription_topic_id(topic);
        let most = rk::rd_kafka_Uuid_most_significant_bits(id);
        let least = rk::rd_kafka_Uuid_least_significant_bits(id);
        let mut partitions = 0;
        rk::rd_kafka_TopicDescription_partitions(topic, &mut partitions);
        let description = TopicDescription {
            id: (u128::from(most.cast_unsigned()) << 64) | u128::from(least.cast_unsigned()),
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
            internal: rk::rd_kafka_TopicDescription_is_internal(topic) != 0,
        };
        (name, Ok(description))
    }
}
