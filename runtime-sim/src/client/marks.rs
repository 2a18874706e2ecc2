//! What a process's clients do that somebody outside wants to know: moments for crashes, and counts.

use crate::moments::Moment;
use kafka_model::Millis;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    Moment(Moment),
    /// A producer learned that it was fenced.
    Fenced,
    /// A commit that was begun at `since` came to an end that says nothing of its outcome.
    UnknownCommit {
        transactional_id: String,
        since: Millis,
    },
    Settled,
    Aborted,
    /// A step of the process took long.
    SlowStep,
}
