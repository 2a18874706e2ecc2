//! librdkafka's errors as owned values.

use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaRespErr;
use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt;
use std::sync::LazyLock;

/// One of librdkafka's error codes: below zero its own, above zero the brokers'.
pub(crate) type Code = RDKafkaRespErr;

/// An error with what librdkafka says may be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RdError {
    pub(crate) code: Code,
    pub(crate) text: String,
    /// The client is of no more use.
    pub(crate) fatal: bool,
    /// The call may be made again.
    pub(crate) retriable: bool,
    /// The transaction can only be aborted.
    pub(crate) requires_abort: bool,
}

impl RdError {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> RdError {
        RdError { code, text: text.into(), fatal: false, retriable: false, requires_abort: false }
    }

    /// An error of which nothing but the code is known.
    pub(crate) fn of_code(code: Code) -> RdError {
        RdError::new(code, describe(code))
    }

    /// `Ok` for NO_ERROR.
    pub(crate) fn check(code: Code) -> Result<(), RdError> {
        match code {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(RdError::of_code(code)),
        }
    }

    /// Takes over what a call returned; null means success.
    ///
    /// # Safety
    /// `error` is null or an error object that nobody else frees.
    pub(super) unsafe fn take(error: *mut rd::rd_kafka_error_t) -> Result<(), RdError> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: `error` is a valid error object by this function's contract, read before it is destroyed, and
        // the text is copied out of it.
        unsafe {
            let taken = RdError {
                code: rd::rd_kafka_error_code(error),
                text: text_of(rd::rd_kafka_error_string(error)),
                fatal: rd::rd_kafka_error_is_fatal(error) != 0,
                retriable: rd::rd_kafka_error_is_retriable(error) != 0,
                requires_abort: rd::rd_kafka_error_txn_requires_abort(error) != 0,
            };
            rd::rd_kafka_error_destroy(error);
            Err(taken)
        }
    }
}

impl fmt::Display for RdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, name(self.code))
    }
}

/// librdkafka's sentence for a code.
pub(crate) fn describe(code: Code) -> String {
    // SAFETY: returns a static string for every code.
    unsafe { text_of(rd::rd_kafka_err2str(code)) }
}

/// A code's name as the protocol writes it, `TOPIC_AUTHORIZATION_FAILED` or `_TIMED_OUT`.
fn name(code: Code) -> String {
    // SAFETY: returns a static string for every code.
    unsafe { text_of(rd::rd_kafka_err2name(code)) }
}

/// The code that a broker's number stands for. A broker newer than librdkafka may send numbers that the
/// bindings' enum lacks; reading one of those as the enum would be undefined behaviour.
pub(super) fn code_of(number: i32) -> Code {
    static KNOWN: LazyLock<HashMap<i32, Code>> = LazyLock::new(|| {
        let mut descriptions = std::ptr::null();
        let mut count = 0;
        // SAFETY: fills in a pointer to a static table of `count` elements.
        let table = unsafe {
            rd::rd_kafka_get_err_descs(&mut descriptions, &mut count);
            std::slice::from_raw_parts(descriptions, count)
        };
        // The table is indexed by code and has gaps, which have no name.
        let named = table.iter().filter(|entry| !entry.name.is_null());
        named.map(|entry| (entry.code as i32, entry.code)).collect()
    });
    KNOWN.get(&number).copied().unwrap_or(Code::RD_KAFKA_RESP_ERR_UNKNOWN)
}

/// Copies a C string; empty for null.
///
/// # Safety
/// `text` is null or points to a string that ends in NUL and lives until this returns.
pub(super) unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
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
}
