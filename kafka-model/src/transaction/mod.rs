//! The transaction coordinator (core/.../coordinator/transaction/TransactionCoordinator.scala, version 1 of the
//! protocol: no epoch is bumped by EndTxn).
//!
//! Modelled: initialisation and fencing, epochs that run out, recovery with an expected id and epoch (KIP-360),
//! partitions added, the end that is decided at once and whose markers follow partition by partition, aborts
//! after a time-out, ids that expire. An EndTxn is checked for the producer's epoch and for nothing else, so a
//! late one ends the next transaction of the same epoch (KAFKA-17754).
//! Not modelled: the transaction log as a topic. What is decided here is durable here, and a coordinator that
//! moves takes it along.

mod decisions;
mod end;
mod init;
mod markers;

pub use decisions::{Decision, DecisionCause, Decisions};

use crate::{Cluster, Millis, Offset, TransactionalId};
use kafka_types::{
    ErrorCode, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId, TopicPartition,
    TransactionResult,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionState {
    Empty,
    Ongoing,
    /// Decided; markers are being written.
    Prepare(TransactionResult),
    /// Every marker is written.
    Complete(TransactionResult),
}

impl TransactionState {
    /// As DescribeTransactions spells it.
    pub fn name(self) -> &'static str {
        match self {
            TransactionState::Empty => "Empty",
            TransactionState::Ongoing => "Ongoing",
            TransactionState::Prepare(TransactionResult::Commit) => "PrepareCommit",
            TransactionState::Prepare(TransactionResult::Abort) => "PrepareAbort",
            TransactionState::Complete(TransactionResult::Commit) => "CompleteCommit",
            TransactionState::Complete(TransactionResult::Abort) => "CompleteAbort",
        }
    }
}

/// How far the marker of one partition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MarkerProgress {
    Due(Millis),
    /// In the leader's log, and not yet on every in-sync replica.
    Written(Offset),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub(crate) producer_id: ProducerId,
    previous_producer_id: ProducerId,
    /// Minus one until the first initialisation is through.
    pub(crate) epoch: ProducerEpoch,
    /// The epoch before the last bump, if a producer asked for it that knew that epoch.
    last_epoch: ProducerEpoch,
    pub(crate) timeout_ms: Millis,
    pub(crate) state: TransactionState,
    pub(crate) partitions: BTreeSet<TopicPartition>,
    /// When the first partition was added.
    pub(crate) started_at: Option<Millis>,
    updated_at: Millis,
    /// Of the partitions that still need one.
    markers: BTreeMap<TopicPartition, MarkerProgress>,
    /// The decision that the markers carry out.
    decision: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Transactions {
    pub(crate) by_id: BTreeMap<TransactionalId, Transaction>,
    pub(crate) decisions: Decisions,
    next_producer_id: ProducerId,
    /// How much later than a decision the markers of a partition come, where it is not as configured.
    pub(crate) marker_delays: BTreeMap<TopicPartition, Millis>,
}

impl Transactions {
    fn new_producer_id(&mut self) -> ProducerId {
        let id = self.next_producer_id;
        self.next_producer_id += 1;
        id
    }
}

impl Transaction {
    fn new(producer_id: ProducerId, timeout_ms: Millis, now: Millis) -> Transaction {
        Transaction {
            producer_id,
            previous_producer_id: NO_PRODUCER_ID,
            epoch: NO_PRODUCER_EPOCH,
            last_epoch: NO_PRODUCER_EPOCH,
            timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            started_at: None,
            updated_at: now,
            markers: BTreeMap::new(),
            decision: 0,
        }
    }

    /// One epoch is kept back so that the coordinator can always fence.
    fn is_epoch_exhausted(epoch: ProducerEpoch) -> bool {
        ProducerEpoch::MAX - 1 <= epoch
    }
}

impl Cluster {
    /// Whether the producer is who the coordinator takes it for.
    fn check_producer(
        &self,
        id: &TransactionalId,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
    ) -> Result<&Transaction, ErrorCode> {
        let transaction = self.transactions.by_id.get(id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        if transaction.producer_id != producer_id && !self.faults.fencing_is_off {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        if transaction.epoch != epoch && !self.faults.fencing_is_off {
            return Err(ErrorCode::ProducerFenced);
        }
        Ok(transaction)
    }

    /// What a broker asks before the first append of a transaction to a partition (KIP-890 part 1).
    pub(crate) fn verify_partition(
        &self,
        id: &TransactionalId,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        tp: &TopicPartition,
    ) -> Result<(), ErrorCode> {
        self.check_transaction_coordinator_anywhere(id)?;
        let transaction = self.check_producer(id, producer_id, epoch)?;
        match transaction.state {
            TransactionState::Prepare(_) => Err(ErrorCode::ConcurrentTransactions),
            _ if transaction.partitions.contains(tp) => Ok(()),
            TransactionState::Empty | TransactionState::Ongoing | TransactionState::Complete(_) => {
                Err(ErrorCode::TransactionAbortable)
            }
        }
    }

    fn check_transaction_coordinator_anywhere(&self, id: &TransactionalId) -> Result<(), ErrorCode> {
        let holder = self.coordinator(crate::CoordinatorKind::Transaction, id.as_str());
        match holder.filter(|broker| self.brokers.is_alive(*broker)) {
            Some(broker) => self.check_transaction_coordinator(id, broker),
            None => Err(ErrorCode::CoordinatorNotAvailable),
        }
    }

    /// AddPartitionsToTxn and AddOffsetsToTxn: opens the transaction if none is open.
    pub(crate) fn add_to_transaction(
        &mut self,
        id: &TransactionalId,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        partitions: BTreeSet<TopicPartition>,
    ) -> Result<(), ErrorCode> {
        let transaction = self.check_producer(id, producer_id, epoch)?;
        match transaction.state {
            TransactionState::Prepare(_) => return Err(ErrorCode::ConcurrentTransactions),
            TransactionState::Ongoing if partitions.is_subset(&transaction.partitions) => return Ok(()),
            TransactionState::Empty | TransactionState::Ongoing | TransactionState::Complete(_) => {}
        }
        let now = self.now;
        let Some(transaction) = self.transactions.by_id.get_mut(id) else { return Ok(()) };
        if transaction.state != TransactionState::Ongoing {
            transaction.state = TransactionState::Ongoing;
            transaction.started_at = Some(now);
        }
        transaction.partitions.extend(partitions);
        transaction.updated_at = now;
        let time_out = now + transaction.timeout_ms;
        self.schedule_time_out_scan(time_out);
        Ok(())
    }
}
