//! A transactional producer whose records are handed on from a consumer without being taken apart.

use super::client::{Client, Liveness, Queue, Waker};
use super::codes::{Code, code_at, code_of};
use super::end_txns::EndTxns;
use super::error::ClientError;
use super::message::OwnedMessage;
use super::text::{milliseconds, text_of};
use super::topic::Topic;
use kafka_types::TopicName;
use rdkafka::ClientConfig;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaType;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What became of one produced record.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The number that the record was produced with.
    pub(crate) tag: usize,
    /// Its target offset, negative where the broker gave none; or why it failed. A failed record's offset is
    /// relative to its batch or nothing at all, so there is none here.
    pub(crate) outcome: Result<i64, ClientError>,
}

/// What librdkafka's callbacks write.
#[derive(Default)]
struct Reports {
    deliveries: Mutex<Vec<Delivery>>,
    /// Of the client, not of a record: connections, authentication.
    last_error: Mutex<Option<ClientError>>,
    end_txns: Mutex<EndTxns>,
}

/// A transaction that was begun here, and not ended yet.
#[derive(Debug)]
pub(crate) struct Begun(());

pub(crate) struct TransactionalProducer {
    topics: HashMap<TopicName, Arc<Topic>>,
    queue: Arc<Queue>,
    reports: Arc<Reports>,
    client: Arc<Client>,
}

impl TransactionalProducer {
    pub(crate) fn new(
        config: &ClientConfig,
        liveness: Liveness,
    ) -> Result<TransactionalProducer, ClientError> {
        let reports = Arc::new(Reports::default());
        let opaque = Arc::as_ptr(&reports).cast_mut().cast::<c_void>();
        let attachment = Box::new(Arc::clone(&reports));
        let client =
            Client::new(RDKafkaType::RD_KAFKA_PRODUCER, config, attachment, liveness, |configuration| {
                // SAFETY: the configuration is valid; `opaque` points to the reports, which the client keeps
                // until it is destroyed; the names are copied.
                unsafe {
                    rd::rd_kafka_conf_set_opaque(configuration, opaque);
                    rd::rd_kafka_conf_set_dr_msg_cb(configuration, Some(on_delivery));
                    rd::rd_kafka_conf_set_error_cb(configuration, Some(on_error));
                    let name = c"count-end-txn".as_ptr();
                    rd::rd_kafka_conf_interceptor_add_on_new(configuration, name, Some(on_new), opaque);
                }
            })?;
        let client = Arc::new(client);
        let queue = Arc::new(Queue::main(Arc::clone(&client)));
        Ok(TransactionalProducer { topics: HashMap::new(), queue, reports, client })
    }

    /// Ends a `poll` from another thread.
    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.queue))
    }

    pub(crate) fn init_transactions(&self, timeout: Duration) -> Result<(), ClientError> {
        // SAFETY: the handle is valid, here and below; the error is ours.
        unsafe { ClientError::take(rd::rd_kafka_init_transactions(self.client.ptr(), milliseconds(timeout))) }
    }

    pub(crate) fn begin(&self) -> Result<Begun, ClientError> {
        // SAFETY: as above.
        unsafe { ClientError::take(rd::rd_kafka_begin_transaction(self.client.ptr())) }.map(Begun)
    }

    /// Why the open transaction can only be aborted, if that is so. What fails after the cause is reported as no
    /// more than purged; but a call that the present state does not allow is refused with the cause, and
    /// beginning a transaction is not allowed while one is open. Where none is, to ask would begin one: hence the
    /// token.
    pub(crate) fn abort_cause(&self, _: &Begun) -> Option<ClientError> {
        self.begin().err().filter(|error| error.requires_abort)
    }

    pub(crate) fn commit(&self, timeout: Duration) -> Result<(), ClientError> {
        // SAFETY: as above.
        unsafe {
            ClientError::take(rd::rd_kafka_commit_transaction(self.client.ptr(), milliseconds(timeout)))
        }
    }

    /// Purges what is queued, waits for what is in flight, then aborts.
    pub(crate) fn abort(&self, timeout: Duration) -> Result<(), ClientError> {
        // SAFETY: as above.
        unsafe { ClientError::take(rd::rd_kafka_abort_transaction(self.client.ptr(), milliseconds(timeout))) }
    }

    /// How many EndTxn requests this client has sent so far, retries included, and how many of them were never
    /// answered. librdkafka sends one again by itself when its answer is lost and then reports success, while
    /// the first may still arrive and end the next transaction (KAFKA-17754). One that was answered, if only by
    /// a refusal, can do no such thing.
    ///
    /// Sent means written to its connection whole (rd_kafka_send), which a retry goes through again. Both are
    /// booked before the answer is handed on, hence before `commit` or `abort` return.
    pub(crate) fn end_txns(&self) -> (u64, u64) {
        let end_txns = self.reports.end_txns.lock().expect("no panic while locked");
        (end_txns.sent, end_txns.unanswered())
    }

    /// The client's fatal error, once it has one.
    pub(crate) fn fatal_error(&self) -> Option<ClientError> {
        self.client.fatal_error()
    }

    /// The last error of the client itself, such as a refused authentication.
    pub(crate) fn last_error(&self) -> Option<ClientError> {
        self.reports.last_error.lock().expect("no panic while locked").clone()
    }

    /// Serves delivery reports, waiting up to `timeout` for the first or a wake; whether anything was served.
    pub(crate) fn poll(&self, timeout: Duration) -> bool {
        // SAFETY: the handle is valid; callbacks run on this thread and touch only the reports.
        0 < unsafe { rd::rd_kafka_poll(self.client.ptr(), milliseconds(timeout)) }
    }

    /// Sends what lingers and serves delivery reports until none is outstanding, or `timeout`.
    pub(crate) fn flush(&self, timeout: Duration) {
        // SAFETY: as for `poll`.
        unsafe { rd::rd_kafka_flush(self.client.ptr(), milliseconds(timeout)) };
    }

    /// The delivery reports served since the last call.
    pub(crate) fn take_deliveries(&self) -> Vec<Delivery> {
        std::mem::take(&mut self.reports.deliveries.lock().expect("no panic while locked"))
    }

    /// Queues a consumed record for a partition as it is. On an error the message is as it was before.
    ///
    /// Its timestamp must not be 0: librdkafka would send the present time instead.
    pub(crate) fn produce(
        &mut self,
        topic: &TopicName,
        partition: i32,
        message: &mut OwnedMessage,
        tag: usize,
    ) -> Result<(), ClientError> {
        assert_ne!(message.timestamp(), 0, "librdkafka cannot send a timestamp of 0");
        let topic = self.topic(topic)?;
        let headers = message.detach_headers()?;
        let sent = {
            let record = Outgoing {
                key: message.key(),
                value: message.value(),
                timestamp: message.timestamp(),
                headers,
            };
            self.send(&topic, partition, &record, tag)
        };
        if sent.is_err() {
            // SAFETY: taken from this message just now, and not taken over by a send that failed.
            unsafe { message.attach_headers(headers) }
        }
        sent
    }

    /// Queues a record of our own, with the present time.
    pub(crate) fn produce_bytes(
        &mut self,
        topic: &TopicName,
        partition: i32,
        key: &[u8],
        value: &[u8],
        tag: usize,
    ) -> Result<(), ClientError> {
        let topic = self.topic(topic)?;
        let record = Outgoing { key: Some(key), value: Some(value), timestamp: 0, headers: ptr::null_mut() };
        self.send(&topic, partition, &record, tag)
    }

    fn send(
        &self,
        topic: &Topic,
        partition: i32,
        record: &Outgoing<'_>,
        tag: usize,
    ) -> Result<(), ClientError> {
        use rd::rd_kafka_vtype_t as Kind;
        let given = |kind, u| rd::rd_kafka_vu_s { vtype: kind, u };
        let bytes = |part: Option<&[u8]>| rd::rd_kafka_vu_s__bindgen_ty_1 {
            mem: rd::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
                ptr: part.map_or(ptr::null_mut(), |part| part.as_ptr().cast_mut().cast()),
                size: part.map_or(0, <[u8]>::len),
            },
        };
        let copy = rd::RD_KAFKA_MSG_F_COPY;
        let tag = ptr::without_provenance_mut(tag);
        let arguments = [
            given(Kind::RD_KAFKA_VTYPE_RKT, rd::rd_kafka_vu_s__bindgen_ty_1 { rkt: topic.ptr() }),
            given(Kind::RD_KAFKA_VTYPE_PARTITION, rd::rd_kafka_vu_s__bindgen_ty_1 { i32_: partition }),
            given(Kind::RD_KAFKA_VTYPE_MSGFLAGS, rd::rd_kafka_vu_s__bindgen_ty_1 { i: copy }),
            given(Kind::RD_KAFKA_VTYPE_KEY, bytes(record.key)),
            given(Kind::RD_KAFKA_VTYPE_VALUE, bytes(record.value)),
            given(Kind::RD_KAFKA_VTYPE_TIMESTAMP, rd::rd_kafka_vu_s__bindgen_ty_1 { i64_: record.timestamp }),
            given(Kind::RD_KAFKA_VTYPE_OPAQUE, rd::rd_kafka_vu_s__bindgen_ty_1 { ptr: tag }),
            given(Kind::RD_KAFKA_VTYPE_HEADERS, rd::rd_kafka_vu_s__bindgen_ty_1 { headers: record.headers }),
        ];
        // Null headers are as good as none, but need not be said.
        let count = arguments.len() - usize::from(record.headers.is_null());
        // SAFETY: client and topic handles are valid and belong together; key and value are copied by the
        // call; the headers go over to librdkafka if it succeeds.
        unsafe { ClientError::take(rd::rd_kafka_produceva(self.client.ptr(), arguments.as_ptr(), count)) }
    }

    /// The client's handle on a topic, which stays its own from then on.
    pub(crate) fn topic(&mut self, name: &TopicName) -> Result<Arc<Topic>, ClientError> {
        if let Some(topic) = self.topics.get(name) {
            return Ok(Arc::clone(topic));
        }
        let topic = Arc::new(Topic::new(&self.client, name)?);
        self.topics.insert(name.clone(), Arc::clone(&topic));
        Ok(topic)
    }
}

/// A record about to be sent.
struct Outgoing<'a> {
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    /// 0 stands for now, -1 for none.
    timestamp: i64,
    /// Null, or taken over if the send succeeds.
    headers: *mut rd::rd_kafka_headers_t,
}

unsafe extern "C" fn on_delivery(
    _: *mut rd::rd_kafka_t,
    message: *const rd::rd_kafka_message_t,
    opaque: *mut c_void,
) {
    // SAFETY: `opaque` points to the client's reports (see `new`); the message is valid through the call.
    unsafe {
        let outcome = match code_at(&raw const (*message).err) {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => Ok((*message).offset),
            code => {
                let own = text_of(rd::rd_kafka_message_produce_errstr(message));
                let described = ClientError::of_code(code);
                Err(if own.is_empty() { described } else { ClientError { text: own, ..described } })
            }
        };
        let delivery = Delivery { tag: (*message)._private.addr(), outcome };
        let reports = &*opaque.cast::<Reports>();
        reports.deliveries.lock().expect("no panic while locked").push(delivery);
    }
}

unsafe extern "C" fn on_error(
    client: *mut rd::rd_kafka_t,
    code: c_int,
    reason: *const c_char,
    opaque: *mut c_void,
) {
    // SAFETY: the client's name and the reason are strings that live through the call; `opaque` as above.
    unsafe {
        let error = ClientError::new(code_of(code), text_of(reason));
        tracing::debug!(client = text_of(rd::rd_kafka_name(client)), %error, "producer error");
        let reports = &*opaque.cast::<Reports>();
        *reports.last_error.lock().expect("no panic while locked") = Some(error);
    }
}

unsafe extern "C" fn on_new(
    client: *mut rd::rd_kafka_t,
    _: *const rd::rd_kafka_conf_t,
    opaque: *mut c_void,
    _: *mut c_char,
    _: usize,
) -> Code {
    let name = c"count-end-txn".as_ptr();
    // SAFETY: called by rd_kafka_new with the new client and the opaque given in `new`; the name is copied.
    unsafe {
        rd::rd_kafka_interceptor_add_on_request_sent(client, name, Some(on_request_sent), opaque);
        rd::rd_kafka_interceptor_add_on_response_received(client, name, Some(on_response), opaque)
    }
}

const END_TXN: i16 = 26;

unsafe extern "C" fn on_request_sent(
    _: *mut rd::rd_kafka_t,
    _: c_int,
    _: *const c_char,
    _: i32,
    api_key: i16,
    _: i16,
    _: i32,
    _: usize,
    opaque: *mut c_void,
) -> Code {
    if api_key == END_TXN {
        // SAFETY: `opaque` points to the client's reports (see `new`). This runs on a broker's thread, so it
        // does no more than book the request.
        let reports = unsafe { &*opaque.cast::<Reports>() };
        reports.end_txns.lock().expect("no panic while locked").sent();
    }
    Code::RD_KAFKA_RESP_ERR_NO_ERROR
}

unsafe extern "C" fn on_response(
    _: *mut rd::rd_kafka_t,
    _: c_int,
    _: *const c_char,
    _: i32,
    api_key: i16,
    _: i16,
    _: i32,
    _: usize,
    _: i64,
    error: Code,
    opaque: *mut c_void,
) -> Code {
    if api_key == END_TXN {
        // SAFETY: as above. The error is librdkafka's own: a broker's refusal is an answer.
        let reports = unsafe { &*opaque.cast::<Reports>() };
        let answered = error == Code::RD_KAFKA_RESP_ERR_NO_ERROR;
        reports.end_txns.lock().expect("no panic while locked").ended(answered);
    }
    Code::RD_KAFKA_RESP_ERR_NO_ERROR
}
