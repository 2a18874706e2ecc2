//! SyncGroup: the second phase of a rebalance. It is answered when the leader has sent the assignments.
//!
//! Modelled: everything of [`crate::group`].
//! Not modelled: nothing more.

use crate::{Cluster, GroupId, InstanceId, MemberId, RequestHeader, Response};
use bytes::Bytes;
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SyncGroupRequest {
    pub group_id: GroupId,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    /// From the leader only.
    pub assignments: Vec<(MemberId, Bytes)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SyncGroupResponse {
    pub error_code: ErrorCode,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignment: Bytes,
}

impl SyncGroupResponse {
    pub(crate) fn failed(error_code: ErrorCode) -> SyncGroupResponse {
        SyncGroupResponse { error_code, protocol_type: None, protocol_name: None, assignment: Bytes::new() }
    }
}

impl Cluster {
    pub(crate) fn sync_group(&mut self, header: RequestHeader, request: SyncGroupRequest) {
        match self.check_group_coordinator(&request.group_id, header.broker) {
            Ok(()) => self.sync(header, request),
            // Rebalance again: the state of a group that is being loaded is not known (KAFKA-2464).
            Err(ErrorCode::CoordinatorLoadInProgress) => {
                let response = SyncGroupResponse::failed(ErrorCode::RebalanceInProgress);
                self.respond(header, Response::SyncGroup(response));
            }
            Err(error) => self.respond(header, Response::SyncGroup(SyncGroupResponse::failed(error))),
        }
    }
}
