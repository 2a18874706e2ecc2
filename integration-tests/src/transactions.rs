//! What the transaction coordinator knows: whether a transaction is open, whose, and on which partitions.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kafka_protocol::messages::{
    DescribeTransactionsRequest, FindCoordinatorRequest, ListTransactionsRequest, TransactionalId,
    describe_transactions_response,
};
use kafka_protocol::protocol::StrBytes;

use crate::wire;

const COORDINATOR_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionState {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// Kafka's own word: `Empty`, `Ongoing`, `PrepareCommit`, `CompleteCommit`, ...
    pub state: String,
    pub timeout_ms: i32,
    /// When the open one was begun, in milliseconds since 1970; -1 while none is open.
    pub begun_ms: i64,
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
    const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
    const COORDINATOR_NOT_AVAILABLE: i16 = 15;
    const NOT_COORDINATOR: i16 = 16;
    const TRANSACTIONAL_ID_NOT_FOUND: i16 = 105;
    let request = DescribeTransactionsRequest::default()
        .with_transactional_ids(vec![TransactionalId(text(transactional_id))]);
    let deadline = Instant::now() + COORDINATOR_TIMEOUT;
    loop {
        let answer = wire::call(bootstrap, 0, &request)?;
        let found = answer.transaction_states.first().context("no answer about the transaction")?;
        match found.error_code {
            0 => return Ok(Some(state(found))),
            TRANSACTIONAL_ID_NOT_FOUND => return Ok(None),
            // So a broker answers that has just started, or that nobody has asked for a coordinator yet.
            COORDINATOR_LOAD_IN_PROGRESS | COORDINATOR_NOT_AVAILABLE | NOT_COORDINATOR
                if Instant::now() < deadline =>
            {
                find_coordinator(bootstrap, transactional_id)?;
                sleep(Duration::from_millis(200));
            }
            code => bail!("describing transaction {transactional_id}: error {code}"),
        }
    }
}

/// Makes the broker create its transaction log, if it has none yet. The address in the answer is of no use:
/// the only broker is the one asked.
fn find_coordinator(bootstrap: &str, transactional_id: &str) -> Result<()> {
    const TRANSACTION: i8 = 1;
    let request =
        FindCoordinatorRequest::default().with_key_type(TRANSACTION).with_key(text(transactional_id));
    wire::call(bootstrap, 3, &request).map(drop)
}

fn state(found: &describe_transactions_response::TransactionState) -> TransactionState {
    let partitions = found.topics.iter().flat_map(|topic| {
        let name = topic.topic.to_string();
        topic.partitions.iter().map(move |&partition| (name.clone(), partition))
    });
    TransactionState {
        transactional_id: found.transactional_id.to_string(),
        producer_id: found.producer_id.0,
        producer_epoch: found.producer_epoch,
        state: found.transaction_state.to_string(),
        timeout_ms: found.transaction_timeout_ms,
        begun_ms: found.transaction_start_time_ms,
        partitions: partitions.collect(),
    }
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

fn text(words: &str) -> StrBytes {
    StrBytes::from_string(words.to_owned())
}
