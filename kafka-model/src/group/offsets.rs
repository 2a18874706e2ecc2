//! Committed offsets (group-coordinator/.../OffsetMetadataManager.java).
//!
//! Offsets of a transaction wait beside the committed ones until the transaction's marker reaches the group's
//! partition of `__consumer_offsets`.

use super::{Group, GroupState};
use crate::timer::Timer;
use crate::{Cluster, CoordinatorKind, GroupId, InstanceId, MemberId, Millis, Offset};
use kafka_types::{ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition, TransactionResult};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommittedOffset {
    pub offset: Offset,
    pub leader_epoch: Option<LeaderEpoch>,
    pub metadata: String,
    pub committed_at: Millis,
}

/// Who commits. An administrator, and a consumer outside any group, say generation -1 and no member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Committer {
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
}

impl Committer {
    pub fn nobody() -> Committer {
        Committer { generation_id: -1, member_id: MemberId::default(), group_instance_id: None }
    }
}

impl Group {
    /// ClassicGroup.validateOffsetCommit. A transaction's commit is not refused during a rebalance, and
    /// without a member it is not checked at all.
    pub(super) fn check_commit(
        &self,
        committer: &Committer,
        is_transactional: bool,
    ) -> Result<(), ErrorCode> {
        if committer.generation_id < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        let is_named = 0 <= committer.generation_id
            || !committer.member_id.is_empty()
            || committer.group_instance_id.is_some();
        if is_named {
            self.check_member(&committer.member_id, committer.group_instance_id.as_ref())?;
            if committer.generation_id != self.generation {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if !is_transactional && self.state != GroupState::Empty {
            return Err(ErrorCode::UnknownMemberId);
        }
        if !is_transactional && self.state == GroupState::CompletingRebalance {
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }

    pub(crate) fn has_pending_offset(&self, tp: &TopicPartition) -> bool {
        self.pending_offsets.values().any(|offsets| offsets.contains_key(tp))
    }
}

impl Cluster {
    pub(crate) fn check_commit(
        &mut self,
        group_id: &GroupId,
        committer: &Committer,
        is_transactional: bool,
    ) -> Result<(), ErrorCode> {
        if !self.groups.by_id.contains_key(group_id) {
            if 0 <= committer.generation_id {
                return Err(ErrorCode::IllegalGeneration);
            }
            let group = Group { emptied_at: Some(self.now), ..Group::default() };
            self.groups.by_id.insert(group_id.clone(), group);
        }
        let group = self.groups.by_id.get(group_id).ok_or(ErrorCode::IllegalGeneration)?;
        group.check_commit(committer, is_transactional)?;
        // A commit is a sign of life.
        if !is_transactional && matches!(group.state, GroupState::Stable | GroupState::PreparingRebalance) {
            self.reset_session(group_id, &committer.member_id);
        }
        Ok(())
    }

    /// A partition that can be committed for.
    pub(crate) fn check_committed_partition(&self, tp: &TopicPartition, metadata: &str) -> ErrorCode {
        if self.topics.denied.contains(&tp.topic) {
            ErrorCode::TopicAuthorizationFailed
        } else if self.topics.partition(tp).is_none() {
            ErrorCode::UnknownTopicOrPartition
        } else if self.config.offset_metadata_max_bytes < metadata.len() {
            ErrorCode::OffsetMetadataTooLarge
        } else {
            ErrorCode::None
        }
    }

    /// A marker reached the partition of `__consumer_offsets`.
    pub(crate) fn end_offset_transaction(
        &mut self,
        partition: i32,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        result: TransactionResult,
    ) {
        if let Some(slot) = self.coordinators.group_slot_at(partition) {
            slot.producer_epochs.insert(producer_id, epoch);
        }
        for (group_id, group) in &mut self.groups.by_id {
            let index = self.coordinators.index(CoordinatorKind::Group, group_id.as_str());
            if usize::try_from(partition) != Ok(index) {
                continue;
            }
            let pending = group.pending_offsets.remove(&producer_id).unwrap_or_default();
            if result == TransactionResult::Commit {
                group.offsets.extend(pending);
            }
        }
    }

    /// Offsets of a group without members go some time after the last member did.
    pub(crate) fn offsets_expiry_due(&mut self) {
        let oldest = self.now - self.config.offsets_retention_ms;
        for group in self.groups.by_id.values_mut() {
            if group.state == GroupState::Empty {
                let emptied_at = group.emptied_at;
                let pending = &group.pending_offsets;
                group.offsets.retain(|tp, committed| {
                    let since = emptied_at.unwrap_or(committed.committed_at).max(committed.committed_at);
                    oldest < since || pending.values().any(|offsets| offsets.contains_key(tp))
                });
            }
        }
        self.groups.by_id.retain(|_, group| {
            let is_used = group.state != GroupState::Empty || !group.pending_members.is_empty();
            is_used || !group.offsets.is_empty() || !group.pending_offsets.is_empty()
        });
        self.timers.set(Timer::OffsetsExpiry, self.now + self.config.offsets_retention_check_ms);
    }

    /// The same for one group, before its time.
    pub(crate) fn forget_offsets(&mut self, group_id: &GroupId) {
        if let Some(group) = self.groups.by_id.get_mut(group_id)
            && group.state == GroupState::Empty
        {
            group.offsets.clear();
        }
    }
}
