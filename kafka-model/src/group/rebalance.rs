//! The two phases of a rebalance: all members join, then the leader's assignment is handed out.

use super::{Group, GroupState};
use crate::api::join_group::{JoinGroupResponse, JoinedMember};
use crate::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use crate::timer::Timer;
use crate::{Cluster, CoordinatorKind, GroupId, MemberId, Response};
use bytes::Bytes;
use kafka_types::ErrorCode;

impl Group {
    /// What a member learns of the generation, the leader with everybody's protocols.
    pub(super) fn join_response(&self, id: &MemberId, with_members: bool) -> JoinGroupResponse {
        let protocol = self.protocol_name.clone().unwrap_or_default();
        let metadata = |member: &super::Member| {
            let known = member.protocols.iter().find(|(name, _)| *name == protocol);
            known.map_or_else(Bytes::new, |(_, metadata)| metadata.clone())
        };
        let all = self.members.iter().map(|(member_id, member)| JoinedMember {
            member_id: member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            metadata: metadata(member),
        });
        let members = if with_members && self.is_leader(id) { all.collect() } else { Vec::new() };
        JoinGroupResponse {
            error_code: ErrorCode::None,
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: id.clone(),
            members,
        }
    }

    pub(super) fn sync_response(&self, id: &MemberId) -> SyncGroupResponse {
        let assignment = self.members.get(id).map_or_else(Bytes::new, |member| member.assignment.clone());
        SyncGroupResponse {
            error_code: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment,
        }
    }

    pub(super) fn check_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let agrees = |said: &Option<String>, known: &Option<String>| said.is_none() || said == known;
        if !agrees(&request.protocol_type, &self.protocol_type)
            || !agrees(&request.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(())
    }

    /// A leader that did not come back loses its place to a member that did.
    fn elect_joined_leader(&mut self) -> bool {
        let Some(leader) = &self.leader else { return false };
        if self.members.get(leader).is_some_and(|member| member.waiting_join.is_some()) {
            return true;
        }
        let joined = self.members.iter().find(|(_, member)| member.waiting_join.is_some());
        let joined = joined.map(|(id, _)| id.clone());
        let found = joined.is_some();
        self.leader = joined.or_else(|| self.leader.take());
        found
    }
}

impl Cluster {
    pub(super) fn prepare_rebalance_or_complete_join(&mut self, group_id: &GroupId) {
        let Some(group) = self.groups.by_id.get(group_id) else { return };
        match group.state {
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => {
                self.prepare_rebalance(group_id);
            }
            GroupState::PreparingRebalance => self.complete_join_if_all_joined(group_id),
        }
    }

    pub(super) fn prepare_rebalance(&mut self, group_id: &GroupId) {
        let delay_ms = self.config.group_initial_rebalance_delay_ms;
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        if group.state == GroupState::CompletingRebalance {
            self.refuse_waiting_syncs(group_id, ErrorCode::RebalanceInProgress);
        }
        self.timers.cancel(Timer::GroupSync(group_id.clone()));
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        group.pending_sync.clear();
        let is_initial = group.state == GroupState::Empty;
        group.state = GroupState::PreparingRebalance;
        if is_initial {
            group.new_member_added = false;
            group.initial_remaining_ms = Some((group.rebalance_timeout_ms() - delay_ms).max(0));
            self.timers.set(Timer::GroupJoin(group_id.clone()), self.now + delay_ms);
        } else if group.has_all_members_joined() {
            self.complete_join(group_id);
        } else {
            let at = self.now + group.rebalance_timeout_ms();
            self.timers.set(Timer::GroupJoin(group_id.clone()), at);
        }
    }

    fn refuse_waiting_syncs(&mut self, group_id: &GroupId, error: ErrorCode) {
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        let mut refused = Vec::new();
        for (id, member) in &mut group.members {
            member.assignment = Bytes::new();
            refused.extend(member.waiting_sync.take().map(|header| (id.clone(), header)));
        }
        for (id, header) in refused {
            self.reset_session(group_id, &id);
            self.respond(header, Response::SyncGroup(SyncGroupResponse::failed(error)));
        }
    }

    /// The first rebalance of a group waits its delay out even when everybody is there.
    pub(super) fn complete_join_if_all_joined(&mut self, group_id: &GroupId) {
        let Some(group) = self.groups.by_id.get(group_id) else { return };
        let is_awaited =
            group.state == GroupState::PreparingRebalance && group.initial_remaining_ms.is_none();
        if is_awaited && group.has_all_members_joined() {
            self.complete_join(group_id);
        }
    }

    /// A member left or expired while others may be waiting for it.
    pub(crate) fn member_is_gone(&mut self, group_id: &GroupId) {
        let Some(group) = self.groups.by_id.get(group_id) else { return };
        match group.state {
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.prepare_rebalance(group_id);
            }
            GroupState::PreparingRebalance => self.complete_join_if_all_joined(group_id),
            GroupState::Empty => {}
        }
    }

    /// Whoever has not joined by now is out; or, in a first rebalance, newcomers win another delay.
    pub(crate) fn group_join_due(&mut self, group_id: &GroupId) {
        let delay_ms = self.config.group_initial_rebalance_delay_ms;
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        if let Some(remaining) = group.initial_remaining_ms.filter(|_| group.new_member_added)
            && 0 < remaining
        {
            group.new_member_added = false;
            group.initial_remaining_ms = Some((remaining - delay_ms).max(0));
            let at = self.now + delay_ms.min(remaining);
            return self.timers.set(Timer::GroupJoin(group_id.clone()), at);
        }
        self.complete_join(group_id);
    }

    fn complete_join(&mut self, group_id: &GroupId) {
        self.timers.cancel(Timer::GroupJoin(group_id.clone()));
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        if group.state != GroupState::PreparingRebalance {
            return;
        }
        let is_late = |member: &super::Member| member.waiting_join.is_none() && member.instance_id.is_none();
        let late: Vec<MemberId> =
            group.members.iter().filter(|(_, member)| is_late(member)).map(|(id, _)| id.clone()).collect();
        for id in late {
            group.remove(&id);
            self.timers.cancel(Timer::GroupMember(group_id.clone(), id));
        }
        if !group.elect_joined_leader() && !group.members.is_empty() {
            let at = self.now + group.rebalance_timeout_ms();
            return self.timers.set(Timer::GroupJoin(group_id.clone()), at);
        }
        group.initial_remaining_ms = None;
        group.generation += 1;
        if group.members.is_empty() {
            group.state = GroupState::Empty;
            group.protocol_name = None;
            group.leader = None;
            group.emptied_at = Some(self.now);
            group.write_down();
            return;
        }
        group.state = GroupState::CompletingRebalance;
        group.protocol_name = group.select_protocol();
        group.pending_sync = group.members.keys().cloned().collect();
        let mut answers = Vec::new();
        for id in group.members.keys().cloned().collect::<Vec<_>>() {
            let response = group.join_response(&id, true);
            let Some(member) = group.members.get_mut(&id) else { continue };
            member.is_new = false;
            answers.push((id, member.waiting_join.take(), response));
        }
        let sync_by = self.now + group.rebalance_timeout_ms();
        for (id, header, response) in answers {
            self.reset_session(group_id, &id);
            if let Some(header) = header {
                self.respond(header, Response::JoinGroup(response));
            }
        }
        self.timers.set(Timer::GroupSync(group_id.clone()), sync_by);
    }

    /// The leader has spoken.
    pub(super) fn assign(&mut self, request: &SyncGroupRequest) {
        let Some(group) = self.groups.by_id.get_mut(&request.group_id) else { return };
        for (id, member) in &mut group.members {
            let assigned = request.assignments.iter().find(|(assigned, _)| assigned == id);
            member.assignment = assigned.map_or_else(Bytes::new, |(_, assignment)| assignment.clone());
        }
        group.state = GroupState::Stable;
        let mut answers = Vec::new();
        for id in group.members.keys().cloned().collect::<Vec<_>>() {
            let response = group.sync_response(&id);
            let waiting = group.members.get_mut(&id).and_then(|member| member.waiting_sync.take());
            answers.extend(waiting.map(|header| (id, header, response)));
        }
        group.write_down();
        for (id, header, response) in answers {
            self.reset_session(&request.group_id, &id);
            self.respond(header, Response::SyncGroup(response));
        }
    }

    /// Members that never fetched their assignment are out, and the others start over.
    pub(crate) fn group_sync_due(&mut self, group_id: &GroupId) {
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        let silent = std::mem::take(&mut group.pending_sync);
        if silent.is_empty() || matches!(group.state, GroupState::Empty | GroupState::PreparingRebalance) {
            return;
        }
        for id in silent {
            self.timers.cancel(Timer::GroupMember(group_id.clone(), id.clone()));
            self.remove_member(group_id, &id);
        }
        self.prepare_rebalance(group_id);
    }

    /// Another broker coordinates from now on. It knows what was written down, and nobody's open requests.
    pub(crate) fn reload_groups_of_slot(&mut self, slot: usize) {
        let of_slot = |id: &&GroupId| self.coordinators.index(CoordinatorKind::Group, id.as_str()) == slot;
        let moved: Vec<GroupId> = self.groups.by_id.keys().filter(of_slot).cloned().collect();
        for group_id in moved {
            self.reload_group(&group_id);
        }
    }

    fn reload_group(&mut self, group_id: &GroupId) {
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        let mut old = std::mem::take(&mut group.members);
        let mut forgotten: Vec<MemberId> = group.pending_members.iter().cloned().collect();
        forgotten.extend(old.keys().cloned());
        let written = group.written_down.clone();
        *group = Group {
            state: if written.members.is_empty() { GroupState::Empty } else { GroupState::Stable },
            generation: written.generation,
            protocol_type: written.protocol_type.clone(),
            protocol_name: written.protocol_name.clone(),
            leader: written.leader.clone(),
            static_members: (written.members.iter())
                .filter_map(|(id, member)| Some((member.instance_id.clone()?, id.clone())))
                .collect(),
            members: written.members.clone(),
            written_down: written,
            emptied_at: group.emptied_at.or(Some(self.now)),
            offsets: std::mem::take(&mut group.offsets),
            pending_offsets: std::mem::take(&mut group.pending_offsets),
            ..Group::default()
        };
        let members: Vec<MemberId> = group.members.keys().cloned().collect();
        self.timers.cancel(Timer::GroupJoin(group_id.clone()));
        self.timers.cancel(Timer::GroupSync(group_id.clone()));
        for id in forgotten {
            self.timers.cancel(Timer::GroupMember(group_id.clone(), id));
        }
        for id in members {
            self.reset_session(group_id, &id);
        }
        for (id, member) in &mut old {
            if let Some(header) = member.waiting_join.take() {
                let response = JoinGroupResponse::failed(id.clone(), ErrorCode::NotCoordinator);
                self.respond(header, Response::JoinGroup(response));
            }
            if let Some(header) = member.waiting_sync.take() {
                self.respond(
                    header,
                    Response::SyncGroup(SyncGroupResponse::failed(ErrorCode::NotCoordinator)),
                );
            }
        }
    }
}
