use super::{Answer, Handle, Options, ask, elements};
use crate::ffi::codes::code_at;
use crate::ffi::error::ClientError;
use crate::ffi::partition_list::{PartitionList, StartAt};
use crate::ffi::text::text_of;
use kafka_types::{LeaderEpoch, Partition, TopicName};
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_LISTOFFSETS;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spec {
    /// The log's start.
    Earliest,
    /// The last stable offset or the high watermark, depending on the isolation level.
    Latest,
    /// Of the first record of this time or later.
    Time(i64),
}

impl Spec {
    fn wire(self) -> i64 {
        match self {
            Spec::Earliest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
            Spec::Latest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64,
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

/// An offset that a leader told, with the epoch of the log there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToldOffset {
    pub(crate) offset: i64,
    pub(crate) epoch: Option<LeaderEpoch>,
}

/// A topic's name and a partition's number, of either cluster.
pub(crate) type Place = (TopicName, Partition);

/// Per partition: its offset, `None` where no record is that young. A partition without an answer is absent.
pub(crate) type Offsets = BTreeMap<Place, Result<Option<ToldOffset>, ClientError>>;

/// ListOffsets: one request to each leader. `places` must differ from each other.
pub(crate) fn list_offsets<'a>(
    client: &impl Handle,
    places: impl IntoIterator<Item = &'a Place>,
    spec: Spec,
    isolation: Isolation,
    timeout: Duration,
) -> Result<Offsets, ClientError> {
    let starts = places.into_iter().map(|(topic, partition)| StartAt {
        topic: topic.as_str(),
        partition: partition.0,
        offset: spec.wire(),
        epoch: -1,
    });
    let list = PartitionList::new(starts)?;
    if list.is_empty() {
        return Ok(Offsets::new());
    }
    let level = match isolation {
        Isolation::ReadUncommitted => {
            rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
        }
        Isolation::ReadCommitted => rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED,
    };
    let options = Options::new(client, RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout).isolation(level);
    let answer = ask(client, "ListOffsets", timeout, |queue| {
        // SAFETY: client, list, options and queue are alive; librdkafka copies what it keeps.
        unsafe { rd::rd_kafka_ListOffsets(client.handle(), list.ptr(), options.ptr(), queue) }
    })?;
    Ok(offsets(&answer))
}

fn offsets(answer: &Answer) -> Offsets {
    // SAFETY: the answer is alive and is one to ListOffsets; what is read from it is copied.
    unsafe {
        let result = rd::rd_kafka_event_ListOffsets_result(answer.event());
        let mut count = 0;
        let infos = rd::rd_kafka_ListOffsets_result_infos(result, &mut count);
        elements(infos, count).iter().map(|&info| one(info)).collect()
    }
}

/// # Safety
/// `info` belongs to a live answer.
unsafe fn one(
    info: *const rd::rd_kafka_ListOffsetsResultInfo_t,
) -> (Place, Result<Option<ToldOffset>, ClientError>) {
    // SAFETY: as the caller promises; the epoch lies in the element's private part, which a getter reads.
    unsafe {
        let element = rd::rd_kafka_ListOffsetsResultInfo_topic_partition(info);
        let epoch = LeaderEpoch::from_wire(rd::rd_kafka_topic_partition_get_leader_epoch(element));
        let (topic, offset) = (text_of((*element).topic), (*element).offset);
        let told = (0 <= offset).then_some(ToldOffset { offset, epoch });
        let outcome = ClientError::check(code_at(&raw const (*element).err)).map(|()| told);
        ((TopicName::from(topic.as_str()), Partition((*element).partition)), outcome)
    }
}
