//! What can go wrong between the mirror and a cluster, as values.

use std::fmt;

/// Which of the two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Source,
    Target,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Target => "target",
        })
    }
}

/// Why a question to a cluster has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Trouble {
    /// No broker answered in time: wrong address, network or cluster down. Worth another try.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// The brokers answered and refused who we are.
    #[error("authentication failed: {0}")]
    Authentication(String),
    /// The brokers know us and refuse what we ask.
    #[error("not authorized: {operation} on {resource}")]
    NotAuthorized {
        /// As in an ACL: `Topic orders`, `Group verbatim-x`, `TransactionalId verbatim-x-0`, `Cluster`.
        resource: String,
        /// As in an ACL: `Read`, `Describe`, `DescribeConfigs`, `Write`, `Create`...
        operation: String,
    },
    /// The brokers will never accept the request as it stands: an invalid replication factor or a policy.
    #[error("refused: {0}")]
    Refused(String),
    /// Any other error; worth another try.
    #[error("{0}")]
    Passing(String),
}

/// How a step of a lane's transaction failed. An unknown outcome is a value of its own, never an error's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Nothing was done, and trying the same step again is safe.
    Retry(String),
    /// The transaction must be aborted and can be: the producer is sound.
    Abort(String),
    /// The producer is no longer the lane's: another instance took it, or the transaction timed out.
    Fenced(String),
    /// Done or not done, nobody knows; or the client's transaction state can no longer be trusted.
    Unknown(String),
    /// Will not succeed until somebody changes something.
    Fatal(Trouble),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Retry(text) => write!(f, "to be retried: {text}"),
            Failure::Abort(text) => write!(f, "to be aborted: {text}"),
            Failure::Fenced(text) => write!(f, "fenced: {text}"),
            Failure::Unknown(text) => write!(f, "outcome unknown: {text}"),
            Failure::Fatal(trouble) => write!(f, "{trouble}"),
        }
    }
}

/// Why the target did not take a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// MESSAGE_TOO_LARGE or RECORD_LIST_TOO_LARGE. It speaks of a whole batch, so of a record only if that
    /// went alone (H11).
    TooLarge(String),
    /// INVALID_RECORD, INVALID_TIMESTAMP, POLICY_VIOLATION...: of a whole batch too.
    Invalid(String),
    /// The transaction failed around it: purged, fenced, timed out. Not the batch's own fault.
    Collateral(Failure),
}
