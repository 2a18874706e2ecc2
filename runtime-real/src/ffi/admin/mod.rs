//! librdkafka's admin requests, each as one blocking call that keeps what failed for a single topic or
//! partition apart from what failed altogether.
//!
//! rust-rdkafka's `AdminClient` has no DescribeTopics (the only source of topic ids), no DescribeCluster and
//! no ListOffsets, and drops the brokers' error texts.

mod cluster;
mod configs;
mod create;
mod offsets;
mod topics;

pub(crate) use cluster::{cluster_id, describe_cluster, find_broker};
pub(crate) use configs::describe_configs;
pub(crate) use create::{TopicToCreate, create_partitions, create_topics};
pub(crate) use offsets::{Isolation, Offsets, Place, Spec, ToldOffset, list_offsets};
pub(crate) use topics::{describe_topics, writable_topics};

use super::client::Client;
use super::codes;
use super::error::ClientError;
use super::text::{milliseconds, text_of};
use rdkafka::bindings as rd;
use rdkafka::client::NativeClient;
use rdkafka::types::RDKafkaAdminOp;
use std::ptr::NonNull;
use std::time::Duration;

/// How much longer than the request's own time-out its answer is awaited: librdkafka answers by itself.
const GRACE: Duration = Duration::from_secs(2);

/// A client of rust-rdkafka's or of this module's own: any can ask.
pub(crate) trait Handle {
    fn handle(&self) -> *mut rd::rd_kafka_t;
}

impl Handle for NativeClient {
    fn handle(&self) -> *mut rd::rd_kafka_t {
        self.ptr()
    }
}

impl Handle for Client {
    fn handle(&self) -> *mut rd::rd_kafka_t {
        self.ptr()
    }
}

/// An answered request. Everything read from it borrows from it.
struct Answer(NonNull<rd::rd_kafka_event_t>);

impl Answer {
    fn event(&self) -> *mut rd::rd_kafka_event_t {
        self.0.as_ptr()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: the event is ours since rd_kafka_queue_poll handed it out, and is destroyed only here.
        unsafe { rd::rd_kafka_event_destroy(self.event()) }
    }
}

/// A queue for one answer. An answer that comes after the queue was dropped is destroyed by librdkafka.
struct Queue(NonNull<rd::rd_kafka_queue_t>);

impl Queue {
    fn new(client: &impl Handle) -> Queue {
        // SAFETY: the client outlives this call; the queue holds its own reference on it.
        let queue = unsafe { rd::rd_kafka_queue_new(client.handle()) };
        Queue(NonNull::new(queue).expect("rd_kafka_queue_new never fails"))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made by rd_kafka_queue_new and destroyed only here.
        unsafe { rd::rd_kafka_queue_destroy(self.0.as_ptr()) }
    }
}

/// The options of one request.
struct Options(NonNull<rd::rd_kafka_AdminOptions_t>);

impl Options {
    fn new(client: &impl Handle, op: RDKafkaAdminOp, timeout: Duration) -> Options {
        // SAFETY: the client is alive.
        let options = unsafe { rd::rd_kafka_AdminOptions_new(client.handle(), op) };
        let options = Options(NonNull::new(options).expect("every admin operation named here is known"));
        let mut text = [0; 256];
        // SAFETY: the options are alive, and the buffer is as long as said.
        unsafe {
            rd::rd_kafka_AdminOptions_set_request_timeout(
                options.ptr(),
                milliseconds(timeout),
                text.as_mut_ptr(),
                text.len(),
            );
        }
        options
    }

    /// How long the brokers may wait until the change has reached them all.
    fn operation_timeout(self, timeout: Duration) -> Options {
        let mut text = [0; 256];
        // SAFETY: as in `new`.
        unsafe {
            rd::rd_kafka_AdminOptions_set_operation_timeout(
                self.ptr(),
                milliseconds(timeout),
                text.as_mut_ptr(),
                text.len(),
            );
        }
        self
    }

    fn isolation(self, level: rd::rd_kafka_IsolationLevel_t) -> Options {
        // SAFETY: the options are alive and were made for ListOffsets, which takes an isolation level, so
        // no error object comes back; if one did, it is destroyed.
        let _ =
            unsafe { ClientError::take(rd::rd_kafka_AdminOptions_set_isolation_level(self.ptr(), level)) };
        self
    }

    /// Asks too what the one who asks may do.
    fn authorized_operations(self) -> Options {
        // SAFETY: as in `isolation`, for a description of topics.
        let _ = unsafe {
            ClientError::take(rd::rd_kafka_AdminOptions_set_include_authorized_operations(self.ptr(), 1))
        };
        self
    }

    fn ptr(&self) -> *mut rd::rd_kafka_AdminOptions_t {
        self.0.as_ptr()
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made by rd_kafka_AdminOptions_new and destroyed only here.
        unsafe { rd::rd_kafka_AdminOptions_destroy(self.ptr()) }
    }
}

/// Sends a request by `launch` and waits for its answer. An error here is one of the request as a whole.
fn ask(
    client: &impl Handle,
    what: &str,
    timeout: Duration,
    launch: impl FnOnce(*mut rd::rd_kafka_queue_t),
) -> Result<Answer, ClientError> {
    let queue = Queue::new(client);
    launch(queue.0.as_ptr());
    // SAFETY: the queue is alive; the event, if any, becomes ours.
    let event = unsafe { rd::rd_kafka_queue_poll(queue.0.as_ptr(), milliseconds(timeout + GRACE)) };
    let answer = Answer(NonNull::new(event).ok_or_else(|| ClientError::timed_out(what))?);
    // SAFETY: the event is alive; the text belongs to it and is copied.
    unsafe {
        let text = || text_of(rd::rd_kafka_event_error_string(answer.event()));
        ClientError::check_told(codes::event_error(answer.event()), text)?;
    }
    Ok(answer)
}

/// The elements of an array that a getter of librdkafka's returned together with its length.
///
/// # Safety
/// `array` is null or points to `count` pointers that live as long as `'a`.
unsafe fn elements<'a, T>(array: *mut *const T, count: usize) -> &'a [*const T] {
    if array.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(array, count) }
}

/// For each topic by name, what was asked for or why not.
pub(crate) type ByTopic<T> = Vec<(String, Result<T, ClientError>)>;

/// # Safety
/// `results` are live topic results of one answer.
unsafe fn outcomes(results: &[*const rd::rd_kafka_topic_result_t]) -> ByTopic<()> {
    let one = |&result| {
        // SAFETY: as the caller promises; the strings are copied.
        unsafe {
            let text = || text_of(rd::rd_kafka_topic_result_error_string(result));
            let outcome = ClientError::check_told(codes::topic_result_error(result), text);
            (text_of(rd::rd_kafka_topic_result_name(result)), outcome)
        }
    };
    results.iter().map(one).collect()
}
