//! The two rounds of a rebalance: JoinGroup and SyncGroup.

use super::{Change, Group, HEARTBEAT_MS, REBALANCE_MS, RETRY_MS, SESSION_MS, Stage, assignor};
use crate::client::io::Io;
use crate::client::marks::Mark;
use crate::client::wire::Answer;
use crate::moments::Moment;
use bytes::Bytes;
use kafka_model::api::join_group::{JoinGroupRequest, JoinGroupResponse};
use kafka_model::api::sync_group::SyncGroupRequest;
use kafka_model::{MemberId, Millis, Response};
use kafka_types::ErrorCode;
use verbatim_core::LaneId;

impl Group {
    pub(super) fn ask_to_join(&mut self, io: &mut Io, may_join_at: Millis) {
        let Some(membership) = &mut self.membership else { return };
        if membership.open.is_some() || !io.is_due(may_join_at) {
            return;
        }
        let Some(coordinator) = membership.library.coordinator() else { return };
        let request = JoinGroupRequest {
            group_id: self.group_id.as_str().into(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            member_id: membership.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            protocol_type: "consumer".into(),
            protocols: vec![(assignor::RANGE.into(), Bytes::new())],
        };
        // A join waits for all others.
        let pending = membership.library.send_within(io, coordinator, request, REBALANCE_MS + 3_000);
        membership.stage = Stage::Joining { pending };
        io.wire.mark(Mark::Moment(Moment::JoinSent));
    }

    pub(super) fn joined(&mut self, io: &mut Io, answer: Answer) {
        let Some(membership) = &mut self.membership else { return };
        let response = match answer {
            Ok(Response::JoinGroup(response)) => response,
            Ok(_) | Err(_) => {
                membership.library.coordinator_moved();
                membership.stage = Stage::Outside { may_join_at: io.now + RETRY_MS };
                return;
            }
        };
        match response.error_code {
            ErrorCode::None => self.take_seat(io, response),
            ErrorCode::MemberIdRequired => {
                membership.member_id = response.member_id;
                membership.stage = Stage::Outside { may_join_at: io.now };
                io.look_again = true;
            }
            error => self.join_failed(io, error),
        }
    }

    fn take_seat(&mut self, io: &mut Io, response: JoinGroupResponse) {
        let Some(membership) = &mut self.membership else { return };
        let is_leader = response.leader == response.member_id;
        membership.member_id = response.member_id;
        membership.generation = response.generation_id;
        membership.must_rejoin = false;
        membership.is_lost = false;
        membership.last_heard_at = io.now;
        if is_leader && !response.skip_assignment {
            let answers_before = membership.library.metadata.answers(&self.ledger);
            membership.library.metadata.doubt(&self.ledger);
            membership.stage = Stage::Sharing { members: response.members, answers_before };
            io.look_again = true;
        } else {
            self.sync(io, Vec::new());
        }
    }

    /// Shares the lanes out, once the ledger has been described after the group was complete.
    pub(super) fn share(&mut self, io: &mut Io) {
        let Some(membership) = &mut self.membership else { return };
        let Stage::Sharing { members, answers_before } = &membership.stage else { return };
        let metadata = &membership.library.metadata;
        let partitions = metadata.partitions(&self.ledger);
        if metadata.answers(&self.ledger) <= *answers_before && partitions == 0 {
            return;
        }
        let assignments = assignor::range(members, partitions);
        self.sync(io, assignments);
    }

    fn sync(&mut self, io: &mut Io, assignments: Vec<(MemberId, Bytes)>) {
        let Some(membership) = &mut self.membership else { return };
        let request = SyncGroupRequest {
            group_id: self.group_id.as_str().into(),
            generation_id: membership.generation,
            member_id: membership.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some(assignor::RANGE.into()),
            assignments,
        };
        let Some(coordinator) = membership.library.coordinator() else {
            membership.stage = Stage::Outside { may_join_at: io.now + RETRY_MS };
            return;
        };
        let pending = membership.library.send_within(io, coordinator, request, REBALANCE_MS + 3_000);
        membership.stage = Stage::Syncing { pending };
    }

    pub(super) fn synced(&mut self, io: &mut Io, answer: Answer) {
        let Some(membership) = &mut self.membership else { return };
        let response = match answer {
            Ok(Response::SyncGroup(response)) => response,
            Ok(_) | Err(_) => {
                membership.library.coordinator_moved();
                membership.stage = Stage::Outside { may_join_at: io.now + RETRY_MS };
                return;
            }
        };
        if response.error_code.is_error() {
            return self.join_failed(io, response.error_code);
        }
        membership.last_heard_at = io.now;
        membership.next_heartbeat_at = io.now + HEARTBEAT_MS;
        membership.stage = Stage::Member;
        membership.lanes = assignor::decode(&response.assignment).into_iter().map(LaneId).collect();
        self.open_turn(io, Change::Assign);
    }

    /// A broker's error to JoinGroup or SyncGroup: the member is outside again.
    fn join_failed(&mut self, io: &mut Io, error: ErrorCode) {
        if self.is_final(io, error) {
            return;
        }
        let Some(membership) = &mut self.membership else { return };
        match error {
            ErrorCode::RebalanceInProgress => {}
            ErrorCode::IllegalGeneration => membership.generation = -1,
            ErrorCode::UnknownMemberId => {
                membership.generation = -1;
                membership.member_id = MemberId::default();
            }
            // A coordinator that moves or loads, and whatever else passes.
            _ => membership.library.coordinator_moved(),
        }
        membership.stage = Stage::Outside { may_join_at: io.now + RETRY_MS };
        io.wake_at(io.now + RETRY_MS);
    }
}
