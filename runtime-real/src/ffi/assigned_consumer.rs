//! A consumer without a group's help: it reads the partitions it is told to, from the positions it is told.

use super::client::{Client, Liveness, Queue, Waker};
use super::codes::Code;
use super::error::ClientError;
use super::message::OwnedMessage;
use super::partition_list::{PartitionList, StartAt};
use super::text::milliseconds;
use rdkafka::ClientConfig;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaType;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct AssignedConsumer {
    queue: Arc<Queue>,
    client: Arc<Client>,
}

impl AssignedConsumer {
    pub(crate) fn new(config: &ClientConfig, liveness: Liveness) -> Result<AssignedConsumer, ClientError> {
        let nothing = Box::new(());
        let client = Client::new(RDKafkaType::RD_KAFKA_CONSUMER, config, nothing, liveness, |_| ())?;
        let client = Arc::new(client);
        // SAFETY: the handle is valid. From here on the client's own errors come through the consumer's queue.
        ClientError::check(unsafe { rd::rd_kafka_poll_set_consumer(client.ptr()) })?;
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
    pub(crate) fn assign<'a>(&self, starts: impl Iterator<Item = StartAt<'a>>) -> Result<(), ClientError> {
        let list = PartitionList::new(starts)?;
        // SAFETY: handle and list are valid; the list is copied.
        unsafe { ClientError::take(rd::rd_kafka_incremental_assign(self.client.ptr(), list.ptr())) }
    }

    /// Has the epochs of assigned positions checked against the log (KIP-320) before anything is read there.
    ///
    /// librdkafka checks a position of its own accord only when it sees a partition's leader epoch rise, which
    /// for a partition that it knows already never happens; but it checks every seek that carries an epoch.
    pub(crate) fn check_epochs<'a>(
        &self,
        starts: impl Iterator<Item = StartAt<'a>>,
    ) -> Result<(), ClientError> {
        let list = PartitionList::new(starts)?;
        let until = Instant::now() + Duration::from_secs(5);
        while !list.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            // SAFETY: handle and list are valid; the call writes each partition's outcome into the list.
            unsafe {
                let list = list.ptr();
                ClientError::take(rd::rd_kafka_seek_partitions(self.client.ptr(), list, milliseconds(left)))?;
            }
            match list.first_error() {
                None => return Ok(()),
                // An earlier reading of the partition is not quite stopped yet.
                Some(
                    Code::RD_KAFKA_RESP_ERR__STATE
                    | Code::RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS
                    | Code::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
                ) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                Some(code) => return Err(ClientError::of_code(code)),
            }
        }
        Ok(())
    }

    /// Stops reading these partitions. What was fetched of them and not yet polled never comes.
    pub(crate) fn unassign<'a>(
        &self,
        partitions: impl Iterator<Item = (&'a str, i32)>,
    ) -> Result<(), ClientError> {
        let starts =
            partitions.map(|(topic, partition)| StartAt { topic, partition, offset: -1001, epoch: -1 });
        let list = PartitionList::new(starts)?;
        // SAFETY: as above.
        unsafe { ClientError::take(rd::rd_kafka_incremental_unassign(self.client.ptr(), list.ptr())) }
    }

    /// What has arrived, at most `count` messages; waits up to `timeout` for the first.
    ///
    /// librdkafka's batch call waits until all of its room is filled, so the wait is for a single message and
    /// the rest is taken without. Its `position()` is not offered: the batch call moves it beyond the end of
    /// a partition by one whenever it hands out an end-of-partition event.
    pub(crate) fn poll(&self, count: usize, timeout: Duration) -> Vec<OwnedMessage> {
        let mut messages: Vec<*mut rd::rd_kafka_message_t> = Vec::with_capacity(count.max(1));
        self.poll_into(&mut messages, 1, milliseconds(timeout));
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
