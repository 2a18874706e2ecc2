//! Errors as the library gives them to whoever uses it.

use kafka_types::ErrorCode;
use std::fmt;

/// A broker's error code, or one of the library's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Code {
    Broker(ErrorCode),
    /// `ERR__FENCED`: another producer has the transactional id, or the transaction timed out.
    Fenced,
    TimedOut,
    MessageTimedOut,
    PurgedFromQueue,
    PurgedInFlight,
    /// Records of the transaction were not delivered.
    Inconsistent,
    /// The call does not fit the producer's state.
    State,
    UnknownPartition,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LibraryError {
    pub(super) code: Code,
    /// The client is of no use any more.
    pub(super) is_fatal: bool,
    /// The transaction must be aborted, and can be.
    pub(super) requires_abort: bool,
    pub(super) is_retriable: bool,
}

impl LibraryError {
    pub(super) fn new(code: Code) -> LibraryError {
        LibraryError { code, is_fatal: false, requires_abort: false, is_retriable: false }
    }

    pub(super) fn broker(code: ErrorCode) -> LibraryError {
        LibraryError::new(Code::Broker(code))
    }

    #[must_use]
    pub(super) fn fatal(self) -> LibraryError {
        LibraryError { is_fatal: true, ..self }
    }

    #[must_use]
    pub(super) fn requiring_abort(self) -> LibraryError {
        LibraryError { requires_abort: true, ..self }
    }

    #[must_use]
    pub(super) fn retriable(self) -> LibraryError {
        LibraryError { is_retriable: true, ..self }
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Code::Broker(code) => write!(f, "broker: {code}"),
            own => write!(f, "local: {own:?}"),
        }
    }
}
