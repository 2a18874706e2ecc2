use super::{ByTopic, Options, ask, elements, outcomes};
use crate::ffi::error::ClientError;
use crate::ffi::text::{c_string, text_of};
use rdkafka::bindings as rd;
use rdkafka::client::NativeClient;
use rdkafka::types::RDKafkaAdminOp::{RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, RD_KAFKA_ADMIN_OP_CREATETOPICS};
use std::ffi::{c_char, c_int};
use std::ptr::NonNull;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicToCreate<'a> {
    pub name: &'a str,
    pub partitions: u32,
    pub replication_factor: Option<i16>,
    pub config: Vec<(&'a str, &'a str)>,
}

struct NewTopic(NonNull<rd::rd_kafka_NewTopic_t>);

impl NewTopic {
    fn new(topic: &TopicToCreate<'_>) -> Result<NewTopic, ClientError> {
        let name = c_string(topic.name)?;
        let partitions = c_int::try_from(topic.partitions).unwrap_or(c_int::MAX);
        let replicas = topic.replication_factor.map_or(-1, c_int::from);
        let mut why: [c_char; 256] = [0; 256];
        // SAFETY: the name is alive and copied; the buffer is as long as said.
        let made = unsafe {
            rd::rd_kafka_NewTopic_new(name.as_ptr(), partitions, replicas, why.as_mut_ptr(), why.len())
        };
        let made = NewTopic(NonNull::new(made).ok_or_else(|| invalid(&why))?);
        for (name, value) in &topic.config {
            let (name, value) = (c_string(name)?, c_string(value)?);
            // SAFETY: the topic is alive; both strings are copied.
            let code =
                unsafe { rd::rd_kafka_NewTopic_set_config(made.0.as_ptr(), name.as_ptr(), value.as_ptr()) };
            ClientError::check_told(code, || format!("{name:?}={value:?}"))?;
        }
        Ok(made)
    }
}

impl Drop for NewTopic {
    fn drop(&mut self) {
        // SAFETY: made by rd_kafka_NewTopic_new and destroyed only here.
        unsafe { rd::rd_kafka_NewTopic_destroy(self.0.as_ptr()) }
    }
}

struct NewPartitions(NonNull<rd::rd_kafka_NewPartitions_t>);

impl NewPartitions {
    fn new(topic: &str, total: u32) -> Result<NewPartitions, ClientError> {
        let name = c_string(topic)?;
        let mut why: [c_char; 256] = [0; 256];
        // SAFETY: the name is alive and copied; the buffer is as long as said.
        let made = unsafe {
            rd::rd_kafka_NewPartitions_new(name.as_ptr(), total as usize, why.as_mut_ptr(), why.len())
        };
        Ok(NewPartitions(NonNull::new(made).ok_or_else(|| invalid(&why))?))
    }
}

impl Drop for NewPartitions {
    fn drop(&mut self) {
        // SAFETY: made by rd_kafka_NewPartitions_new and destroyed only here.
        unsafe { rd::rd_kafka_NewPartitions_destroy(self.0.as_ptr()) }
    }
}

fn invalid(why: &[c_char]) -> ClientError {
    // SAFETY: librdkafka ends what it writes into its error buffers with a zero byte, and they start zeroed.
    ClientError::invalid(unsafe { text_of(why.as_ptr()) })
}

/// CreateTopics. What librdkafka refuses before asking is refused for that topic alone.
pub(crate) fn create_topics(
    client: &NativeClient,
    topics: &[TopicToCreate<'_>],
    timeout: Duration,
) -> Result<ByTopic<()>, ClientError> {
    let (made, mut done) = split(topics.iter().map(|topic| (topic.name, NewTopic::new(topic))));
    if made.is_empty() {
        return Ok(done);
    }
    let mut pointers: Vec<_> = made.iter().map(|topic| topic.0.as_ptr()).collect();
    let options =
        Options::new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout).operation_timeout(timeout * 8 / 10);
    let answer = ask(client, "CreateTopics", timeout, |queue| {
        // SAFETY: client, topics, options and queue are alive; librdkafka copies what it keeps.
        unsafe {
            rd::rd_kafka_CreateTopics(
                client.ptr(),
                pointers.as_mut_ptr(),
                pointers.len(),
                options.ptr(),
                queue,
            );
        }
    })?;
    // SAFETY: the answer is alive and is one to CreateTopics.
    unsafe {
        let result = rd::rd_kafka_event_CreateTopics_result(answer.event());
        let mut count = 0;
        let results = rd::rd_kafka_CreateTopics_result_topics(result, &mut count);
        done.extend(outcomes(elements(results, count)));
    }
    Ok(done)
}

/// CreatePartitions, each topic up to a total.
pub(crate) fn create_partitions(
    client: &NativeClient,
    topics: &[(&str, u32)],
    timeout: Duration,
) -> Result<ByTopic<()>, ClientError> {
    let (made, mut done) =
        split(topics.iter().map(|&(topic, total)| (topic, NewPartitions::new(topic, total))));
    if made.is_empty() {
        return Ok(done);
    }
    let mut pointers: Vec<_> = made.iter().map(|topic| topic.0.as_ptr()).collect();
    let options =
        Options::new(client, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, timeout).operation_timeout(timeout * 8 / 10);
    let answer = ask(client, "CreatePartitions", timeout, |queue| {
        // SAFETY: client, topics, options and queue are alive; librdkafka copies what it keeps.
        unsafe {
            rd::rd_kafka_CreatePartitions(
                client.ptr(),
                pointers.as_mut_ptr(),
                pointers.len(),
                options.ptr(),
                queue,
            );
        }
    })?;
    // SAFETY: the answer is alive and is one to CreatePartitions.
    unsafe {
        let result = rd::rd_kafka_event_CreatePartitions_result(answer.event());
        let mut count = 0;
        let results = rd::rd_kafka_CreatePartitions_result_topics(result, &mut count);
        done.extend(outcomes(elements(results, count)));
    }
    Ok(done)
}

/// What can be asked for, and the outcomes of what cannot.
fn split<'a, T>(items: impl Iterator<Item = (&'a str, Result<T, ClientError>)>) -> (Vec<T>, ByTopic<()>) {
    let (mut made, mut refused) = (Vec::new(), Vec::new());
    for (name, item) in items {
        match item {
            Ok(item) => made.push(item),
            Err(error) => refused.push((name.into(), Err(error))),
        }
    }
    (made, refused)
}
