//! A producer's client of a few lines: it knows where to send, and tells what became of it.

use kafka_model::api::add_partitions_to_txn::AddPartitionsToTxnRequest;
use kafka_model::api::end_txn::EndTxnRequest;
use kafka_model::api::find_coordinator::FindCoordinatorRequest;
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{BrokerId, ClientId, CoordinatorKind, Millis, Outcome, Request, Response, TransactionalId};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId, RecordBatch, TopicPartition, TransactionResult};
use runtime_sim::Handle;
use verbatim_core::failure::Side;

/// The end of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Refused(ErrorCode),
    /// No answer: done or not done.
    Unknown,
    /// Nobody to send it to.
    Unsent,
}

#[derive(Clone)]
pub struct Client {
    pub handle: Handle,
    pub id: ClientId,
}

/// Who a producer is to the brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
}

impl Client {
    async fn ask(&self, broker: BrokerId, request: impl Into<Request>) -> Option<Response> {
        match self.handle.request(Side::Source, broker, self.id.clone(), request).await {
            Outcome::Response(response) => Some(response),
            Outcome::ConnectionClosed => None,
        }
    }

    fn any_broker(&self) -> Option<BrokerId> {
        self.handle
            .view(Side::Source, |cluster| cluster.broker_ids().find(|(_, alive)| *alive))
            .map(|it| it.0)
    }

    pub async fn produce(
        &self,
        tp: &TopicPartition,
        transactional_id: Option<&TransactionalId>,
        batch: RecordBatch,
    ) -> Answer {
        let leader = self.handle.view(Side::Source, |cluster| cluster.leader(tp));
        let Some(leader) = leader else { return Answer::Unsent };
        let partitions = vec![ProducePartition { topic_partition: tp.clone(), topic_id: None, batch }];
        let request = ProduceRequest {
            transactional_id: transactional_id.cloned(),
            acks: ACKS_ALL,
            timeout_ms: 5_000,
            partitions,
        };
        match self.ask(leader, request).await {
            Some(Response::Produce(answer)) => {
                answer.partitions.first().map_or(Answer::Unknown, |it| code(it.error_code))
            }
            Some(_) | None => Answer::Unknown,
        }
    }

    pub async fn init(&self, id: Option<&TransactionalId>, timeout_ms: Millis) -> Option<Identity> {
        let broker = match id {
            Some(id) => self.coordinator(id).await?,
            None => self.any_broker()?,
        };
        let request = InitProducerIdRequest {
            transactional_id: id.cloned(),
            transaction_timeout_ms: timeout_ms,
            producer_id: -1,
            producer_epoch: -1,
        };
        match self.ask(broker, request).await {
            Some(Response::InitProducerId(answer)) if !answer.error_code.is_error() => {
                Some(Identity { id: answer.producer_id, epoch: answer.producer_epoch })
            }
            Some(_) | None => None,
        }
    }

    async fn coordinator(&self, id: &TransactionalId) -> Option<BrokerId> {
        let request =
            FindCoordinatorRequest { kind: CoordinatorKind::Transaction, keys: vec![id.to_string()] };
        match self.ask(self.any_broker()?, request).await? {
            Response::FindCoordinator(found) => found.coordinators.first()?.broker,
            _ => None,
        }
    }

    pub async fn add_partitions(
        &self,
        id: &TransactionalId,
        identity: Identity,
        partitions: Vec<TopicPartition>,
    ) -> Answer {
        let Some(broker) = self.coordinator(id).await else { return Answer::Unsent };
        let request = AddPartitionsToTxnRequest {
            transactional_id: id.clone(),
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            partitions,
        };
        match self.ask(broker, request).await {
            Some(Response::AddPartitionsToTxn(answer)) => {
                let refused = answer.partitions.iter().map(|(_, code)| *code).find(|code| code.is_error());
                refused.map_or(Answer::Done, Answer::Refused)
            }
            Some(_) | None => Answer::Unknown,
        }
    }

    pub async fn end(&self, id: &TransactionalId, identity: Identity, result: TransactionResult) -> Answer {
        let Some(broker) = self.coordinator(id).await else { return Answer::Unsent };
        let request = EndTxnRequest {
            transactional_id: id.clone(),
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            result,
        };
        match self.ask(broker, request).await {
            Some(Response::EndTxn(answer)) => code(answer.error_code),
            Some(_) | None => Answer::Unknown,
        }
    }
}

fn code(code: ErrorCode) -> Answer {
    if code.is_error() { Answer::Refused(code) } else { Answer::Done }
}

/// Whether the same request may succeed later.
pub fn may_retry(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NotLeaderOrFollower
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::NotEnoughReplicas
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::RequestTimedOut
            | ErrorCode::KafkaStorageError
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::NotCoordinator
            | ErrorCode::ConcurrentTransactions
    )
}
