//! Produce (KIP-98).
//!
//! Modelled: one batch a partition; the acks 0, 1 and all; idempotence; verification that a transaction holds
//! the partition (KIP-890 part 1); size and timestamp limits; refusal before an append
//! (NOT_ENOUGH_REPLICAS) against refusal after it (NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT);
//! full disks.
//! Not modelled: message sets older than record format 2, partitions that a produce itself adds to a
//! transaction (transaction version 2).

use crate::coordinators::{GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC};
use crate::history::LogEvent;
use crate::log::{Appended, Refusal};
use crate::producer_state::SkippedChecks;
use crate::waiting::Waiting;
use crate::{BrokerId, Cluster, Millis, Offset, Outcome, RequestHeader, Resource, Response, TransactionalId};
use kafka_types::{ErrorCode, LeaderEpoch, RecordBatch, TopicId, TopicPartition};

pub const ACKS_ALL: i16 = -1;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProduceRequest {
    pub transactional_id: Option<TransactionalId>,
    /// 0, 1 or [`ACKS_ALL`].
    pub acks: i16,
    /// How long the leader waits for the in-sync replicas.
    pub timeout_ms: Millis,
    pub partitions: Vec<ProducePartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProducePartition {
    pub topic_partition: TopicPartition,
    /// Sent from version 13 on, in place of the name.
    pub topic_id: Option<TopicId>,
    pub batch: RecordBatch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProduceResponse {
    pub partitions: Vec<ProducePartitionResponse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProducePartitionResponse {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    /// Minus one with an error.
    pub base_offset: Offset,
    pub log_append_time: Option<Millis>,
    pub log_start_offset: Offset,
    /// Which records were to blame, by their place in the batch (KIP-467).
    pub record_errors: Vec<i32>,
    /// With NOT_LEADER_OR_FOLLOWER, where to go (KIP-951).
    pub current_leader: Option<(BrokerId, LeaderEpoch)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WaitingProduce {
    response: ProduceResponse,
    /// Place in the response, and the high watermark that answers it.
    pending: Vec<(usize, Offset)>,
}

impl Cluster {
    pub(crate) fn produce(&mut self, header: RequestHeader, request: ProduceRequest) {
        let acks = request.acks;
        let mut waiting = WaitingProduce {
            response: ProduceResponse { partitions: Vec::with_capacity(request.partitions.len()) },
            pending: Vec::new(),
        };
        for partition in request.partitions {
            let tp = partition.topic_partition.clone();
            let appended = self.produce_to(&header, acks, request.transactional_id.as_ref(), partition);
            if let Ok(appended) = &appended {
                waiting.pending.push((waiting.response.partitions.len(), appended.last_offset + 1));
            }
            waiting.response.partitions.push(self.partition_response(tp, appended));
        }
        if acks == 0 {
            if waiting.response.partitions.iter().any(|partition| partition.error_code.is_error()) {
                self.reply(header, Outcome::ConnectionClosed);
            }
            return;
        }
        if acks == 1 || self.faults.acknowledges_before_replication {
            waiting.pending.clear();
        }
        match self.complete_produce(&header, &mut waiting, false) {
            Some(response) => self.respond(header, Response::Produce(response)),
            None => {
                let partitions = waiting.pending_partitions();
                let deadline = self.now.saturating_add(request.timeout_ms.max(0));
                self.wait(header, partitions, deadline, Waiting::Produce(waiting));
            }
        }
    }

    fn produce_to(
        &mut self,
        header: &RequestHeader,
        acks: i16,
        transactional_id: Option<&TransactionalId>,
        request: ProducePartition,
    ) -> Result<Appended, Refusal> {
        let ProducePartition { topic_partition: tp, topic_id, batch } = request;
        if !(ACKS_ALL..=1).contains(&acks) {
            return Err(ErrorCode::InvalidRequiredAcks.into());
        }
        if let Some(id) = transactional_id {
            self.check_access(&Resource::TransactionalId(id.clone()))?;
        }
        self.check_produce_target(&tp, topic_id)?;
        if batch.is_transactional {
            self.verify_transaction(&tp, transactional_id, &batch, header.api_version)?;
        }
        self.check_leader(&tp, header.broker)?;
        if self.brokers.is_disk_full(header.broker) {
            return Err(ErrorCode::KafkaStorageError.into());
        }
        let skipped =
            SkippedChecks { duplicates: self.faults.forgets_duplicates, epochs: self.faults.fencing_is_off };
        let now = self.now;
        let Some((config, partition)) = self.topics.config_and_partition_mut(&tp) else {
            return Err(ErrorCode::UnknownTopicOrPartition.into());
        };
        if acks == ACKS_ALL && partition.is_under_min_in_sync(config) {
            return Err(ErrorCode::NotEnoughReplicas.into());
        }
        let epoch = partition.leader_epoch;
        let appended = partition.log.append_from_client(now, batch, epoch, config, skipped)?;
        if !appended.is_duplicate {
            self.batch_appended(&tp);
        }
        Ok(appended)
    }

    /// The leader's log has grown by one batch.
    pub(crate) fn batch_appended(&mut self, tp: &TopicPartition) {
        let Some(topic) = self.topics.get(&tp.topic) else { return };
        let Some(partition) = topic.partitions.get(tp.partition.index()) else { return };
        if let Some(batch) = partition.log.batches().next_back() {
            self.history.record(topic.id, tp.partition, LogEvent::Appended(batch.clone()));
        }
        self.advance_high_watermark(tp);
        self.schedule_replication(tp);
    }

    fn check_produce_target(&self, tp: &TopicPartition, id: Option<TopicId>) -> Result<(), ErrorCode> {
        if self.topics.denied.contains(&tp.topic) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        if [GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC].contains(&tp.topic.as_str()) {
            return Err(ErrorCode::InvalidTopicException);
        }
        self.check_topic_id(tp, id)?;
        if self.topics.partition(tp).is_none() {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        Ok(())
    }

    /// An id of no topic, or of one under another name than the request says.
    pub(crate) fn check_topic_id(&self, tp: &TopicPartition, id: Option<TopicId>) -> Result<(), ErrorCode> {
        match id.map(|id| self.topics.name_of(id)) {
            Some(None) => Err(ErrorCode::UnknownTopicId),
            Some(Some(name)) if *name != tp.topic => Err(ErrorCode::InconsistentTopicId),
            Some(Some(_)) | None => Ok(()),
        }
    }

    /// The first append of a transaction to a partition asks the coordinator whether it knows of it
    /// (ReplicaManager.maybeStartTransactionVerificationForPartitions). What older clients would not retry
    /// comes as NOT_ENOUGH_REPLICAS.
    fn verify_transaction(
        &self,
        tp: &TopicPartition,
        id: Option<&TransactionalId>,
        batch: &RecordBatch,
        api_version: i16,
    ) -> Result<(), ErrorCode> {
        let Some(id) = id else { return Err(ErrorCode::TransactionalIdAuthorizationFailed) };
        let Some(partition) = self.topics.partition(tp) else { return Ok(()) };
        let is_known = partition.log.producers.has_open_transaction(batch.producer_id);
        if is_known || !self.config.transaction_partition_verification || self.faults.fencing_is_off {
            return Ok(());
        }
        // A retry of an append that was stored needs no second look (its batch is found by the log).
        let skipped = SkippedChecks { duplicates: self.faults.forgets_duplicates, epochs: true };
        if let Ok(Some(_)) = partition.log.producers.check(batch, skipped) {
            return Ok(());
        }
        self.verify_partition(id, batch.producer_id, batch.producer_epoch, tp).map_err(|error| match error {
            ErrorCode::ProducerFenced if self.config.timed_out_produce_gets_invalid_txn_state => {
                ErrorCode::InvalidTxnState
            }
            ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
            ErrorCode::TransactionAbortable if api_version < 11 => ErrorCode::InvalidTxnState,
            ErrorCode::ConcurrentTransactions
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator => ErrorCode::NotEnoughReplicas,
            other => other,
        })
    }

    fn partition_response(
        &self,
        tp: TopicPartition,
        appended: Result<Appended, Refusal>,
    ) -> ProducePartitionResponse {
        let partition = self.topics.partition(&tp);
        let log_start_offset = partition.map_or(-1, |partition| partition.log.start_offset());
        let leader = partition.and_then(|partition| Some((partition.leader?, partition.leader_epoch)));
        let mut response = ProducePartitionResponse {
            topic_partition: tp,
            error_code: ErrorCode::None,
            base_offset: -1,
            log_append_time: None,
            log_start_offset,
            record_errors: Vec::new(),
            current_leader: None,
        };
        match appended {
            Ok(_) if self.faults.produce_answers_offset_zero => {
                response.base_offset = 0;
            }
            Ok(appended) => {
                response.base_offset = appended.base_offset;
                response.log_append_time = appended.log_append_time;
            }
            Err(refusal) => {
                response.fail(refusal.error);
                response.record_errors = refusal.record_indexes;
                response.current_leader = leader.filter(|_| refusal.error == ErrorCode::NotLeaderOrFollower);
            }
        }
        response
    }

    /// The response, once every partition has an answer; all of them have when the time is over.
    pub(crate) fn complete_produce(
        &self,
        header: &RequestHeader,
        waiting: &mut WaitingProduce,
        is_over: bool,
    ) -> Option<ProduceResponse> {
        let WaitingProduce { response, pending } = waiting;
        pending.retain(|&(index, required)| {
            let answer = &mut response.partitions[index];
            let tp = &answer.topic_partition;
            if let Err(error) = self.check_leader(tp, header.broker) {
                answer.fail(error);
                return false;
            }
            let Some((config, partition)) = self.topics.config_and_partition(tp) else { return false };
            if required <= partition.high_watermark {
                if partition.is_under_min_in_sync(config) {
                    answer.fail(ErrorCode::NotEnoughReplicasAfterAppend);
                }
                return false;
            }
            if is_over {
                answer.fail(ErrorCode::RequestTimedOut);
            }
            !is_over
        });
        pending.is_empty().then(|| ProduceResponse { partitions: std::mem::take(&mut response.partitions) })
    }
}

impl WaitingProduce {
    fn pending_partitions(&self) -> Vec<TopicPartition> {
        let of = |&(index, _): &(usize, Offset)| self.response.partitions[index].topic_partition.clone();
        self.pending.iter().map(of).collect()
    }
}

impl ProducePartitionResponse {
    fn fail(&mut self, error_code: ErrorCode) {
        self.error_code = error_code;
        self.base_offset = -1;
        self.log_append_time = None;
    }
}
