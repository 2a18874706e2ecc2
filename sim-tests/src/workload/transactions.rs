//! One transaction of a producer: some batches to some partitions, then a commit, an abort, or nothing at all.

use super::client::{Answer, Identity, may_retry};
use super::producer::Producer;
use crate::plan::Draw;
use kafka_model::{Millis, TransactionalId};
use kafka_types::{ErrorCode, RecordBatch, TopicPartition, TransactionResult};

/// How a transaction of the workload is to end.
enum Ending {
    Result(TransactionResult),
    /// Left to the coordinator's time-out.
    Hang,
}

const TIME_OUT_MS: Millis = 6_000;
const TRIES_MAX: u32 = 6;

pub async fn run_one(producer: &mut Producer) {
    let id = TransactionalId::from(format!("workload-{}", producer.number));
    if producer.identity.is_none() {
        producer.forget_identity();
        producer.identity = producer.client.init(Some(&id), TIME_OUT_MS).await;
    }
    let Some(identity) = producer.identity else {
        return producer.client.handle.sleep(200).await;
    };
    let ending = if producer.random.chance(producer.plan.hang) {
        Ending::Hang
    } else if producer.random.chance(producer.plan.abort) {
        Ending::Result(TransactionResult::Abort)
    } else {
        Ending::Result(TransactionResult::Commit)
    };
    let batches = producer.random.between(1, 4);
    for _ in 0..batches {
        if !send(producer, &id, identity).await {
            // Whatever was sent is aborted by the next initialisation.
            return producer.forget_identity();
        }
        let pause = producer.random.between(0, 50);
        producer.client.handle.sleep(pause.max(1)).await;
    }
    match ending {
        Ending::Result(result) => {
            if !end(producer, &id, identity, result).await {
                producer.forget_identity();
            }
        }
        Ending::Hang => {
            producer.forget_identity();
            let patience = producer.random.between(1_000, 2 * TIME_OUT_MS);
            producer.client.handle.sleep(patience).await;
        }
    }
}

async fn send(producer: &mut Producer, id: &TransactionalId, identity: Identity) -> bool {
    let Some(place) = producer.choose() else { return false };
    if !add(producer, id, identity, &place.1).await {
        return false;
    }
    let records = producer.records(&place.1);
    let sequence = producer.sequence(&place, records.len());
    let batch =
        RecordBatch::new(records).from_producer(identity.id, identity.epoch, sequence).transactional();
    for _ in 0..TRIES_MAX {
        match producer.client.produce(&place.1, Some(id), batch.clone()).await {
            Answer::Done => return true,
            Answer::Refused(code) if !may_retry(code) => return false,
            Answer::Refused(_) | Answer::Unknown | Answer::Unsent => {
                let pause = producer.random.between(10, 300);
                producer.client.handle.sleep(pause).await;
            }
        }
    }
    false
}

async fn add(producer: &mut Producer, id: &TransactionalId, identity: Identity, tp: &TopicPartition) -> bool {
    for _ in 0..TRIES_MAX {
        match producer.client.add_partitions(id, identity, vec![tp.clone()]).await {
            Answer::Done => return true,
            Answer::Refused(code) if !may_retry(code) => return false,
            // Adding a partition twice is adding it once.
            Answer::Refused(_) | Answer::Unknown | Answer::Unsent => {
                let pause = producer.random.between(10, 300);
                producer.client.handle.sleep(pause).await;
            }
        }
    }
    false
}

/// Whether the transaction surely ended, so that the producer may go on under the same epoch.
async fn end(
    producer: &mut Producer,
    id: &TransactionalId,
    identity: Identity,
    result: TransactionResult,
) -> bool {
    for _ in 0..TRIES_MAX {
        match producer.client.end(id, identity, result).await {
            Answer::Done => return true,
            Answer::Refused(ErrorCode::ConcurrentTransactions) | Answer::Unsent => {
                let pause = producer.random.between(10, 200);
                producer.client.handle.sleep(pause).await;
            }
            // A second EndTxn might end the next transaction: become somebody else.
            Answer::Refused(_) | Answer::Unknown => return false,
        }
    }
    false
}
