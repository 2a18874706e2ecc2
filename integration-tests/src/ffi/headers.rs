//! Record headers as raw bytes.
//!
//! rust-rdkafka takes and gives header names as `str`, and panics on a name that is not UTF-8. Kafka allows
//! any bytes there, so both directions go through librdkafka's own functions.
//! One limit is librdkafka's: it shows names up to their first NUL. `batch` reads those in full.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use rdkafka::bindings;
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, OwnedHeaders};

/// Name and value; `None` is a null value, which differs from an empty one.
pub type RawHeader = (Vec<u8>, Option<Vec<u8>>);

/// Headers to send, in this order, repeats and all.
pub fn to_native(headers: &[RawHeader]) -> OwnedHeaders {
    let native = OwnedHeaders::new_with_capacity(headers.len());
    // A `&BorrowedHeaders` is the native pointer itself, seen as a reference to a type without size.
    let pointer = ptr::from_ref::<BorrowedHeaders>(native.as_borrowed())
        .cast_mut()
        .cast::<bindings::rd_kafka_headers_t>();
    for (name, value) in headers {
        let (value_pointer, value_length) =
            value.as_ref().map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len()));
        // SAFETY: `native` owns the list and outlives the call; librdkafka copies name and value.
        let error = unsafe {
            bindings::rd_kafka_header_add(
                pointer,
                name.as_ptr().cast::<c_char>(),
                isize::try_from(name.len()).expect("a name shorter than memory"),
                value_pointer.cast::<c_void>(),
                isize::try_from(value_length).expect("a value shorter than memory"),
            )
        };
        assert_eq!(error, bindings::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    native
}

/// The headers of a consumed message.
pub fn from_message(message: &BorrowedMessage<'_>) -> Vec<RawHeader> {
    let mut list = ptr::null_mut();
    // SAFETY: the message is borrowed for the whole function, and it owns the list.
    let error = unsafe { bindings::rd_kafka_message_headers(message.ptr(), &raw mut list) };
    if error != bindings::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
        return Vec::new();
    }
    let mut headers = Vec::new();
    for index in 0.. {
        let (mut name, mut value, mut length) = (ptr::null(), ptr::null(), 0);
        // SAFETY: as above; name and value point into the message and are copied before it goes.
        unsafe {
            if bindings::rd_kafka_header_get_all(list, index, &raw mut name, &raw mut value, &raw mut length)
                != bindings::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
            {
                break;
            }
            let value =
                (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), length).to_vec());
            headers.push((CStr::from_ptr(name).to_bytes().to_vec(), value));
        }
    }
    headers
}
