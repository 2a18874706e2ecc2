use crate::{Millis, TransactionalId};
use kafka_types::{ProducerEpoch, ProducerId, TopicPartition, TransactionResult};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionCause {
    /// The producer's EndTxn.
    Producer,
    /// Another InitProducerId of the same transactional id.
    Fenced,
    /// `transaction.timeout.ms`
    TimedOut,
}

/// The end of a transaction, from the moment it cannot turn out otherwise. Its records count from here on,
/// whether or not a reader can see them yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Counts from zero without gaps.
    pub number: u64,
    pub decided_at: Millis,
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    /// The epoch that the markers carry: that of the transaction, or one more where it was fenced.
    pub producer_epoch: ProducerEpoch,
    pub result: TransactionResult,
    pub cause: DecisionCause,
    /// The partitions that the transaction held, with the time at which their marker was written.
    /// `__consumer_offsets` stands for committed offsets. A partition deleted meanwhile never gets one.
    pub markers: BTreeMap<TopicPartition, Option<Millis>>,
    /// When every marker was written and replicated.
    pub completed_at: Option<Millis>,
}

/// All decisions in order, for an oracle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decisions {
    first: u64,
    decisions: Vec<Decision>,
}

impl Decisions {
    pub(super) fn push(&mut self, mut decision: Decision) -> u64 {
        decision.number = self.first + self.decisions.len() as u64;
        let number = decision.number;
        self.decisions.push(decision);
        number
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Decision> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.decisions.get_mut(index)
    }

    /// The decisions from `number` on.
    pub fn since(&self, number: u64) -> &[Decision] {
        let skip = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.decisions.get(skip..).unwrap_or(&[])
    }

    /// The number that the next one will get.
    pub fn next_number(&self) -> u64 {
        self.first + self.decisions.len() as u64
    }

    /// Forgets completed decisions below `number`, so that a long run's memory stays flat.
    pub fn forget_before(&mut self, number: u64) {
        let is_over = |decision: &Decision| decision.number < number && decision.completed_at.is_some();
        let count = self.decisions.iter().take_while(|decision| is_over(decision)).count();
        self.decisions.drain(..count);
        self.first += count as u64;
    }
}
