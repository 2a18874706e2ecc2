//! A consumer without a group's help: it reads the partitions it is told to, from the positions it is told.

use super::client::{Client, Liveness, Queue, Waker, c_name, millis};
use super::error::RdError;
use super::message::OwnedMessage;
use rdkafka::ClientConfig;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaType;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

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

pub(crate) struct AssignedConsumer {
    queue: Arc<Queue>,
    client: Arc<Client>,
}

impl AssignedConsumer {
    pub(crate) fn new(config: &ClientConfig, liveness: Liveness) -> Result<AssignedConsumer, RdError> {
        let nothing = Box::new(());
        let client = Client::new(RDKafkaType::RD_KAFKA_CONSUMER, config, nothing, liveness, |_| ())?;
        let client = Arc::new(client);
        // SAFETY: the handle is valid. From here on the client's own errors come through the consumer's queue.
        RdError::check(unsafe { rd::rd_kafka_poll_set_consumer(client.ptr()) })?;
        let queue = Arc::new(Queue::of_consumer(Arc::clone(&client)));
        Ok(AssignedConsumer { queue, client })
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.queue))
    }

    /// Reads these partitions too.
    pub(crate) fn assign<'a>(&self, starts: impl Iterator<Item = StartAt<'a>>) -> Result<(), RdError> {
        let list = PartitionList::new(starts);
        // SAFETY: handle and list are valid; the list is copied.
        unsafe { RdError::take(rd::rd_kafka_incremental_assign(self.client.ptr(), list.0.as_ptr())) }
    }

    /// Stops reading these partitions. What was fetched of them and not yet polled never comes.
    pub(crate) fn unassign<'a>(
        &self,
        partitions: impl Iterator<Item = (&'a str, i32)>,
    ) -> Result<(), RdError> {
        let starts =
            partitions.map(|(topic, partition)| StartAt { topic, partition, offset: -1001, epoch: -1 });
        let list = PartitionList::new(starts);
        // SAFETY: as above.
        unsafe { RdError::take(rd::rd_kafka_incremental_unassign(self.client.ptr(), list.0.as_ptr())) }
    }

    /// What has arrived, at most `count` messages; waits up to `timeout` for the first.
    ///
    /// librdkafka's batch call waits until all of its room is filled, so the wait is for a single message and
    /// the rest is taken without. Its `position()` is not offered: the batch call moves it beyond the end of
    /// a partition by one whenever it hands out an end-of-partition event.
    pub(crate) fn poll(&self, count: usize, timeout: Duration) -> Vec<OwnedMessage> {
        let mut messages: Vec<*mut rd::rd_kafka_message_t> = Vec::with_capacity(count.max(1));
        self.poll_into(&mut messages, 1, millis(timeout));
        if !messages.is_empty() {
            self.poll_into(&mut messages, count.saturating_sub(1), 0);
        }
        let owned = messages.into_iter().filter_map(NonNull::new);
        // SAFETY: the messages came from this client's queue and are ours alone.
        owned.map(|message| unsafe { OwnedMessage::new(message, Arc::clone(&self.client)) }).collect()
    }

    fn poll_into(&self, messages: &mut Vec<*mut rd::rd_kafka_message_t>, count: usize, timeout_ms: i32) {
        let room = count.min(messages.capacity() - messages.len());
        if room == 0 {
            return;
        }
        // SAFETY: the queue is valid; librdkafka writes at most `room` pointers into the vector's spare
        // capacity and returns how many, or -1.
        unsafe {
            let spare = messages.as_mut_ptr().add(messages.len());
            let taken = rd::rd_kafka_consume_batch_queue(self.queue.ptr(), timeout_ms, spare, room);
            messages.set_len(messages.len() + usize::try_from(taken).unwrap_or(0));
        }
    }
}

/// librdkafka's list of partitions.
pub(super) struct PartitionList(pub(super) NonNull<rd::rd_kafka_topic_partition_list_t>);

impl PartitionList {
    pub(super) fn new<'a>(starts: impl Iterator<Item = StartAt<'a>>) -> PartitionList {
        // SAFETY: the list is made here; each element is set before the next is added, which may move it, and
        // the topic's name is copied.
        unsafe {
            let list = rd::rd_kafka_topic_partition_list_new(8);
            for start in starts {
                let topic = c_name(start.topic);
                let element = rd::rd_kafka_topic_partition_list_add(list, topic.as_ptr(), start.partition);
                (*element).offset = start.offset;
                if 0 <= start.epoch {
                    rd::rd_kafka_topic_partition_set_leader_epoch(element, start.epoch);
                }
            }
            PartitionList(NonNull::new(list).expect("lists are made without fail"))
        }
    }
}

impl Drop for PartitionList {
    fn drop(&mut self) {
        // SAFETY: the list is ours and used for the last time.
        unsafe { rd::rd_kafka_topic_partition_list_destroy(self.0.as_ptr()) }
    }
}
