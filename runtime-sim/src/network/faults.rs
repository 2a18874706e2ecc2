use crate::random::Rate;
use kafka_model::Millis;
use serde::{Deserialize, Serialize};

/// What the network does to what it carries. Rates are drawn once a request or response.
///
/// A connection is a stream: what is lost on it is lost with all that follows, and what is slow keeps all that
/// follows waiting. Only two connections can overtake each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkFaults {
    /// How long a request or response takes, each way.
    pub delay_min_ms: Millis,
    pub delay_max_ms: Millis,
    /// It takes up to `slow_max_ms` instead, long enough to arrive after its sender has given up or died.
    pub slow: Rate,
    pub slow_max_ms: Millis,
    /// The request never arrives.
    pub request_lost: Rate,
    /// The broker did what was asked, and the answer never arrives.
    pub response_lost: Rate,
    /// The connection breaks as the request is sent. Of what is under way, some of the first requests may
    /// still arrive, at once or up to `slow_max_ms` later; no answer does.
    pub disconnect: Rate,
    /// The same, of requests that end a transaction only: where it hurts most.
    pub disconnect_end_txn: Rate,
    /// Of connections that break so, those of which the client learns only from its own time-out.
    pub breaks_silently: Rate,
    /// Of requests that end a transaction: errors in place of doing it, errors although it was done, and answers that
    /// are lost. Of those that add partitions to it: errors.
    pub transaction_trouble: Rate,
    /// Of connections that a dying process, or a client that gives up, leaves behind: what is under way on them
    /// arrives up to `slow_max_ms` later.
    pub outlives_sender: Rate,
    /// Of losses, how many in a million the client learns only from its own time-out, since nobody tells.
    pub silent: Rate,
    /// The broker answers an error that the API knows, and does nothing.
    pub refused: Rate,
    /// The broker does what was asked and answers an error all the same, where Kafka can.
    pub refused_after_apply: Rate,
    /// Whether the workload's own clients suffer too.
    pub strikes_workload: bool,
}

impl Default for NetworkFaults {
    /// None, and delays of a data centre.
    fn default() -> NetworkFaults {
        NetworkFaults {
            delay_min_ms: 0,
            delay_max_ms: 3,
            slow: Rate::NEVER,
            slow_max_ms: 20_000,
            request_lost: Rate::NEVER,
            response_lost: Rate::NEVER,
            disconnect: Rate::NEVER,
            disconnect_end_txn: Rate::NEVER,
            breaks_silently: Rate::NEVER,
            transaction_trouble: Rate::NEVER,
            outlives_sender: Rate::NEVER,
            silent: Rate::NEVER,
            refused: Rate::NEVER,
            refused_after_apply: Rate::NEVER,
            strikes_workload: false,
        }
    }
}
