use super::{Answer, Options, ask, c_string, elements, error, text};
use crate::trouble::ApiError;
use rdkafka::bindings as rk;
use rdkafka::client::NativeClient;
use rdkafka::types::RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_LISTOFFSETS;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::time::Duration;

/// Which offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spec {
    Earliest,
    /// The last stable offset or the high watermark, depending on the isolation level.
    Latest,
    /// Of the first record of this time or later.
    Time(i64),
}

impl Spec {
    fn wire(self) -> i64 {
        match self {
            Spec::Earliest => rk::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
            Spec::Latest => rk::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64,
            // Times before 1970 would be read as one of the above.
            Spec::Time(time) => time.max(0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

/// Per partition: its offset, `None` where no record is that young.
pub(crate) type Offsets = Vec<((String, i32), Result<Option<i64>, ApiError>)>;

struct Partitions(NonNull<rk::rd_kafka_topic_partition_list_t>);

impl Partitions {
    fn new(partitions: &[(&str, i32)], spec: Spec) -> Result<Partitions, ApiError> {
        let size = c_int::try_from(partitions.len()).unwrap_or(c_int::MAX);
        // SAFETY: a size is all it takes.
        let list = unsafe { rk::rd_kafka_topic_partition_list_new(size) };
        let list = Partitions(NonNull::new(list).expect("a new list is never null"));
        for &(topic, partition) in partitions {
            let topic = c_string(topic)?;
            // SAFETY: the list is alive; the topic is copied; the element returned is valid until the next
            // one is added.
            unsafe {
                let element =
                    rk::rd_kafka_topic_partition_list_add(list.0.as_ptr(), topic.as_ptr(), partition);
                (*element).offset = spec.wire();
            }
        }
        Ok(list)
    }
}

impl Drop for Partitions {
    fn drop(&mut self) {
        // SAFETY: made by rd_kafka_topic_partition_list_new and destroyed only here.
        unsafe { rk::rd_kafka_topic_partition_list_destroy(self.0.as_ptr()) }
    }
}

/// ListOffsets: one request to each leader. `partitions` must differ from each other.
pub(crate) fn list_offsets(
    client: &NativeClient,
    partitions: &[(&str, i32)],
    spec: Spec,
    isolation: Isolation,
    timeout: Duration,
) -> Result<Offsets, ApiError> {
    let list = Partitions::new(partitions, spec)?;
    let level = match isolation {
        Isolation::ReadUncommitted => {
            rk::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
        }
        Isolation::ReadCommitted => rk::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED,
    };
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout).isolation(level);
    let answer = ask(client, "ListOffsets", timeout, |queue| {
        // SAFETY: client, list, options and queue are alive; librdkafka copies what it keeps.
        unsafe { rk::rd_kafka_ListOffsets(client.ptr(), list.0.as_ptr(), options.ptr(), queue) }
    })?;
    Ok(offsets(&answer))
}

fn offsets(answer: &Answer) -> Offsets {
    // SAFETY: the answer is alive and is one to ListOffsets; what is read from it is copied.
    unsafe {
        let result = rk::rd_kafka_event_ListOffsets_result(answer.event());
        let mut count = 0;
        let infos = rk::rd_kafka_ListOffsets_result_infos(result, &mut count);
        elements(infos, count).iter().map(|&info| one(info)).collect()
    }
}

/// # Safety
/// `info` belongs to a live answer.
unsafe fn one(
    info: *const rk::rd_kafka_ListOffsetsResultInfo_t,
) -> ((String, i32), Result<Option<i64>, ApiError>) {
    // SAFETY: as the caller promises.
    unsafe {
        let place = &*rk::rd_kafka_ListOffsetsResultInfo_topic_partition(info);
        let topic = text(place.topic).unwrap_or_default();
        let offset = match error(place.err, String::new()) {
            Some(error) => Err(error),
            None => Ok((0 <= place.offset).then_some(place.offset)),
        };
        ((topic, place.partition), offset)
    }
}
