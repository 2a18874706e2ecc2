//! A consumer without a group's help: it reads the partitions it is told to, from the positions it is told.

use super::client::{Client, Liveness, Queue, Waker, c_name, millis};
use super::error::{Code, RdError};
use super::message::OwnedMessage;
use rdkafka::ClientConfig;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaType;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

    /// Has the epochs of assigned positions checked against the log (KIP-320) before anything is read there.
    ///
    /// librdkafka checks a position of its own accord only when it sees a partition's leader epoch rise, which
    /// for a partition that it knows already never happens; but it checks every seek that carries an epoch.
    pub(crate) fn check_epochs<'a>(&self, starts: impl Iterator<Item = StartAt<'a>>) -> Result<(), RdError> {
        let list = PartitionList::new(starts);
        let until = Instant::now() + Duration::from_secs(5);
        while !list.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            // SAFETY: handle and list are valid; the call writes each partition's outcome into the list.
            unsafe {
                let list = list.0.as_ptr();
                RdError::take(rd::rd_kafka_seek_partitions(self.client.ptr(), list, millis(left)))?;
            }
            match list.first_error() {
                None => return Ok(()),
                // An earlier reading of the partition is not quite stopped yet.
                Some(
                    Code::RD_KAFKA_RESP_ERR__STATE
                    | Code::RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS
                    | Code::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
                ) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                Some(code) => return Err(RdError::of_code(code)),
            }
        }
        Ok(())
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

impl PartitionList {
    fn elements(&self) -> &[rd::rd_kafka_topic_partition_t] {
        // SAFETY: the list is valid and has `cnt` elements; none are moved while it is borrowed.
        unsafe {
            let list = self.0.as_ref();
            match usize::try_from(list.cnt) {
                Ok(count) if 0 < count => std::slice::from_raw_parts(list.elems, count),
                _ => &[],
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.elements().is_empty()
    }

    /// The first partition's error that has one.
    fn first_error(&self) -> Option<Code> {
        self.elements()
            .iter()
            .map(|element| element.err)
            .find(|&code| code != Code::RD_KAFKA_RESP_ERR_NO_ERROR)
    }
}

impl Drop for PartitionList {
    fn drop(&mut self) {
        // SAFETY: the list is ours and used for the last time.
        unsafe { rd::rd_kafka_topic_partition_list_destroy(self.0.as_ptr()) }
    }
}
