//! Heartbeats, and a session that runs out.

use super::{Group, HEARTBEAT_MS, SESSION_MS, Stage};
use crate::client::io::Io;
use crate::client::wire::Answer;
use kafka_model::Response;
use kafka_model::api::heartbeat::HeartbeatRequest;
use kafka_types::ErrorCode;

impl Group {
    pub(super) fn heartbeat(&mut self, io: &mut Io) {
        let Some(membership) = &mut self.membership else { return };
        if let Some(pending) = membership.heartbeat
            && let Some(answer) = io.wire.take(pending)
        {
            membership.heartbeat = None;
            self.heartbeat_answered(io, answer);
        }
        let Some(membership) = &mut self.membership else { return };
        if !matches!(membership.stage, Stage::Member) || membership.generation < 0 {
            return;
        }
        if io.is_due(membership.last_heard_at + SESSION_MS) {
            // Nobody has heard of this member for so long that its lanes are others' by now.
            membership.lose(false);
            io.look_again = true;
            return;
        }
        if membership.heartbeat.is_some() || !io.is_due(membership.next_heartbeat_at) {
            return;
        }
        let Some(coordinator) = membership.library.coordinator() else { return };
        let request = HeartbeatRequest {
            group_id: self.group_id.as_str().into(),
            generation_id: membership.generation,
            member_id: membership.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
        };
        membership.next_heartbeat_at = io.now + HEARTBEAT_MS;
        membership.heartbeat = Some(membership.library.send_within(io, coordinator, request, SESSION_MS));
    }

    fn heartbeat_answered(&mut self, io: &mut Io, answer: Answer) {
        let Some(membership) = &mut self.membership else { return };
        let Ok(Response::Heartbeat(response)) = answer else {
            membership.library.coordinator_moved();
            return;
        };
        let error = response.error_code;
        if matches!(error, ErrorCode::None | ErrorCode::RebalanceInProgress) {
            membership.last_heard_at = io.now;
        }
        if error.is_error() && matches!(membership.stage, Stage::Member) {
            self.heartbeat_failed(io, error);
        }
    }

    fn heartbeat_failed(&mut self, io: &mut Io, error: ErrorCode) {
        if self.is_final(io, error) {
            return;
        }
        let Some(membership) = &mut self.membership else { return };
        io.look_again = true;
        match error {
            ErrorCode::RebalanceInProgress => membership.must_rejoin = true,
            ErrorCode::IllegalGeneration => membership.lose(true),
            ErrorCode::UnknownMemberId => membership.lose(false),
            // A coordinator that moves or loads, and whatever else passes.
            _ => membership.library.coordinator_moved(),
        }
    }
}
