//! What librdkafka's errors mean to a lane: what only transactions know, over the table that holds for all.

use crate::ffi::{ClientError, Code};
use crate::trouble::{Asked, Kind, kind};
use kafka_types::TopicName;
use std::collections::BTreeSet;
use verbatim_core::failure::{Failure, Refusal, Trouble};

/// A call that concerns the producer or its transaction as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Init,
    Begin,
    /// With how many EndTxn requests it sent.
    Commit {
        end_txn_sent: u64,
    },
    Abort,
}

/// What a code says, before it is known which call met it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meaning {
    /// The producer is no longer the transactional id's.
    Fenced,
    /// The epoch is not the coordinator's: fenced or timed out if the client has given up, else unclear.
    Epoch,
    /// Coordinator and client do not agree on the transaction: an earlier EndTxn may have struck (H1).
    Diverged,
    Denied(Trouble),
    TooLarge,
    Invalid,
    /// Will not be taken as it is asked.
    Refused,
    /// Time-outs, elections, lost connections, purges.
    Passing,
}

fn meaning(error: &ClientError, topic: Option<&TopicName>, operation: &'static str, id: &str) -> Meaning {
    match error.code {
        Code::RD_KAFKA_RESP_ERR__FENCED | Code::RD_KAFKA_RESP_ERR_PRODUCER_FENCED => Meaning::Fenced,
        Code::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH => Meaning::Epoch,
        Code::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE
        | Code::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING
        | Code::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID
        | Code::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER
        | Code::RD_KAFKA_RESP_ERR_TRANSACTION_COORDINATOR_FENCED => Meaning::Diverged,
        Code::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED => {
            Meaning::Denied(error.trouble(&Asked::new("Write", id)))
        }
        Code::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED => {
            Meaning::Denied(error.trouble(&Asked::new("IdempotentWrite", "")))
        }
        Code::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE | Code::RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE => {
            Meaning::TooLarge
        }
        Code::RD_KAFKA_RESP_ERR_INVALID_RECORD
        | Code::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP
        | Code::RD_KAFKA_RESP_ERR_POLICY_VIOLATION
        | Code::RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT
        | Code::RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE => Meaning::Invalid,
        code => match kind(code) {
            Kind::NotAuthorized(_) | Kind::Authentication => {
                Meaning::Denied(error.trouble(&Asked::new(operation, topic.map_or("", TopicName::as_str))))
            }
            Kind::Refused => Meaning::Refused,
            Kind::Unreachable | Kind::Passing => Meaning::Passing,
        },
    }
}

/// How a call failed. `fatal` is the client's fatal error, if it has one: what the call says may then be no
/// more than that nothing works.
pub(super) fn of_call(call: Call, error: &ClientError, fatal: Option<&ClientError>, id: &str) -> Failure {
    let cause = fatal.unwrap_or(error);
    let text = cause.to_string();
    match (meaning(cause, None, "Write", id), call) {
        (Meaning::Denied(trouble), _) => Failure::Fatal(trouble),
        (Meaning::Fenced, _) => Failure::Fenced(text),
        (Meaning::Epoch, _) if cause.fatal => Failure::Fenced(text),
        (Meaning::Refused, Call::Init) => Failure::Fatal(Trouble::Refused(text)),
        (_, Call::Init) if cause.fatal => Failure::Fatal(Trouble::Refused(text)),
        // A producer that did not come up holds no transaction; another may be made.
        (_, Call::Init) => Failure::Retry(text),
        (Meaning::Epoch | Meaning::Diverged, _) => Failure::Unknown(text),
        // librdkafka found a reason not to ask the coordinator at all.
        (_, Call::Commit { end_txn_sent: 0 }) if error.requires_abort && fatal.is_none() => {
            Failure::Abort(text)
        }
        (_, Call::Begin | Call::Commit { .. } | Call::Abort) => Failure::Unknown(text),
    }
}

/// Why a record, or the batch it went in, was not taken.
pub(super) fn of_record(
    error: &ClientError,
    fatal: Option<&ClientError>,
    topic: &TopicName,
    id: &str,
) -> Refusal {
    let cause = fatal.unwrap_or(error);
    let text = cause.to_string();
    match meaning(cause, Some(topic), "Write", id) {
        Meaning::Denied(trouble) => Refusal::Collateral(Failure::Fatal(trouble)),
        Meaning::Fenced => Refusal::Collateral(Failure::Fenced(text)),
        Meaning::Epoch if cause.fatal => Refusal::Collateral(Failure::Fenced(text)),
        Meaning::Epoch | Meaning::Diverged => Refusal::Collateral(Failure::Unknown(text)),
        _ if fatal.is_some() => Refusal::Collateral(Failure::Unknown(text)),
        Meaning::TooLarge => Refusal::TooLarge(text),
        Meaning::Invalid => Refusal::Invalid(text),
        Meaning::Refused | Meaning::Passing => Refusal::Collateral(Failure::Abort(text)),
    }
}

/// Whether an error only tells that something else has gone wrong before: purged, or not allowed in the state that
/// the transaction is in.
pub(super) fn is_echo(error: &ClientError) -> bool {
    matches!(
        error.code,
        Code::RD_KAFKA_RESP_ERR__PURGE_QUEUE
            | Code::RD_KAFKA_RESP_ERR__PURGE_INFLIGHT
            | Code::RD_KAFKA_RESP_ERR__STATE
    )
}

/// Why a transaction with records for `topics` can only be aborted. The coordinator refuses a topic without
/// librdkafka's saying which: with one there is no doubt, and with several the lane is taken again, which looks
/// at each by itself.
pub(super) fn of_transaction(cause: &ClientError, topics: &BTreeSet<TopicName>, id: &str) -> Failure {
    let only = if topics.len() == 1 { topics.first() } else { None };
    match (meaning(cause, only, "Write", id), only) {
        (Meaning::Denied(Trouble::NotAuthorized { resource, .. }), None) if resource == "Topic" => {
            Failure::Unknown(cause.to_string())
        }
        (Meaning::Denied(trouble), _) => Failure::Fatal(trouble),
        (Meaning::Fenced, _) => Failure::Fenced(cause.to_string()),
        (Meaning::Epoch | Meaning::Diverged, _) => Failure::Unknown(cause.to_string()),
        (Meaning::TooLarge | Meaning::Invalid | Meaning::Refused | Meaning::Passing, _) => {
            Failure::Abort(cause.to_string())
        }
    }
}

/// Why something on the target could not be read; absent where it is worth waiting on.
pub(super) fn of_reading(error: &ClientError, topic: &TopicName) -> Option<Trouble> {
    lasting(error, topic, "Read")
}

/// Why a topic could not be described to a producer; absent where it is worth waiting on.
pub(super) fn of_writing(error: &ClientError, topic: &TopicName) -> Option<Trouble> {
    lasting(error, topic, "Write")
}

fn lasting(error: &ClientError, topic: &TopicName, operation: &'static str) -> Option<Trouble> {
    match meaning(error, Some(topic), operation, "") {
        Meaning::Denied(trouble) => Some(trouble),
        Meaning::Refused => Some(Trouble::Refused(error.to_string())),
        Meaning::Fenced
        | Meaning::Epoch
        | Meaning::Diverged
        | Meaning::TooLarge
        | Meaning::Invalid
        | Meaning::Passing => None,
    }
}

/// Whether a record that failed so leaves a gap in its partition's sequence numbers that librdkafka does not
/// close: after what a broker refuses for good it only aborts, without taking a new epoch, and the next record
/// there fails as out of order. After errors of its own, such as time-outs and purges, it takes one.
pub(super) fn leaves_gap(error: &ClientError) -> bool {
    0 < error.code as i32
}

/// The worse of two refusals of one batch: what must be done about the producer goes before what must be done
/// about a record, and a purge is only the echo of something else.
pub(super) fn worse(a: Refusal, b: Refusal) -> Refusal {
    fn rank(refusal: &Refusal) -> u8 {
        match refusal {
            Refusal::Collateral(Failure::Fenced(_)) => 5,
            Refusal::Collateral(Failure::Unknown(_)) => 4,
            Refusal::Collateral(Failure::Fatal(_)) => 3,
            Refusal::TooLarge(_) | Refusal::Invalid(_) => 2,
            Refusal::Collateral(Failure::Abort(_)) => 1,
            Refusal::Collateral(Failure::Retry(_)) => 0,
        }
    }
    if rank(&a) < rank(&b) { b } else { a }
}

/// A refusal of ledger records, as the failure of the step that produced them.
pub(super) fn of_ledger(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::TooLarge(text) | Refusal::Invalid(text) => Failure::Fatal(Trouble::Refused(text)),
        Refusal::Collateral(failure) => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Code as C;

    const ID: &str = "verbatim-f-0";

    fn error(code: Code) -> ClientError {
        ClientError::new(code, "told")
    }

    fn fatal(code: Code) -> ClientError {
        ClientError { fatal: true, ..error(code) }
    }

    fn requires_abort(code: Code) -> ClientError {
        ClientError { requires_abort: true, ..error(code) }
    }

    fn kind(failure: &Failure) -> &'static str {
        match failure {
            Failure::Retry(_) => "retry",
            Failure::Abort(_) => "abort",
            Failure::Fenced(_) => "fenced",
            Failure::Unknown(_) => "unknown",
            Failure::Fatal(_) => "fatal",
        }
    }

    #[test]
    fn calls() {
        const COMMIT: Call = Call::Commit { end_txn_sent: 1 };
        const UNSENT: Call = Call::Commit { end_txn_sent: 0 };
        let timed_out = C::RD_KAFKA_RESP_ERR__TIMED_OUT;
        for (call, error, fatal, expected) in [
            (Call::Init, error(timed_out), None, "retry"),
            (Call::Init, error(C::RD_KAFKA_RESP_ERR__TRANSPORT), None, "retry"),
            (Call::Init, error(C::RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT), None, "fatal"),
            (Call::Init, error(C::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED), None, "fatal"),
            (Call::Init, error(C::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED), None, "fatal"),
            (Call::Init, error(C::RD_KAFKA_RESP_ERR__FENCED), None, "fenced"),
            (Call::Begin, error(C::RD_KAFKA_RESP_ERR__STATE), None, "unknown"),
            (Call::Begin, error(C::RD_KAFKA_RESP_ERR__STATE), Some(C::RD_KAFKA_RESP_ERR__FENCED), "fenced"),
            (COMMIT, ClientError { retriable: true, ..error(timed_out) }, None, "unknown"),
            (UNSENT, ClientError { retriable: true, ..error(timed_out) }, None, "unknown"),
            (UNSENT, requires_abort(C::RD_KAFKA_RESP_ERR__INCONSISTENT), None, "abort"),
            (COMMIT, requires_abort(C::RD_KAFKA_RESP_ERR__INCONSISTENT), None, "unknown"),
            (UNSENT, requires_abort(C::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE), None, "unknown"),
            (COMMIT, error(C::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE), None, "unknown"),
            (COMMIT, error(C::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING), None, "unknown"),
            (COMMIT, error(C::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH), None, "unknown"),
            (COMMIT, fatal(C::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH), None, "fenced"),
            (COMMIT, fatal(C::RD_KAFKA_RESP_ERR__FENCED), None, "fenced"),
            (COMMIT, error(C::RD_KAFKA_RESP_ERR__FATAL), Some(C::RD_KAFKA_RESP_ERR__FENCED), "fenced"),
            (
                COMMIT,
                error(C::RD_KAFKA_RESP_ERR__FATAL),
                Some(C::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE),
                "unknown",
            ),
            (Call::Abort, error(timed_out), None, "unknown"),
            (Call::Abort, error(C::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE), None, "unknown"),
            (Call::Abort, error(C::RD_KAFKA_RESP_ERR_PRODUCER_FENCED), None, "fenced"),
        ] {
            let fatal = fatal.map(self::fatal);
            let failure = of_call(call, &error, fatal.as_ref(), ID);
            assert_eq!(kind(&failure), expected, "{call:?} {error:?} {fatal:?}");
        }
    }

    #[test]
    fn records() {
        for (code, fatal, expected) in [
            (C::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, None, "too large"),
            (C::RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, None, "too large"),
            (C::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, None, "invalid"),
            (C::RD_KAFKA_RESP_ERR_INVALID_RECORD, None, "invalid"),
            (C::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, None, "invalid"),
            (C::RD_KAFKA_RESP_ERR__PURGE_QUEUE, None, "abort"),
            (C::RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, None, "abort"),
            (C::RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, None, "abort"),
            (C::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, None, "abort"),
            (C::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, None, "abort"),
            (C::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE, None, "unknown"),
            (C::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING, None, "unknown"),
            (C::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, None, "unknown"),
            (C::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, Some(C::RD_KAFKA_RESP_ERR__FENCED), "fenced"),
            (C::RD_KAFKA_RESP_ERR__PURGE_QUEUE, Some(C::RD_KAFKA_RESP_ERR__FENCED), "fenced"),
            (C::RD_KAFKA_RESP_ERR__PURGE_QUEUE, Some(C::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE), "unknown"),
            (C::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, Some(C::RD_KAFKA_RESP_ERR__FENCED), "fenced"),
            (C::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, None, "fatal"),
        ] {
            let fatal = fatal.map(self::fatal);
            let refusal = of_record(&error(code), fatal.as_ref(), &"orders".into(), ID);
            let found = match &refusal {
                Refusal::TooLarge(_) => "too large",
                Refusal::Invalid(_) => "invalid",
                Refusal::Collateral(failure) => kind(failure),
            };
            assert_eq!(found, expected, "{code:?} {fatal:?}");
        }
    }

    #[test]
    fn what_was_denied_is_named() {
        let denied = |code| of_record(&error(code), None, &"orders".into(), ID);
        let named = |resource: &str, operation: &str| {
            let (resource, operation) = (resource.into(), operation.into());
            Refusal::Collateral(Failure::Fatal(Trouble::NotAuthorized { resource, operation }))
        };
        let topic = denied(C::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        assert_eq!(topic, named("Topic orders", "Write"));
        let id = denied(C::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        assert_eq!(id, named("TransactionalId verbatim-f-0", "Write"));
        let reading = of_reading(&error(C::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED), &"l".into());
        assert_eq!(
            reading,
            Some(Trouble::NotAuthorized { resource: "Topic l".into(), operation: "Read".into() })
        );
        assert_eq!(of_reading(&error(C::RD_KAFKA_RESP_ERR__TRANSPORT), &"l".into()), None);
    }

    #[test]
    fn a_denied_topic_is_named_where_there_is_but_one() {
        let denied = |topics: &[&str]| {
            let cause = requires_abort(C::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
            of_transaction(&cause, &topics.iter().map(|&topic| topic.into()).collect(), ID)
        };
        let named = Trouble::NotAuthorized { resource: "Topic orders".into(), operation: "Write".into() };
        assert_eq!(denied(&["orders"]), Failure::Fatal(named));
        assert_eq!(kind(&denied(&["orders", "payments"])), "unknown");
        let passing = requires_abort(C::RD_KAFKA_RESP_ERR__TIMED_OUT);
        assert_eq!(kind(&of_transaction(&passing, &BTreeSet::new(), ID)), "abort");
        assert!(is_echo(&error(C::RD_KAFKA_RESP_ERR__PURGE_QUEUE)));
        assert!(is_echo(&error(C::RD_KAFKA_RESP_ERR__STATE)));
        assert!(!is_echo(&error(C::RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)));
    }

    #[test]
    fn only_what_a_broker_refused_leaves_a_gap() {
        assert!(leaves_gap(&error(C::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)));
        assert!(leaves_gap(&error(C::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP)));
        assert!(!leaves_gap(&error(C::RD_KAFKA_RESP_ERR__PURGE_QUEUE)));
        assert!(!leaves_gap(&error(C::RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)));
    }

    #[test]
    fn a_purge_never_hides_its_cause() {
        let purge = || Refusal::Collateral(Failure::Abort("purged".into()));
        let large = || Refusal::TooLarge("large".into());
        let fenced = || Refusal::Collateral(Failure::Fenced("fenced".into()));
        assert_eq!(worse(purge(), large()), large());
        assert_eq!(worse(large(), purge()), large());
        assert_eq!(worse(large(), fenced()), fenced());
    }
}
