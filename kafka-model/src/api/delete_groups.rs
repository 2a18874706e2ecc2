//! DeleteGroups: an administrator's tool; the committed offsets go along.
//!
//! Modelled: groups with members are refused.
//! Not modelled: OffsetDelete.

use crate::group::GroupState;
use crate::{Cluster, GroupId, RequestHeader};
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteGroupsRequest {
    pub groups: Vec<GroupId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteGroupsResponse {
    pub groups: Vec<(GroupId, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn delete_groups(
        &mut self,
        header: &RequestHeader,
        request: DeleteGroupsRequest,
    ) -> DeleteGroupsResponse {
        let delete = |group_id: GroupId| {
            let checked = self.check_group_coordinator(&group_id, header.broker);
            let deleted = checked.and_then(|()| match self.groups.by_id.get(&group_id) {
                None => Err(ErrorCode::GroupIdNotFound),
                Some(group) if group.state != GroupState::Empty => Err(ErrorCode::NonEmptyGroup),
                Some(_) => Ok(()),
            });
            if deleted.is_ok() {
                self.groups.by_id.remove(&group_id);
            }
            (group_id, deleted.err().unwrap_or(ErrorCode::None))
        };
        DeleteGroupsResponse { groups: request.groups.into_iter().map(delete).collect() }
    }
}
