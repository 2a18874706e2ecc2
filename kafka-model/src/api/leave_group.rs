//! LeaveGroup, of one or several members.
//!
//! Modelled: static members named by their instance id alone, as an administrator does.
//! Not modelled: reasons in words.

use crate::{Cluster, GroupId, InstanceId, MemberId, RequestHeader};
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaveGroupRequest {
    pub group_id: GroupId,
    pub members: Vec<LeavingMember>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeavingMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaveGroupResponse {
    pub error_code: ErrorCode,
    pub members: Vec<(LeavingMember, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn leave_group(
        &mut self,
        header: &RequestHeader,
        request: LeaveGroupRequest,
    ) -> LeaveGroupResponse {
        if let Err(error_code) = self.check_group_coordinator(&request.group_id, header.broker) {
            return LeaveGroupResponse { error_code, members: Vec::new() };
        }
        let mut has_left = false;
        let mut members = Vec::with_capacity(request.members.len());
        for leaving in request.members {
            let left = self.leave(&request.group_id, &leaving);
            has_left |= left.is_ok();
            members.push((leaving, left.err().unwrap_or(ErrorCode::None)));
        }
        if has_left {
            self.member_is_gone(&request.group_id);
        }
        LeaveGroupResponse { error_code: ErrorCode::None, members }
    }
}
