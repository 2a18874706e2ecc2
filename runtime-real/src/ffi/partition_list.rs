//! librdkafka's list of partitions.

use super::codes::{Code, code_at};
use super::error::ClientError;
use super::text::c_string;
use rdkafka::bindings as rd;
use std::ptr::NonNull;

/// Where to read a partition from.
pub(crate) struct StartAt<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    /// An offset, or one of librdkafka's logical offsets.
    pub(crate) offset: i64,
    /// With it the position is checked for truncation (KIP-320); -1 where it is not known.
    pub(crate) epoch: i32,
}

impl StartAt<'_> {
    /// The beginning of the log, whatever its offset.
    pub(crate) const BEGINNING: i64 = rd::RD_KAFKA_OFFSET_BEGINNING as i64;
}

/// Partitions with an offset each, and with what became of each; destroyed when dropped.
pub(super) struct PartitionList(NonNull<rd::rd_kafka_topic_partition_list_t>);

impl PartitionList {
    pub(super) fn new<'a>(starts: impl Iterator<Item = StartAt<'a>>) -> Result<PartitionList, ClientError> {
        // SAFETY: a size to begin with is all it takes.
        let list = unsafe { rd::rd_kafka_topic_partition_list_new(8) };
        let list = PartitionList(NonNull::new(list).expect("lists are made without fail"));
        for start in starts {
            let topic = c_string(start.topic)?;
            // SAFETY: the list is valid; the name is copied; the element is set before the next is added, which may
            // move it.
            unsafe {
                let element =
                    rd::rd_kafka_topic_partition_list_add(list.ptr(), topic.as_ptr(), start.partition);
                (*element).offset = start.offset;
                if 0 <= start.epoch {
                    rd::rd_kafka_topic_partition_set_leader_epoch(element, start.epoch);
                }
            }
        }
        Ok(list)
    }

    pub(super) fn ptr(&self) -> *mut rd::rd_kafka_topic_partition_list_t {
        self.0.as_ptr()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.elements().next().is_none()
    }

    /// The first partition's error that has one.
    pub(super) fn first_error(&self) -> Option<Code> {
        // SAFETY: the elements are valid while the list is borrowed.
        let mut codes = self.elements().map(|element| unsafe { code_at(&raw const (*element).err) });
        codes.find(|&code| code != Code::RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// The elements by their addresses: as values their codes might be none of the enum's.
    fn elements(&self) -> impl Iterator<Item = *const rd::rd_kafka_topic_partition_t> {
        // SAFETY: the list is valid.
        let (first, count) = unsafe { ((*self.ptr()).elems, (*self.ptr()).cnt) };
        // SAFETY: the list has `count` elements, and none are moved while it is borrowed.
        (0..usize::try_from(count).unwrap_or(0)).map(move |index| unsafe { first.add(index) }.cast_const())
    }
}

impl Drop for PartitionList {
    fn drop(&mut self) {
        // SAFETY: the list is ours and used for the last time.
        unsafe { rd::rd_kafka_topic_partition_list_destroy(self.ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_partition_is_read_as_a_number() {
        let start = |partition| StartAt { topic: "orders", partition, offset: 5, epoch: 1 };
        let list = PartitionList::new([start(0), start(1)].into_iter()).unwrap();
        assert!(!list.is_empty());
        assert_eq!(list.first_error(), None);
        // SAFETY: the second of two elements, whose code is as wide as the number.
        unsafe { (&raw mut (*(*list.ptr()).elems.add(1)).err).cast::<i32>().write(9_999) }
        assert_eq!(list.first_error(), Some(Code::RD_KAFKA_RESP_ERR_UNKNOWN));
        assert!(PartitionList::new(std::iter::empty()).unwrap().is_empty());
    }

    #[test]
    fn a_name_with_a_zero_byte_names_nothing() {
        let start = StartAt { topic: "or\0ders", partition: 0, offset: 0, epoch: -1 };
        assert!(PartitionList::new(std::iter::once(start)).is_err());
    }
}
