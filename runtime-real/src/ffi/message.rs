//! A consumed message, owned: a record, or an error with its place.

use super::client::Client;
use super::codes::{Code, code_at};
use super::error::ClientError;
use super::text::text_of;
use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset};
use rdkafka::bindings as rd;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A record or an error that a consumer gave; freed when dropped.
pub(crate) struct OwnedMessage {
    message: NonNull<rd::rd_kafka_message_t>,
    /// Kept: a message must be freed before its client goes.
    _client: Arc<Client>,
}

// SAFETY: a message belongs to whoever holds it; librdkafka frees it on any thread.
unsafe impl Send for OwnedMessage {}

impl OwnedMessage {
    /// # Safety
    /// `message` came from a consumer of `client` and belongs to the caller.
    pub(super) unsafe fn new(message: NonNull<rd::rd_kafka_message_t>, client: Arc<Client>) -> OwnedMessage {
        OwnedMessage { message, _client: client }
    }

    /// Valid while self lives. Never as a reference: the message's code might be none of the enum's.
    fn raw(&self) -> *const rd::rd_kafka_message_t {
        self.message.as_ptr()
    }

    /// Why this is no record; its place is known even then, where the error has one.
    pub(crate) fn error(&self) -> Option<ClientError> {
        // SAFETY: the message is valid; its text lives as long as the message and is copied.
        unsafe {
            let text = || text_of(rd::rd_kafka_message_errstr(self.raw()));
            ClientError::check_told(code_at(&raw const (*self.raw()).err), text).err()
        }
    }

    /// The topic's name; absent on errors that concern no topic.
    pub(crate) fn topic(&self) -> Option<&str> {
        // SAFETY: the message keeps its topic; the name lives as long as the topic and ends in NUL.
        unsafe {
            let topic = (*self.raw()).rkt;
            if topic.is_null() {
                return None;
            }
            CStr::from_ptr(rd::rd_kafka_topic_name(topic)).to_str().ok()
        }
    }

    /// Whether this and `other` are of one partition: true only if they are, without comparing names.
    pub(crate) fn is_beside(&self, other: &OwnedMessage) -> bool {
        // SAFETY: both messages are valid, and keep their topic objects, so equal addresses are one topic.
        unsafe { (*self.raw()).rkt == (*other.raw()).rkt && self.partition() == other.partition() }
    }

    pub(crate) fn partition(&self) -> i32 {
        // SAFETY: the message is valid.
        unsafe { (*self.raw()).partition }
    }

    /// The record's offset; of an error, the offset it speaks of, negative where it has none.
    pub(crate) fn offset(&self) -> i64 {
        // SAFETY: the message is valid.
        unsafe { (*self.raw()).offset }
    }

    /// Absent where the record's batch gave none.
    pub(crate) fn leader_epoch(&self) -> Option<LeaderEpoch> {
        // SAFETY: the message is valid.
        LeaderEpoch::from_wire(unsafe { rd::rd_kafka_message_leader_epoch(self.message.as_ptr()) })
    }

    /// Where a record stood at the source.
    pub(crate) fn place(&self) -> OffsetAndEpoch {
        OffsetAndEpoch { offset: SourceOffset(self.offset()), epoch: self.leader_epoch() }
    }

    /// Milliseconds since 1970; -1 where the record has none.
    pub(crate) fn timestamp(&self) -> i64 {
        let mut kind = rd::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is valid and `kind` outlives the call.
        let timestamp = unsafe { rd::rd_kafka_message_timestamp(self.message.as_ptr(), &mut kind) };
        match kind {
            rd::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE => -1,
            _ => timestamp,
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        // SAFETY: librdkafka gives a pointer to that many bytes that live as long as the message; null where
        // the record has no key, and not null where the key is empty.
        unsafe { bytes_of((*self.raw()).key, (*self.raw()).key_len) }
    }

    /// Of a record only: an error's message has its text here.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        // SAFETY: as for the key.
        unsafe { bytes_of((*self.raw()).payload, (*self.raw()).len) }
    }

    /// The record's headers, parsed from its batch at the first call. Fails where librdkafka cannot read them:
    /// broken bytes, or more than 100,000 headers.
    pub(crate) fn headers(&self) -> Result<Headers<'_>, ClientError> {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is valid and `headers` outlives the call; what it is set to belongs to the
        // message. Parsing changes the message, but only on the thread that has it: it is not Sync.
        let code = unsafe { rd::rd_kafka_message_headers(self.message.as_ptr(), &mut headers) };
        match code {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(Headers { headers, next: 0, of: PhantomData }),
            Code::RD_KAFKA_RESP_ERR__NOENT => {
                Ok(Headers { headers: ptr::null_mut(), next: 0, of: PhantomData })
            }
            code => Err(ClientError::of_code(code)),
        }
    }

    /// Takes the headers out whole, names and values untouched; null where there are none.
    pub(super) fn detach_headers(&mut self) -> Result<*mut rd::rd_kafka_headers_t, ClientError> {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is valid and `headers` outlives the call.
        let code = unsafe { rd::rd_kafka_message_detach_headers(self.message.as_ptr(), &mut headers) };
        match code {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(headers),
            Code::RD_KAFKA_RESP_ERR__NOENT => Ok(ptr::null_mut()),
            code => Err(ClientError::of_code(code)),
        }
    }

    /// Gives headers back that `detach_headers` took out.
    ///
    /// # Safety
    /// `headers` came from this message's `detach_headers` and nobody else has taken them.
    pub(super) unsafe fn attach_headers(&mut self, headers: *mut rd::rd_kafka_headers_t) {
        if !headers.is_null() {
            // SAFETY: by this function's contract.
            unsafe { rd::rd_kafka_message_set_headers(self.message.as_ptr(), headers) }
        }
    }
}

impl Drop for OwnedMessage {
    fn drop(&mut self) {
        // SAFETY: the message is ours and used for the last time; its client still lives.
        unsafe { rd::rd_kafka_message_destroy(self.message.as_ptr()) }
    }
}

/// # Safety
/// `data` is null or points to `length` bytes that live through `'a`.
unsafe fn bytes_of<'a>(data: *const c_void, length: usize) -> Option<&'a [u8]> {
    // SAFETY: by this function's contract.
    (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data.cast(), length) })
}

/// Headers in order: names as bytes, repeats included.
pub(crate) struct Headers<'a> {
    /// Null where there are none.
    headers: *mut rd::rd_kafka_headers_t,
    next: usize,
    of: PhantomData<&'a OwnedMessage>,
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.headers.is_null() {
            return None;
        }
        let (mut name, mut value, mut length) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the headers live as long as the message, and the outputs outlive the call.
        let code = unsafe {
            rd::rd_kafka_header_get_all(self.headers, self.next, &mut name, &mut value, &mut length)
        };
        if code != Code::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        self.next += 1;
        // SAFETY: librdkafka gave this pair; both live as long as the message.
        unsafe { Some((name_of(name, value), bytes_of(value, length))) }
    }
}

/// A header's name, whole. librdkafka stores its length but tells only where it begins, so that a NUL within
/// would cut it off; yet its length can be told from how librdkafka lays a header out (rdkafka_header.h): the
/// value follows the name and one NUL, and where there is no value, the name's length is the word but one
/// before the name. A test holds this against the librdkafka that is linked.
///
/// # Safety
/// `name` and `value` are one header's, as rd_kafka_header_get_all gives them.
unsafe fn name_of<'a>(name: *const c_char, value: *const c_void) -> &'a [u8] {
    let length = match value.is_null() {
        false => value.addr() - name.addr() - 1,
        // SAFETY: the name lies within rd_kafka_header_t, after { .., size_t name_size; char *value; }.
        true => unsafe { name.cast::<usize>().sub(2).read_unaligned() },
    };
    // SAFETY: the name has that many bytes.
    unsafe { std::slice::from_raw_parts(name.cast(), length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_are_read_whole() {
        let long = vec![b'n'; 300];
        let names: [&[u8]; 7] = [b"plain", b"", b"\0", b"a\0b", b"\xff\xfe", b"ends\0", &long];
        let values: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"v"), Some(b"\0\0")];
        // SAFETY: headers of the test's own, destroyed after their last use.
        unsafe {
            let headers = rd::rd_kafka_headers_new(1);
            let pairs = names.iter().flat_map(|&name| values.iter().map(move |&value| (name, value)));
            for (name, value) in pairs.clone() {
                let data = value.map_or(ptr::null(), |value| value.as_ptr().cast());
                let (length, size) = (name.len() as isize, value.map_or(0, |value| value.len() as isize));
                rd::rd_kafka_header_add(headers, name.as_ptr().cast(), length, data, size);
            }
            let read = Headers { headers, next: 0, of: PhantomData };
            assert!(read.eq(pairs));
            rd::rd_kafka_headers_destroy(headers);
        }
    }
}
