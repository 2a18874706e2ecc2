//! Counting the requests that end transactions.

/// EndTxn requests of one client. It has at most one at a time: the next is sent when the last has its answer
/// or is given up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndTxns {
    /// Handed to a socket whole, retries by librdkafka included.
    pub(super) sent: u64,
    /// Sent and given up without an answer.
    lost: u64,
    awaited: bool,
}

impl EndTxns {
    pub(super) fn sent(&mut self) {
        self.sent += 1;
        self.lost += u64::from(self.awaited);
        self.awaited = true;
    }

    /// librdkafka tells of each answer twice, and of requests that were never sent too; it does not tell which
    /// request it was (the correlation id is always 0).
    pub(super) fn ended(&mut self, answered: bool) {
        self.lost += u64::from(self.awaited && !answered);
        self.awaited = false;
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.lost + u64::from(self.awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_txn_without_an_answer_is_remembered() {
        let mut end_txns = EndTxns::default();
        end_txns.ended(false);
        assert_eq!((end_txns.sent, end_txns.unanswered()), (0, 0), "never sent");
        end_txns.sent();
        assert_eq!(end_txns.unanswered(), 1);
        end_txns.ended(true);
        end_txns.ended(true);
        assert_eq!((end_txns.sent, end_txns.unanswered()), (1, 0), "answered, told twice");
        end_txns.sent();
        end_txns.ended(false);
        end_txns.ended(false);
        end_txns.sent();
        end_txns.ended(true);
        assert_eq!((end_txns.sent, end_txns.unanswered()), (3, 1), "the second was lost");
    }
}
