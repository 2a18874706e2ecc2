use super::{Answer, ByTopic, Options, ask, elements};
use crate::ffi::codes;
use crate::ffi::error::ClientError;
use crate::ffi::text::{c_string, text_of, text_or_null};
use rdkafka::bindings as rd;
use rdkafka::client::NativeClient;
use rdkafka::types::RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS;
use std::ffi::CString;
use std::ptr::NonNull;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    pub name: String,
    /// Absent where it is sensitive or null.
    pub value: Option<String>,
    /// Set on the topic itself.
    pub on_topic: bool,
}

/// A resource to describe, destroyed when dropped.
struct Resource(NonNull<rd::rd_kafka_ConfigResource_t>);

impl Resource {
    fn topic(name: &CString) -> Resource {
        // SAFETY: the name is alive and is copied.
        let resource = unsafe {
            rd::rd_kafka_ConfigResource_new(
                rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC,
                name.as_ptr(),
            )
        };
        Resource(NonNull::new(resource).expect("a topic is a valid resource"))
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        // SAFETY: made by rd_kafka_ConfigResource_new and destroyed only here.
        unsafe { rd::rd_kafka_ConfigResource_destroy(self.0.as_ptr()) }
    }
}

/// DescribeConfigs of topics: all in one request.
pub(crate) fn describe_configs(
    client: &NativeClient,
    topics: &[&str],
    timeout: Duration,
) -> Result<ByTopic<Vec<ConfigEntry>>, ClientError> {
    if topics.is_empty() {
        return Ok(Vec::new());
    }
    let resources = topics
        .iter()
        .map(|topic| c_string(topic).map(|name| Resource::topic(&name)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut pointers: Vec<_> = resources.iter().map(|resource| resource.0.as_ptr()).collect();
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout);
    let answer = ask(client, "DescribeConfigs", timeout, |queue| {
        // SAFETY: client, resources, options and queue are alive; librdkafka copies what it keeps.
        unsafe {
            rd::rd_kafka_DescribeConfigs(
                client.ptr(),
                pointers.as_mut_ptr(),
                pointers.len(),
                options.ptr(),
                queue,
            );
        }
    })?;
    Ok(entries(&answer))
}

fn entries(answer: &Answer) -> ByTopic<Vec<ConfigEntry>> {
    // SAFETY: the answer is alive and is one to DescribeConfigs; what is read from it is copied.
    unsafe {
        let result = rd::rd_kafka_event_DescribeConfigs_result(answer.event());
        let mut count = 0;
        let resources = rd::rd_kafka_DescribeConfigs_result_resources(result, &mut count);
        elements(resources, count).iter().map(|&resource| one(resource)).collect()
    }
}

/// # Safety
/// `resource` belongs to a live answer.
unsafe fn one(
    resource: *const rd::rd_kafka_ConfigResource_t,
) -> (String, Result<Vec<ConfigEntry>, ClientError>) {
    // SAFETY: as the caller promises.
    unsafe {
        let name = text_of(rd::rd_kafka_ConfigResource_name(resource));
        let text = || text_of(rd::rd_kafka_ConfigResource_error_string(resource));
        if let Err(error) = ClientError::check_told(codes::config_resource_error(resource), text) {
            return (name, Err(error));
        }
        let mut count = 0;
        let entries = rd::rd_kafka_ConfigResource_configs(resource, &mut count);
        let entry = |&entry| ConfigEntry {
            name: text_of(rd::rd_kafka_ConfigEntry_name(entry)),
            value: text_or_null(rd::rd_kafka_ConfigEntry_value(entry)),
            on_topic: rd::rd_kafka_ConfigEntry_source(entry)
                == rd::rd_kafka_ConfigSource_t::RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG,
        };
        (name, Ok(elements(entries, count).iter().map(entry).collect()))
    }
}
