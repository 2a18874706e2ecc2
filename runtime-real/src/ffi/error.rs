//! An error of librdkafka's or of a broker's, as an owned value.

use super::codes::{self, Code, code_of, describe};
use super::text::text_of;
use rdkafka::bindings as rd;
use rdkafka::types::RDKafkaErrorCode;
use std::fmt;

/// An error with what librdkafka says may be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientError {
    pub(crate) code: Code,
    pub(crate) text: String,
    /// The client is of no more use.
    pub(crate) fatal: bool,
    /// The call may be made again.
    pub(crate) retriable: bool,
    /// The transaction can only be aborted.
    pub(crate) requires_abort: bool,
}

impl ClientError {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> ClientError {
        ClientError { code, text: text.into(), fatal: false, retriable: false, requires_abort: false }
    }

    /// An error of which nothing but the code is known.
    pub(crate) fn of_code(code: Code) -> ClientError {
        ClientError::new(code, describe(code))
    }

    /// One that rust-rdkafka gave.
    pub(crate) fn of_rdkafka(code: RDKafkaErrorCode, text: impl Into<String>) -> ClientError {
        ClientError::new(code_of(code as i32), text)
    }

    /// No answer within the time allowed.
    pub(crate) fn timed_out(what: &str) -> ClientError {
        ClientError::new(Code::RD_KAFKA_RESP_ERR__TIMED_OUT, format!("no answer to {what} in time"))
    }

    /// What librdkafka would not even begin with.
    pub(super) fn invalid(text: impl Into<String>) -> ClientError {
        ClientError::new(Code::RD_KAFKA_RESP_ERR__INVALID_ARG, text)
    }

    /// `Ok` for NO_ERROR.
    pub(crate) fn check(code: Code) -> Result<(), ClientError> {
        match code {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(ClientError::of_code(code)),
        }
    }

    /// `Ok` for NO_ERROR; any other code with the words that came with it.
    pub(super) fn check_told(code: Code, text: impl FnOnce() -> String) -> Result<(), ClientError> {
        match code {
            Code::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(ClientError::new(code, text())),
        }
    }

    /// Takes over what a call returned; null means success.
    ///
    /// # Safety
    /// `error` is null or an error object that nobody else frees.
    pub(super) unsafe fn take(error: *mut rd::rd_kafka_error_t) -> Result<(), ClientError> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: `error` is a valid error object by this function's contract, read before it is destroyed, and
        // the text is copied out of it.
        unsafe {
            let taken = ClientError {
                code: codes::error_code(error),
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

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = codes::name(self.code);
        match self.text.is_empty() {
            true => f.write_str(&name),
            false => write!(f, "{} ({name})", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_the_code() {
        let refused = ClientError::new(Code::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, "why");
        assert_eq!(refused.to_string(), "why (POLICY_VIOLATION)");
        let silent = ClientError::new(Code::RD_KAFKA_RESP_ERR__FAIL, "");
        assert_eq!(silent.to_string(), "_FAIL");
    }

    #[test]
    fn rust_rdkafka_s_codes_are_the_same() {
        for (theirs, ours) in [
            (RDKafkaErrorCode::BrokerTransportFailure, Code::RD_KAFKA_RESP_ERR__TRANSPORT),
            (RDKafkaErrorCode::GroupAuthorizationFailed, Code::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED),
            (RDKafkaErrorCode::Unknown, Code::RD_KAFKA_RESP_ERR_UNKNOWN),
            (RDKafkaErrorCode::NoError, Code::RD_KAFKA_RESP_ERR_NO_ERROR),
        ] {
            assert_eq!(ClientError::of_rdkafka(theirs, "").code, ours);
        }
    }

    #[test]
    fn only_no_error_is_none() {
        assert_eq!(ClientError::check(Code::RD_KAFKA_RESP_ERR_NO_ERROR), Ok(()));
        let told = ClientError::check_told(Code::RD_KAFKA_RESP_ERR__FAIL, || "told".into());
        assert_eq!(told, Err(ClientError::new(Code::RD_KAFKA_RESP_ERR__FAIL, "told")));
    }
}
