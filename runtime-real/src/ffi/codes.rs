//! Error codes, which librdkafka passes on from brokers as it gets them.
//!
//! A broker newer than librdkafka may send numbers that the bindings' enum lacks, and to read one of those as the enum
//! would be undefined behaviour. So wherever a broker's code may come out, it is read as the number it is: functions
//! that return one are declared here anew, and fields are read through [`code_at`].

use super::text::text_of;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaRespErr;
use std::ffi::{c_char, c_int};

/// One of librdkafka's error codes: below zero its own, above zero the brokers'.
pub(crate) type Code = RDKafkaRespErr;

unsafe extern "C" {
    fn rd_kafka_last_error() -> c_int;
    fn rd_kafka_fatal_error(client: *mut rd::rd_kafka_t, text: *mut c_char, size: usize) -> c_int;
    fn rd_kafka_error_code(error: *const rd::rd_kafka_error_t) -> c_int;
    fn rd_kafka_event_error(event: *mut rd::rd_kafka_event_t) -> c_int;
    fn rd_kafka_topic_result_error(result: *const rd::rd_kafka_topic_result_t) -> c_int;
    fn rd_kafka_ConfigResource_error(resource: *const rd::rd_kafka_ConfigResource_t) -> c_int;
    fn rd_kafka_metadata(
        client: *mut rd::rd_kafka_t,
        all_topics: c_int,
        only: *mut rd::rd_kafka_topic_t,
        answer: *mut *const rd::rd_kafka_metadata,
        timeout_ms: c_int,
    ) -> c_int;
}

/// The code that a number stands for; UNKNOWN for one that librdkafka does not know.
pub(crate) fn code_of(number: i32) -> Code {
    Code::try_from(number).unwrap_or(Code::RD_KAFKA_RESP_ERR_UNKNOWN)
}

/// The code in a field of librdkafka's.
///
/// # Safety
/// `field` points to a code that was written, whatever its number.
pub(super) unsafe fn code_at(field: *const rd::rd_kafka_resp_err_t) -> Code {
    // SAFETY: by this function's contract; the enum is as wide as the number.
    code_of(unsafe { field.cast::<i32>().read() })
}

/// Why the last call that can only say "failed" did so, on this thread.
pub(super) fn last_error() -> Code {
    // SAFETY: reads a value of this thread's.
    code_of(unsafe { rd_kafka_last_error() })
}

/// A client's fatal error and its words.
///
/// # Safety
/// `client` is valid.
pub(super) unsafe fn fatal_error(client: *mut rd::rd_kafka_t) -> (Code, String) {
    let mut text: [c_char; 512] = [0; 512];
    // SAFETY: by this function's contract; `text` outlives the call, which ends it in NUL.
    unsafe {
        let code = code_of(rd_kafka_fatal_error(client, text.as_mut_ptr(), text.len()));
        (code, text_of(text.as_ptr()))
    }
}

/// # Safety
/// `error` is valid, or null, which has no error.
pub(super) unsafe fn error_code(error: *const rd::rd_kafka_error_t) -> Code {
    // SAFETY: by this function's contract.
    code_of(unsafe { rd_kafka_error_code(error) })
}

/// # Safety
/// `event` is valid.
pub(super) unsafe fn event_error(event: *mut rd::rd_kafka_event_t) -> Code {
    // SAFETY: by this function's contract.
    code_of(unsafe { rd_kafka_event_error(event) })
}

/// # Safety
/// `result` belongs to a live answer.
pub(super) unsafe fn topic_result_error(result: *const rd::rd_kafka_topic_result_t) -> Code {
    // SAFETY: by this function's contract.
    code_of(unsafe { rd_kafka_topic_result_error(result) })
}

/// # Safety
/// `resource` belongs to a live answer.
pub(super) unsafe fn config_resource_error(resource: *const rd::rd_kafka_ConfigResource_t) -> Code {
    // SAFETY: by this function's contract.
    code_of(unsafe { rd_kafka_ConfigResource_error(resource) })
}

/// Asks any broker for the metadata of one topic, or of those that the client knows if `only` is null.
///
/// # Safety
/// `client` is valid, `only` is null or one of its topics, and what `answer` is set to is destroyed by the caller.
pub(super) unsafe fn metadata(
    client: *mut rd::rd_kafka_t,
    only: *mut rd::rd_kafka_topic_t,
    answer: &mut *const rd::rd_kafka_metadata,
    timeout_ms: c_int,
) -> Code {
    // SAFETY: by this function's contract.
    code_of(unsafe { rd_kafka_metadata(client, 0, only, answer, timeout_ms) })
}

/// librdkafka's sentence for a code.
pub(crate) fn describe(code: Code) -> String {
    // SAFETY: returns a static string for every code.
    unsafe { text_of(rd::rd_kafka_err2str(code)) }
}

/// A code's name as the protocol writes it, `TOPIC_AUTHORIZATION_FAILED` or `_TIMED_OUT`.
pub(super) fn name(code: Code) -> String {
    // SAFETY: returns a static string for every code.
    unsafe { text_of(rd::rd_kafka_err2name(code)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_become_the_unknown_code() {
        assert_eq!(code_of(29), Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        assert_eq!(code_of(-191), Code::RD_KAFKA_RESP_ERR__PARTITION_EOF);
        assert_eq!(code_of(0), Code::RD_KAFKA_RESP_ERR_NO_ERROR);
        for absent in [9_999, -5, i32::MIN] {
            assert_eq!(code_of(absent), Code::RD_KAFKA_RESP_ERR_UNKNOWN, "{absent}");
        }
    }

    #[test]
    fn a_field_may_hold_any_number() {
        let mut field = std::mem::MaybeUninit::<rd::rd_kafka_resp_err_t>::uninit();
        for (number, code) in [(3, Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART), (9_999, code_of(-1))] {
            // SAFETY: a number of the field's width is written, and read as such.
            let read = unsafe {
                field.as_mut_ptr().cast::<i32>().write(number);
                code_at(field.as_ptr())
            };
            assert_eq!(read, code);
        }
    }

    /// The bindings and the functions declared here speak of the same library.
    #[test]
    fn declared_functions_return_what_the_bindings_do() {
        let code = Code::RD_KAFKA_RESP_ERR__TIMED_OUT;
        // SAFETY: an error of the test's own, destroyed after its last use; null stands for no error.
        unsafe {
            let error = rd::rd_kafka_error_new(code, c"%s".as_ptr(), c"slow".as_ptr());
            assert_eq!(error_code(error), code);
            rd::rd_kafka_error_destroy(error);
            assert_eq!(error_code(std::ptr::null()), Code::RD_KAFKA_RESP_ERR_NO_ERROR);
        }
    }
}
