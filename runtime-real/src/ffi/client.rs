//! A raw librdkafka client: how it is made, woken and destroyed.

use super::codes::{self, Code};
use super::error::ClientError;
use super::text::text_of;
use rdkafka::ClientConfig;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaType;
use std::any::Any;
use std::ffi::{c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

/// Held by everything that must be gone before a lane is closed; counted, never looked into.
pub(crate) type Liveness = Arc<()>;

/// A librdkafka handle. Dropping it destroys it on a thread of its own: the call can block for long.
pub(crate) struct Client {
    handle: NonNull<rd::rd_kafka_t>,
    /// What librdkafka's callbacks point to; freed when no callback can run any more.
    attachment: Option<Box<dyn Any + Send + Sync>>,
    liveness: Option<Liveness>,
}

// SAFETY: librdkafka's handle may be used from any number of threads at once (rdkafka.h, "Thread safety").
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// `install` puts callbacks into the configuration; what they point to must be in `attachment`.
    pub(super) fn new(
        kind: RDKafkaType,
        config: &ClientConfig,
        attachment: Box<dyn Any + Send + Sync>,
        liveness: Liveness,
        install: impl FnOnce(*mut rd::rd_kafka_conf_t),
    ) -> Result<Client, ClientError> {
        let native =
            config.create_native_config().map_err(|error| ClientError::invalid(error.to_string()))?;
        let mut reason: [c_char; 512] = [0; 512];
        // SAFETY: `native` is a valid configuration that rd_kafka_new takes over only when it succeeds; the
        // log callback is a function that lives for ever; `reason` outlives the calls that write to it.
        let handle = unsafe {
            rd::rd_kafka_conf_set_log_cb(native.ptr(), Some(log));
            install(native.ptr());
            rd::rd_kafka_new(kind, native.ptr(), reason.as_mut_ptr(), reason.len())
        };
        match NonNull::new(handle) {
            Some(handle) => {
                std::mem::forget(native);
                Ok(Client { handle, attachment: Some(attachment), liveness: Some(liveness) })
            }
            // SAFETY: librdkafka has written a string that ends in NUL, or nothing over the zeros.
            None => Err(ClientError::invalid(unsafe { text_of(reason.as_ptr()) })),
        }
    }

    pub(super) fn ptr(&self) -> *mut rd::rd_kafka_t {
        self.handle.as_ptr()
    }

    /// The client's fatal error, once it has one.
    pub(crate) fn fatal_error(&self) -> Option<ClientError> {
        // SAFETY: the handle is valid.
        let (code, text) = unsafe { codes::fatal_error(self.ptr()) };
        let fatal = ClientError { fatal: true, ..ClientError::new(code, text) };
        (code != Code::RD_KAFKA_RESP_ERR_NO_ERROR).then_some(fatal)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        /// A handle on its way to the thread that destroys it.
        struct Last(NonNull<rd::rd_kafka_t>);
        // SAFETY: see `Client`; nobody else has this handle any more.
        unsafe impl Send for Last {}

        let last = Last(self.handle);
        // Let go only by the thread: if there is none, callbacks of the client that stays behind still use them.
        let kept = ManuallyDrop::new((self.attachment.take(), self.liveness.take()));
        let destroy = move || {
            let last = last;
            // SAFETY: all that librdkafka handed out held this client, so this is the last use of the handle.
            // An assign-only consumer has no group to leave, hence no close, which could block. For a producer
            // the flag has no meaning.
            unsafe {
                rd::rd_kafka_destroy_flags(last.0.as_ptr(), rd::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
            }
            drop(ManuallyDrop::into_inner(kept));
        };
        if let Err(error) = std::thread::Builder::new().name("client-destroy".into()).spawn(destroy) {
            tracing::warn!(%error, "no thread to destroy a client on: it stays behind");
        }
    }
}

/// A queue of a client.
pub(super) struct Queue {
    queue: NonNull<rd::rd_kafka_queue_t>,
    /// Kept: a queue must be given back before its client goes.
    _client: Arc<Client>,
}

// SAFETY: librdkafka locks its queues; they may be served and yielded from different threads.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// The queue that carries a consumer's messages and errors.
    pub(super) fn of_consumer(client: Arc<Client>) -> Queue {
        // SAFETY: the handle is a valid consumer's.
        let queue = unsafe { rd::rd_kafka_queue_get_consumer(client.ptr()) };
        Queue { queue: NonNull::new(queue).expect("a consumer has a queue"), _client: client }
    }

    /// The queue that carries a client's delivery reports, errors and answers.
    pub(super) fn main(client: Arc<Client>) -> Queue {
        // SAFETY: the handle is valid.
        let queue = unsafe { rd::rd_kafka_queue_get_main(client.ptr()) };
        Queue { queue: NonNull::new(queue).expect("a client has a main queue"), _client: client }
    }

    pub(super) fn ptr(&self) -> *mut rd::rd_kafka_queue_t {
        self.queue.as_ptr()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the last use of a reference that was ours.
        unsafe { rd::rd_kafka_queue_destroy(self.ptr()) }
    }
}

/// Ends a client's wait for its queue, from any thread. A wait that has not begun ends at once.
#[derive(Clone)]
pub(crate) struct Waker(pub(super) Arc<Queue>);

impl Waker {
    pub(crate) fn wake(&self) {
        // SAFETY: the queue is valid, and yielding is allowed from any thread.
        unsafe { rd::rd_kafka_queue_yield(self.0.ptr()) }
    }
}

/// Passes librdkafka's own log on.
unsafe extern "C" fn log(
    client: *const rd::rd_kafka_t,
    level: c_int,
    facility: *const c_char,
    text: *const c_char,
) {
    // SAFETY: librdkafka passes strings that end in NUL and live through the call; the client may be null.
    let (client, facility, text) = unsafe {
        let name = if client.is_null() { String::new() } else { text_of(rd::rd_kafka_name(client)) };
        (name, text_of(facility), text_of(text))
    };
    match level {
        0..=3 => tracing::error!(target: "librdkafka", client, facility, "{text}"),
        4 => tracing::warn!(target: "librdkafka", client, facility, "{text}"),
        5 | 6 => tracing::info!(target: "librdkafka", client, facility, "{text}"),
        _ => tracing::debug!(target: "librdkafka", client, facility, "{text}"),
    }
}
