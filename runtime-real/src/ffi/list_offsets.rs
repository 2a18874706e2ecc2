//! The two ends of partitions, many at once (ListOffsets).

use super::assigned_consumer::{PartitionList, StartAt};
use super::client::{Client, Queue, millis};
use super::error::{Code, RdError, code_of, text_of};
use kafka_types::{Partition, TopicName};
use rdkafka::bindings as rd;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The log's start.
    Start,
    /// The high watermark.
    Latest,
}

pub(crate) type Offsets = BTreeMap<(TopicName, Partition), Result<i64, RdError>>;

/// One end of each partition, as its leader tells. A partition without an answer is absent.
pub(crate) fn list_offsets(
    client: &Arc<Client>,
    partitions: &[(TopicName, Partition)],
    end: End,
    timeout: Duration,
) -> Result<Offsets, RdError> {
    if partitions.is_empty() {
        return Ok(BTreeMap::new());
    }
    let offset = match end {
        End::Start => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
        End::Latest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64,
    };
    let starts = partitions.iter().map(|(topic, partition)| StartAt {
        topic: topic.as_str(),
        partition: partition.0,
        offset,
        epoch: -1,
    });
    let list = PartitionList::new(starts);
    let queue = Queue::new(Arc::clone(client));
    let options = Options::new(client, timeout);
    // SAFETY: all handles are valid; list and options are copied by the call.
    unsafe { rd::rd_kafka_ListOffsets(client.ptr(), list.0.as_ptr(), options.0.as_ptr(), queue.ptr()) }
    // The request has its own time-out; the second more is for an answer that is under way.
    // SAFETY: the queue is valid; the event, if any, is ours.
    let event = unsafe { rd::rd_kafka_queue_poll(queue.ptr(), millis(timeout + Duration::from_secs(1))) };
    match NonNull::new(event) {
        Some(event) => Event(event).offsets(),
        None => Err(RdError::of_code(Code::RD_KAFKA_RESP_ERR__TIMED_OUT)),
    }
}

struct Options(NonNull<rd::rd_kafka_AdminOptions_t>);

impl Options {
    fn new(client: &Client, timeout: Duration) -> Options {
        let level = rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED;
        // SAFETY: the handle is valid; the options are made here. Neither setter refuses these values, and
        // without an error buffer a refusal would leave the default.
        unsafe {
            let api = rd::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS;
            let options = rd::rd_kafka_AdminOptions_new(client.ptr(), api);
            let _ = RdError::take(rd::rd_kafka_AdminOptions_set_isolation_level(options, level));
            rd::rd_kafka_AdminOptions_set_request_timeout(options, millis(timeout), ptr::null_mut(), 0);
            Options(NonNull::new(options).expect("options are made without fail"))
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, used for the last time.
        unsafe { rd::rd_kafka_AdminOptions_destroy(self.0.as_ptr()) }
    }
}

struct Event(NonNull<rd::rd_kafka_event_t>);

impl Event {
    fn offsets(&self) -> Result<Offsets, RdError> {
        let event = self.0.as_ptr();
        // SAFETY: the event is valid; all that is read from it lives as long as it does and is copied.
        unsafe {
            let code = rd::rd_kafka_event_error(event);
            if code != Code::RD_KAFKA_RESP_ERR_NO_ERROR {
                return Err(RdError::new(code, text_of(rd::rd_kafka_event_error_string(event))));
            }
            let result = rd::rd_kafka_event_ListOffsets_result(event);
            if result.is_null() {
                return Err(RdError::of_code(Code::RD_KAFKA_RESP_ERR__INVALID_TYPE));
            }
            let mut count = 0;
            let infos = rd::rd_kafka_ListOffsets_result_infos(result, &mut count);
            let found = (0..count).map(|i| {
                let info = rd::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(i));
                let topic = CStr::from_ptr((*info).topic).to_string_lossy().into_owned();
                // Read as a number: see `code_of`.
                let code = code_of(ptr::addr_of!((*info).err).cast::<i32>().read());
                let place = (TopicName::new(topic), Partition((*info).partition));
                (place, RdError::check(code).map(|()| (*info).offset))
            });
            Ok(found.collect())
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: ours, used for the last time.
        unsafe { rd::rd_kafka_event_destroy(self.0.as_ptr()) }
    }
}
