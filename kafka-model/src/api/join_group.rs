//! JoinGroup: the first phase of a rebalance. It is answered when every member has joined.
//!
//! Modelled: everything of [`crate::group`]; ids that must be known from version 4 on (KIP-394), the leader of a
//! static group that comes back and is told to skip the assignment from version 9 on (KIP-814).
//! Not modelled: reasons in words.

use crate::group::Protocol;
use crate::{Cluster, GroupId, InstanceId, MemberId, Millis, RequestHeader, Response};
use bytes::Bytes;
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinGroupRequest {
    pub group_id: GroupId,
    pub session_timeout_ms: Millis,
    pub rebalance_timeout_ms: Millis,
    /// Empty for a member that has none yet.
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub protocol_type: String,
    /// In the order of preference.
    pub protocols: Vec<Protocol>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinGroupResponse {
    pub error_code: ErrorCode,
    pub generation_id: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: MemberId,
    pub skip_assignment: bool,
    pub member_id: MemberId,
    /// All of them for the leader, nobody for the others.
    pub members: Vec<JoinedMember>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinedMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub metadata: Bytes,
}

impl JoinGroupResponse {
    pub(crate) fn failed(member_id: MemberId, error_code: ErrorCode) -> JoinGroupResponse {
        JoinGroupResponse {
            error_code,
            generation_id: -1,
            protocol_type: None,
            protocol_name: None,
            leader: MemberId::default(),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

impl Cluster {
    pub(crate) fn join_group(&mut self, header: RequestHeader, request: JoinGroupRequest) {
        let session = self.config.group_min_session_timeout_ms..=self.config.group_max_session_timeout_ms;
        let checked = self.check_group_coordinator(&request.group_id, header.broker).and_then(|()| {
            let is_valid = session.contains(&request.session_timeout_ms);
            if is_valid { Ok(()) } else { Err(ErrorCode::InvalidSessionTimeout) }
        });
        match checked {
            Ok(()) => self.join(header, request),
            Err(error) => {
                let response = JoinGroupResponse::failed(request.member_id, error);
                self.respond(header, Response::JoinGroup(response));
            }
        }
    }
}
