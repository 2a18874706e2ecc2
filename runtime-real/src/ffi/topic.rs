//! A producer's handle on a topic: found once, not by name for each record.

use super::client::Client;
use super::codes::{self, Code, code_at};
use super::error::ClientError;
use super::text::{c_string, milliseconds};
use kafka_types::TopicName;
use rdkafka::bindings as rd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Topic {
    handle: NonNull<rd::rd_kafka_topic_t>,
    /// Kept: a topic must be given back before its client goes.
    client: Arc<Client>,
}

// SAFETY: topic handles are counted and locked by librdkafka.
unsafe impl Send for Topic {}
// SAFETY: as above.
unsafe impl Sync for Topic {}

impl Topic {
    pub(super) fn new(client: &Arc<Client>, name: &TopicName) -> Result<Topic, ClientError> {
        let c_name = c_string(name.as_str())?;
        // SAFETY: the handle is valid; the name is copied; null stands for the default configuration.
        let handle = unsafe { rd::rd_kafka_topic_new(client.ptr(), c_name.as_ptr(), ptr::null_mut()) };
        match NonNull::new(handle) {
            Some(handle) => Ok(Topic { handle, client: Arc::clone(client) }),
            None => Err(ClientError::of_code(codes::last_error())),
        }
    }

    pub(super) fn ptr(&self) -> *mut rd::rd_kafka_topic_t {
        self.handle.as_ptr()
    }

    /// How many partitions the client finds in the topic now; its own view of the topic is renewed by asking. To be
    /// asked from any thread: it blocks until a broker has answered.
    pub(crate) fn partitions(&self, timeout: Duration) -> Result<u32, ClientError> {
        let mut metadata = ptr::null();
        // SAFETY: client and topic are valid and belong together; what is given is destroyed below.
        let asked =
            unsafe { codes::metadata(self.client.ptr(), self.ptr(), &mut metadata, milliseconds(timeout)) };
        ClientError::check(asked)?;
        // SAFETY: on success `metadata` points to the topic's metadata, which is read and then destroyed.
        unsafe {
            let found = (*metadata).topics;
            let answer = match (*metadata).topic_cnt {
                0 => Err(ClientError::of_code(Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)),
                _ => ClientError::check(code_at(&raw const (*found).err))
                    .map(|()| u32::try_from((*found).partition_cnt).unwrap_or(0)),
            };
            rd::rd_kafka_metadata_destroy(metadata);
            answer
        }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: the reference is ours and used for the last time; its client still lives.
        unsafe { rd::rd_kafka_topic_destroy(self.ptr()) }
    }
}
