//! Heartbeat of a classic group.
//!
//! Modelled: everything of [`crate::group`]. While the coordinator loads, heartbeats succeed.
//! Not modelled: nothing more.

use crate::{Cluster, GroupId, InstanceId, MemberId, RequestHeader};
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatRequest {
    pub group_id: GroupId,
    pub generation_id: i32,
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatResponse {
    pub error_code: ErrorCode,
}

impl Cluster {
    pub(crate) fn heartbeat(
        &mut self,
        header: &RequestHeader,
        request: &HeartbeatRequest,
    ) -> HeartbeatResponse {
        let error_code = match self.check_group_coordinator(&request.group_id, header.broker) {
            Ok(()) => self.beat(request).err().unwrap_or(ErrorCode::None),
            Err(ErrorCode::CoordinatorLoadInProgress) => ErrorCode::None,
            Err(error) => error,
        };
        HeartbeatResponse { error_code }
    }
}
