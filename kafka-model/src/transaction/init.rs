use super::{DecisionCause, Transaction, TransactionState};
use crate::timer::Timer;
use crate::{Cluster, Millis, TransactionalId};
use kafka_types::{ErrorCode, NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId, TransactionResult};

/// What a producer that recovers says of itself (KIP-360).
pub(crate) type Expected = Option<(ProducerId, ProducerEpoch)>;

impl Cluster {
    /// InitProducerId without a transactional id: always a new one.
    pub(crate) fn init_idempotent_producer(&mut self) -> (ProducerId, ProducerEpoch) {
        (self.transactions.new_producer_id(), 0)
    }

    /// Gives out the next epoch, and with it fences whoever held the last one. A transaction that is open is
    /// aborted first, and the caller told to come again (TransactionCoordinator.prepareInitProducerIdTransit).
    pub(crate) fn init_transactional_producer(
        &mut self,
        id: &TransactionalId,
        timeout_ms: Millis,
        expected: Expected,
    ) -> Result<(ProducerId, ProducerEpoch), ErrorCode> {
        if !(1..=self.config.transaction_max_timeout_ms).contains(&timeout_ms) {
            return Err(ErrorCode::InvalidTransactionTimeout);
        }
        if !self.transactions.by_id.contains_key(id) {
            let producer_id = self.transactions.new_producer_id();
            let transaction = Transaction::new(producer_id, timeout_ms, self.now);
            self.transactions.by_id.insert(id.clone(), transaction);
        }
        let transaction = self.transactions.by_id.get(id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        if !expected.is_none_or(|expected| is_valid(transaction, expected)) {
            return Err(ErrorCode::ProducerFenced);
        }
        match transaction.state {
            TransactionState::Prepare(_) => Err(ErrorCode::ConcurrentTransactions),
            TransactionState::Ongoing => {
                self.fence_and_abort(id, DecisionCause::Fenced);
                Err(ErrorCode::ConcurrentTransactions)
            }
            TransactionState::Empty | TransactionState::Complete(_) => {
                self.next_epoch(id, timeout_ms, expected.map(|(_, epoch)| epoch))
            }
        }
    }

    fn next_epoch(
        &mut self,
        id: &TransactionalId,
        timeout_ms: Millis,
        expected: Option<ProducerEpoch>,
    ) -> Result<(ProducerId, ProducerEpoch), ErrorCode> {
        let now = self.now;
        let transactions = &mut self.transactions;
        let current = transactions.by_id.get(id).map(|transaction| transaction.epoch);
        let is_exhausted = current.is_some_and(Transaction::is_epoch_exhausted);
        let rotates = is_exhausted && expected.is_none_or(|expected| Some(expected) == current);
        let new_id = rotates.then(|| transactions.new_producer_id());
        let transaction = transactions.by_id.get_mut(id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        let epoch = transaction.epoch;
        if let Some(new_id) = new_id {
            transaction.previous_producer_id = transaction.producer_id;
            transaction.producer_id = new_id;
            transaction.last_epoch = if expected.is_some() { epoch } else { NO_PRODUCER_EPOCH };
            transaction.epoch = 0;
        } else {
            let (next, last) = match expected {
                None => (epoch + 1, NO_PRODUCER_EPOCH),
                Some(known) if epoch == NO_PRODUCER_EPOCH || known == epoch => (epoch + 1, epoch),
                // A retry of a request that was answered, whose answer was lost.
                Some(known) if known == transaction.last_epoch => (epoch, transaction.last_epoch),
                Some(_) => return Err(ErrorCode::ProducerFenced),
            };
            transaction.previous_producer_id = transaction.producer_id;
            (transaction.epoch, transaction.last_epoch) = (next, last);
        }
        transaction.state = TransactionState::Empty;
        transaction.partitions.clear();
        transaction.started_at = None;
        transaction.timeout_ms = timeout_ms;
        transaction.updated_at = now;
        let answer = (transaction.producer_id, transaction.epoch);
        let expiry = now + self.config.transactional_id_expiration_ms;
        self.timers.set_no_later(Timer::TransactionalIdExpiry, expiry);
        Ok(answer)
    }

    /// Bumps the epoch, which is never given to anybody, and aborts what is open.
    pub(crate) fn fence_and_abort(&mut self, id: &TransactionalId, cause: DecisionCause) {
        let Some(transaction) = self.transactions.by_id.get_mut(id) else { return };
        transaction.epoch = transaction.epoch.saturating_add(1);
        transaction.last_epoch = NO_PRODUCER_EPOCH;
        self.decide(id, TransactionResult::Abort, cause);
    }

    /// Looks for transactions that are open for too long. Kafka looks every ten seconds, so a transaction may
    /// outlive its time-out by that much.
    pub(crate) fn scan_transaction_time_outs(&mut self) {
        let now = self.now;
        let is_over = |transaction: &Transaction| {
            let started_at = transaction.started_at.unwrap_or(now);
            transaction.state == TransactionState::Ongoing && started_at + transaction.timeout_ms < now
        };
        let by_id = &self.transactions.by_id;
        let over: Vec<TransactionalId> = by_id
            .iter()
            .filter(|(id, transaction)| {
                is_over(transaction)
                    && self.coordinator(crate::CoordinatorKind::Transaction, id.as_str()).is_some()
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            self.fence_and_abort(&id, DecisionCause::TimedOut);
        }
        let open = self.transactions.by_id.values().filter(|it| it.state == TransactionState::Ongoing);
        let next = open.filter_map(|it| Some(it.started_at? + it.timeout_ms)).min();
        if let Some(time_out) = next {
            self.schedule_time_out_scan(time_out);
        }
    }

    /// The first scan after a time-out has passed. Scans come at multiples of the interval.
    pub(super) fn schedule_time_out_scan(&mut self, time_out: Millis) {
        let interval = self.config.transaction_timeout_scan_ms.max(1);
        let after = time_out.max(self.now);
        let scan = (after.div_euclid(interval) + 1) * interval;
        self.timers.set_no_later(Timer::TransactionTimeOuts, scan);
    }

    /// Forgets ids that nobody used for long. Their producers get INVALID_PRODUCER_ID_MAPPING from then on.
    pub(crate) fn expire_idle_transactional_ids(&mut self) {
        let (now, limit) = (self.now, self.config.transactional_id_expiration_ms);
        self.transactions.by_id.retain(|_, transaction| {
            let is_idle = transaction.updated_at <= now - limit;
            !(is_idle && may_expire(transaction))
        });
        let next = self.transactions.by_id.values().map(|transaction| transaction.updated_at + limit).min();
        if let Some(at) = next {
            self.timers.set(Timer::TransactionalIdExpiry, at.max(now + 1));
        }
    }

    /// The same for one id, before its time. Answers whether it was possible.
    pub(crate) fn forget_transactional_id(&mut self, id: &TransactionalId) -> bool {
        let may = self.transactions.by_id.get(id).is_some_and(may_expire);
        may && self.transactions.by_id.remove(id).is_some()
    }
}

fn may_expire(transaction: &Transaction) -> bool {
    matches!(transaction.state, TransactionState::Empty | TransactionState::Complete(_))
}

fn is_valid(transaction: &Transaction, (producer_id, epoch): (ProducerId, ProducerEpoch)) -> bool {
    transaction.epoch == NO_PRODUCER_EPOCH
        || producer_id == transaction.producer_id
        || (producer_id == transaction.previous_producer_id && Transaction::is_epoch_exhausted(epoch))
}
