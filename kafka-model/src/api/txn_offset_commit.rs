//! TxnOffsetCommit: offsets that count once the transaction is committed. It goes to the group coordinator of
//! the producer's own cluster, so its topics have to exist there.
//!
//! Modelled: the check of member and generation, made at this request and never again; acceptance of generation
//! -1 without any check while the group is empty; the producer's epoch; verification that the transaction
//! holds the group's partition (KIP-890 part 1).
//! Not modelled: versions that add the partition to the transaction themselves.

use crate::api::offset_commit::OffsetToCommit;
use crate::group::Committer;
use crate::{Cluster, GroupId, RequestHeader, TransactionalId};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TxnOffsetCommitRequest {
    pub transactional_id: TransactionalId,
    pub group_id: GroupId,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub committer: Committer,
    pub offsets: Vec<OffsetToCommit>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TxnOffsetCommitResponse {
    pub partitions: Vec<(TopicPartition, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn txn_offset_commit(
        &mut self,
        header: &RequestHeader,
        request: TxnOffsetCommitRequest,
    ) -> TxnOffsetCommitResponse {
        let checked = self.check_txn_offset_commit(header, &request);
        let TxnOffsetCommitRequest { group_id, producer_id, .. } = request;
        let mut partitions = Vec::with_capacity(request.offsets.len());
        for offset in request.offsets {
            let error = match checked {
                Ok(()) => self.check_committed_partition(&offset.topic_partition, &offset.metadata),
                Err(error) => error,
            };
            partitions.push((offset.topic_partition.clone(), error));
            if error.is_error() {
                continue;
            }
            if let Some(group) = self.groups.by_id.get_mut(&group_id) {
                let (tp, committed) = offset.committed_at(self.now);
                group.pending_offsets.entry(producer_id).or_default().insert(tp, committed);
            }
        }
        TxnOffsetCommitResponse { partitions }
    }

    fn check_txn_offset_commit(
        &mut self,
        header: &RequestHeader,
        request: &TxnOffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        self.check_group_coordinator(&request.group_id, header.broker)?;
        let (producer_id, epoch) = (request.producer_id, request.producer_epoch);
        let slot = self.coordinators.group_slot_mut(&request.group_id);
        let last_epoch = slot.producer_epochs.get(&producer_id).copied();
        if last_epoch.is_some_and(|last| epoch < last) && !self.faults.fencing_is_off {
            return Err(ErrorCode::InvalidProducerEpoch);
        }
        if self.config.transaction_partition_verification && !self.faults.fencing_is_off {
            let tp = self.coordinators.offsets_partition(&request.group_id);
            let verified = self.verify_partition(&request.transactional_id, producer_id, epoch, &tp);
            verified.map_err(|error| match error {
                ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
                ErrorCode::TransactionAbortable if header.api_version < 4 => ErrorCode::InvalidTxnState,
                ErrorCode::NotCoordinator | ErrorCode::CoordinatorLoadInProgress => {
                    ErrorCode::CoordinatorNotAvailable
                }
                other => other,
            })?;
        }
        self.check_commit(&request.group_id, &request.committer, true)?;
        self.coordinators.group_slot_mut(&request.group_id).producer_epochs.insert(producer_id, epoch);
        Ok(())
    }
}
