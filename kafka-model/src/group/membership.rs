//! Members that join, sync, beat, leave and expire.

use super::{Group, GroupState, Member};
use crate::api::heartbeat::HeartbeatRequest;
use crate::api::join_group::{JoinGroupRequest, JoinGroupResponse};
use crate::api::leave_group::LeavingMember;
use crate::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use crate::timer::Timer;
use crate::{Cluster, GroupId, MemberId, Millis, RequestHeader, Response};
use kafka_types::ErrorCode;

/// A member that waits for its first generation may wait this long (classicGroupNewMemberJoinTimeoutMs).
const NEW_MEMBER_JOIN_TIMEOUT_MS: Millis = 5 * 60_000;

impl Cluster {
    pub(crate) fn join(&mut self, header: RequestHeader, request: JoinGroupRequest) {
        let refuse = |member: MemberId, error| Response::JoinGroup(JoinGroupResponse::failed(member, error));
        let (group_id, member_id) = (request.group_id.clone(), request.member_id.clone());
        let is_unknown = member_id.is_empty();
        if !self.groups.by_id.contains_key(&group_id) {
            if !is_unknown {
                return self.respond(header, refuse(member_id, ErrorCode::UnknownMemberId));
            }
            self.groups.by_id.insert(group_id.clone(), Group::default());
        }
        let max_size = self.config.group_max_size;
        let Some(group) = self.groups.by_id.get_mut(&group_id) else { return };
        if !is_unknown
            && !group.members.contains_key(&member_id)
            && !group.pending_members.contains(&member_id)
        {
            let error = match group.check_member(&member_id, request.group_instance_id.as_ref()) {
                Err(error) => error,
                Ok(()) => ErrorCode::UnknownMemberId,
            };
            return self.respond(header, refuse(member_id, error));
        }
        if max_size <= group.members.len() && !group.members.contains_key(&member_id) {
            group.pending_members.remove(&member_id);
            return self.respond(header, refuse(MemberId::default(), ErrorCode::GroupMaxSizeReached));
        }
        if !group.supports(&request.protocol_type, &request.protocols) {
            return self.respond(header, refuse(member_id, ErrorCode::InconsistentGroupProtocol));
        }
        if is_unknown {
            self.join_unknown(header, request);
        } else if group.pending_members.contains(&member_id) {
            self.add_member(header, request, member_id);
        } else {
            self.join_known(header, request);
        }
    }

    fn join_unknown(&mut self, header: RequestHeader, request: JoinGroupRequest) {
        let group_id = request.group_id.clone();
        let Some(instance) = request.group_instance_id.clone() else {
            let new_id = self.groups.name_member(header.client_id.as_str());
            if header.api_version < 4 {
                return self.add_member(header, request, new_id);
            }
            if let Some(group) = self.groups.by_id.get_mut(&group_id) {
                group.pending_members.insert(new_id.clone());
            }
            let expiry = self.now + request.session_timeout_ms;
            self.timers.set(Timer::GroupMember(group_id, new_id.clone()), expiry);
            let response = JoinGroupResponse::failed(new_id, ErrorCode::MemberIdRequired);
            return self.respond(header, Response::JoinGroup(response));
        };
        let new_id = self.groups.name_member(instance.as_str());
        let known = self.groups.by_id.get(&group_id).and_then(|group| group.static_members.get(&instance));
        match known.cloned() {
            Some(old_id) => self.replace_static_member(header, request, &old_id, &new_id),
            None => self.add_member(header, request, new_id),
        }
    }

    fn add_member(&mut self, header: RequestHeader, request: JoinGroupRequest, id: MemberId) {
        let group_id = request.group_id;
        let Some(group) = self.groups.by_id.get_mut(&group_id) else { return };
        let member = Member {
            instance_id: request.group_instance_id.clone(),
            client_id: header.client_id.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols,
            assignment: bytes::Bytes::new(),
            is_new: true,
            waiting_join: Some(header),
            waiting_sync: None,
        };
        if group.members.is_empty() {
            group.protocol_type = Some(request.protocol_type);
        }
        if group.initial_remaining_ms.is_some() {
            group.new_member_added = true;
        }
        group.leader.get_or_insert_with(|| id.clone());
        group.pending_members.remove(&id);
        if let Some(instance) = request.group_instance_id {
            group.static_members.insert(instance, id.clone());
        }
        group.members.insert(id.clone(), member);
        let expiry = self.now + NEW_MEMBER_JOIN_TIMEOUT_MS;
        self.timers.set(Timer::GroupMember(group_id.clone(), id), expiry);
        self.prepare_rebalance_or_complete_join(&group_id);
    }

    fn join_known(&mut self, header: RequestHeader, request: JoinGroupRequest) {
        let Some(group) = self.groups.by_id.get_mut(&request.group_id) else { return };
        let id = request.member_id.clone();
        if let Err(error) = group.check_member(&id, request.group_instance_id.as_ref()) {
            return self.respond(header, Response::JoinGroup(JoinGroupResponse::failed(id, error)));
        }
        let is_changed = group.members.get(&id).is_some_and(|member| member.protocols != request.protocols);
        let rebalances = match group.state {
            GroupState::PreparingRebalance => true,
            GroupState::CompletingRebalance => is_changed,
            GroupState::Stable => is_changed || group.is_leader(&id),
            GroupState::Empty => {
                let response = JoinGroupResponse::failed(id, ErrorCode::UnknownMemberId);
                return self.respond(header, Response::JoinGroup(response));
            }
        };
        if !rebalances {
            let response = group.join_response(&id, group.state == GroupState::CompletingRebalance);
            return self.respond(header, Response::JoinGroup(response));
        }
        self.update_member(&request, &id, header);
        self.prepare_rebalance_or_complete_join(&request.group_id);
    }

    fn update_member(&mut self, request: &JoinGroupRequest, id: &MemberId, header: RequestHeader) {
        let Some(group) = self.groups.by_id.get_mut(&request.group_id) else { return };
        let Some(member) = group.members.get_mut(id) else { return };
        member.protocols.clone_from(&request.protocols);
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        member.session_timeout_ms = request.session_timeout_ms;
        // A client that gave up on its request and sent another gets an answer to the last one only.
        member.waiting_join = Some(header);
    }

    /// A static member came back without its id: it takes the place of the former one, which is fenced.
    fn replace_static_member(
        &mut self,
        header: RequestHeader,
        request: JoinGroupRequest,
        old_id: &MemberId,
        new_id: &MemberId,
    ) {
        let group_id = request.group_id.clone();
        self.timers.cancel(Timer::GroupMember(group_id.clone(), old_id.clone()));
        let api_version = header.api_version;
        let Some(group) = self.groups.by_id.get_mut(&group_id) else { return };
        let was_leader = group.is_leader(old_id);
        let Some(mut member) = group.members.remove(old_id) else { return };
        let (join, sync) = (member.waiting_join.take(), member.waiting_sync.take());
        if let Some(instance) = &member.instance_id {
            group.static_members.insert(instance.clone(), new_id.clone());
        }
        group.members.insert(new_id.clone(), member);
        let old_leader = group.leader.clone();
        if was_leader {
            group.leader = Some(new_id.clone());
        }
        group.pending_sync.remove(old_id);
        self.fence_waits(join, sync, old_id);
        self.update_member(&request, new_id, header);
        self.reset_session(&group_id, new_id);
        let Some(group) = self.groups.by_id.get_mut(&group_id) else { return };
        match group.state {
            GroupState::Stable if group.protocol_name == group.select_protocol() => {
                group.write_down();
                let mut response = group.join_response(new_id, was_leader && 9 <= api_version);
                response.skip_assignment = was_leader && 9 <= api_version;
                if api_version < 9 {
                    // The old name of the leader keeps the newcomer from assigning for others.
                    response.leader = old_leader.unwrap_or_default();
                }
                let waiting = group.members.get_mut(new_id).and_then(|member| member.waiting_join.take());
                if let Some(header) = waiting {
                    self.respond(header, Response::JoinGroup(response));
                }
            }
            GroupState::Stable => self.prepare_rebalance_or_complete_join(&group_id),
            GroupState::CompletingRebalance => self.prepare_rebalance(&group_id),
            GroupState::PreparingRebalance | GroupState::Empty => self.complete_join_if_all_joined(&group_id),
        }
    }

    fn fence_waits(&mut self, join: Option<RequestHeader>, sync: Option<RequestHeader>, id: &MemberId) {
        if let Some(header) = join {
            let response = JoinGroupResponse::failed(id.clone(), ErrorCode::FencedInstanceId);
            self.respond(header, Response::JoinGroup(response));
        }
        if let Some(header) = sync {
            self.respond(header, Response::SyncGroup(SyncGroupResponse::failed(ErrorCode::FencedInstanceId)));
        }
    }

    pub(crate) fn sync(&mut self, header: RequestHeader, request: SyncGroupRequest) {
        let id = request.member_id.clone();
        let checked = match self.groups.by_id.get(&request.group_id) {
            None => Err(ErrorCode::UnknownMemberId),
            Some(group) => group.check_sync(&request),
        };
        let state = self.groups.by_id.get(&request.group_id).map_or(GroupState::Empty, |group| group.state);
        let error = match (checked, state) {
            (Err(error), _) => error,
            (Ok(()), GroupState::PreparingRebalance) => ErrorCode::RebalanceInProgress,
            (Ok(()), GroupState::Empty) => ErrorCode::UnknownMemberId,
            (Ok(()), GroupState::CompletingRebalance | GroupState::Stable) => ErrorCode::None,
        };
        if error.is_error() {
            return self.respond(header, Response::SyncGroup(SyncGroupResponse::failed(error)));
        }
        let Some(group) = self.groups.by_id.get_mut(&request.group_id) else { return };
        group.pending_sync.remove(&id);
        if group.pending_sync.is_empty() {
            self.timers.cancel(Timer::GroupSync(request.group_id.clone()));
        }
        if state == GroupState::Stable {
            let response = group.sync_response(&id);
            return self.respond(header, Response::SyncGroup(response));
        }
        if let Some(member) = group.members.get_mut(&id) {
            member.waiting_sync = Some(header);
        }
        if group.is_leader(&id) {
            self.assign(&request);
        }
    }

    pub(crate) fn beat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        let group = self.groups.by_id.get(&request.group_id).ok_or(ErrorCode::UnknownMemberId)?;
        group.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let state = group.state;
        match state {
            GroupState::Empty => return Err(ErrorCode::UnknownMemberId),
            GroupState::PreparingRebalance | GroupState::CompletingRebalance | GroupState::Stable => {}
        }
        self.reset_session(&request.group_id, &request.member_id);
        if state == GroupState::PreparingRebalance { Err(ErrorCode::RebalanceInProgress) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self, group_id: &GroupId, leaving: &LeavingMember) -> Result<(), ErrorCode> {
        let group = self.groups.by_id.get_mut(group_id).ok_or(ErrorCode::UnknownMemberId)?;
        let instance = leaving.group_instance_id.as_ref();
        let id = match instance.and_then(|instance| group.static_members.get(instance)) {
            Some(known) if leaving.member_id.is_empty() => known.clone(),
            Some(_) | None => leaving.member_id.clone(),
        };
        if !group.pending_members.contains(&id) {
            group.check_member(&id, instance)?;
        }
        self.timers.cancel(Timer::GroupMember(group_id.clone(), id.clone()));
        self.remove_member(group_id, &id);
        Ok(())
    }

    /// Drops the member; whoever waits under its name learns that it is unknown.
    pub(super) fn remove_member(&mut self, group_id: &GroupId, id: &MemberId) {
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        let removed = group.remove(id);
        let Some(mut member) = removed else { return };
        if let Some(header) = member.waiting_join.take() {
            let response = JoinGroupResponse::failed(MemberId::default(), ErrorCode::UnknownMemberId);
            self.respond(header, Response::JoinGroup(response));
        }
        if let Some(header) = member.waiting_sync.take() {
            self.respond(header, Response::SyncGroup(SyncGroupResponse::failed(ErrorCode::UnknownMemberId)));
        }
    }

    pub(crate) fn remove_member_now(&mut self, group_id: &GroupId, id: &MemberId) {
        self.remove_member(group_id, id);
        self.member_is_gone(group_id);
    }

    pub(super) fn reset_session(&mut self, group_id: &GroupId, id: &MemberId) {
        let group = self.groups.by_id.get(group_id);
        if let Some(member) = group.and_then(|group| group.members.get(id)) {
            let expiry = self.now + member.session_timeout_ms;
            self.timers.set(Timer::GroupMember(group_id.clone(), id.clone()), expiry);
        }
    }

    /// No heartbeat came in time. A coordinator that is down expires nobody.
    pub(crate) fn group_member_expired(&mut self, group_id: &GroupId, id: &MemberId) {
        let coordinator = self.coordinator(crate::CoordinatorKind::Group, group_id.as_str());
        if !coordinator.is_some_and(|broker| self.brokers.is_alive(broker)) {
            return self.reset_session(group_id, id);
        }
        let Some(group) = self.groups.by_id.get_mut(group_id) else { return };
        if group.pending_members.remove(id) {
            return self.complete_join_if_all_joined(group_id);
        }
        let Some(member) = group.members.get(id) else { return };
        let waits = member.waiting_join.is_some() || member.waiting_sync.is_some();
        if waits && !member.is_new {
            return;
        }
        self.remove_member_now(group_id, id);
    }
}
