//! What the transaction coordinator knows: whether a transaction is open, whose, and on which partitions.

use anyhow::{Result, ensure};
use kafka_protocol::messages::{DescribeTransactionsRequest, ListTransactionsRequest, TransactionalId};
use kafka_protocol::protocol::StrBytes;

use crate::wire;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionState {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// Kafka's own word: `Empty`, `Ongoing`, `PrepareCommit`, `CompleteCommit`, ...
    pub state: String,
    pub timeout_ms: i32,
    /// Topic and partition; only while it is open.
    pub partitions: Vec<(String, i32)>,
}

impl TransactionState {
    /// Begun on at least one partition, and neither committed nor aborted yet.
    pub fn is_open(&self) -> bool {
        self.state == "Ongoing" && !self.partitions.is_empty()
    }
}

/// One transactional id, as its coordinator sees it; `None` when it does not know it.
pub fn describe(bootstrap: &str, transactional_id: &str) -> Result<Option<TransactionState>> {
    const TRANSACTIONAL_ID_NOT_FOUND: i16 = 105;
    let request = DescribeTransactionsRequest::default().with_transactional_ids(vec![id(transactional_id)]);
    let answer = wire::call(bootstrap, 0, &request)?;
    ensure!(answer.transaction_states.len() == 1, "not one answer: {answer:?}");
    let found = &answer.transaction_states[0];
    if found.error_code == TRANSACTIONAL_ID_NOT_FOUND {
        return Ok(None);
    }
    ensure!(found.error_code == 0, "describing transaction {transactional_id}: error {}", found.error_code);
    let partitions = found
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|&partition| (topic.topic.to_string(), partition)))
        .collect();
    Ok(Some(TransactionState {
        transactional_id: transactional_id.to_owned(),
        producer_id: found.producer_id.0,
        producer_epoch: found.producer_epoch,
        state: found.transaction_state.to_string(),
        timeout_ms: found.transaction_timeout_ms,
        partitions,
    }))
}

/// The open transactions of all transactional ids that start so. The brokers here stand alone, so
/// the one asked is the coordinator of them all.
pub fn open_with_prefix(bootstrap: &str, prefix: &str) -> Result<Vec<TransactionState>> {
    let request = ListTransactionsRequest::default()
        .with_state_filters(vec![StrBytes::from_static_str("Ongoing")])
        .with_duration_filter(-1);
    let answer = wire::call(bootstrap, 1, &request)?;
    ensure!(answer.error_code == 0, "listing transactions: error {}", answer.error_code);
    let mut open = Vec::new();
    for listed in &answer.transaction_states {
        if listed.transactional_id.starts_with(prefix)
            && let Some(state) = describe(bootstrap, &listed.transactional_id)?
            && state.is_open()
        {
            open.push(state);
        }
    }
    Ok(open)
}

fn id(text: &str) -> TransactionalId {
    TransactionalId(StrBytes::from_string(text.to_owned()))
}
