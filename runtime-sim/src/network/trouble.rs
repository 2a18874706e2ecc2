//! What goes wrong with the requests of transactions in particular.

use super::Network;
use crate::random::Rate;
use kafka_model::{Request, RequestToken};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// An error, and nothing is done.
    Refused,
    /// It is done, and an error is answered.
    RefusedAfterApply,
    /// It is done, and the answer is lost.
    Unanswered,
    /// An answer as if nothing had been open: what it did before is forgotten.
    Forgotten,
}

impl Network {
    /// What is to befall a request that a broker takes up.
    pub(super) fn trouble_with(&mut self, request: &Request, token: RequestToken) -> Option<Trouble> {
        let rate = self.faults.transaction_trouble;
        match request {
            Request::AddPartitionsToTxn(_) => self.random.happens(rate).then_some(Trouble::Refused),
            Request::EndTxn(it) => {
                if rate == Rate::NEVER {
                    return None;
                }
                self.ending.insert(token, it.transactional_id.clone());
                // A coordinator that could not answer once may not know any more what it did.
                if self.unanswered.remove(&it.transactional_id) {
                    return Some(Trouble::Forgotten);
                }
                let trouble = [Trouble::Refused, Trouble::RefusedAfterApply, Trouble::Unanswered];
                if self.random.happens(rate) { self.random.pick(&trouble).copied() } else { None }
            }
            _ => None,
        }
    }
}
