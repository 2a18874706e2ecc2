//! DescribeGroups and ListGroups.
//!
//! Modelled: state, protocol, members with their assignment.
//! Not modelled: client hosts, groups of other types.

use crate::group::GroupState;
use crate::{ClientId, Cluster, GroupId, InstanceId, MemberId, RequestHeader};
use bytes::Bytes;
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeGroupsRequest {
    pub groups: Vec<GroupId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeGroupsResponse {
    pub groups: Vec<DescribedGroup>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedGroup {
    pub group_id: GroupId,
    pub error_code: ErrorCode,
    /// None for a group that does not exist: Kafka calls it Dead.
    pub state: Option<GroupState>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub members: Vec<DescribedMember>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedMember {
    pub member_id: MemberId,
    pub group_instance_id: Option<InstanceId>,
    pub client_id: ClientId,
    pub assignment: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListGroupsRequest {}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListGroupsResponse {
    /// Those that the broker coordinates.
    pub groups: Vec<(GroupId, GroupState)>,
}

impl Cluster {
    pub(crate) fn describe_groups(
        &self,
        header: &RequestHeader,
        request: DescribeGroupsRequest,
    ) -> DescribeGroupsResponse {
        let describe = |group_id: GroupId| {
            let checked = self.check_group_coordinator(&group_id, header.broker);
            let group = self.groups.by_id.get(&group_id).filter(|_| checked.is_ok());
            let members = group.into_iter().flat_map(|group| &group.members);
            DescribedGroup {
                error_code: checked.err().unwrap_or(ErrorCode::None),
                state: group.map(|group| group.state),
                protocol_type: group.and_then(|group| group.protocol_type.clone()),
                protocol_name: group.and_then(|group| group.protocol_name.clone()),
                members: members
                    .map(|(member_id, member)| DescribedMember {
                        member_id: member_id.clone(),
                        group_instance_id: member.instance_id.clone(),
                        client_id: member.client_id.clone(),
                        assignment: member.assignment.clone(),
                    })
                    .collect(),
                group_id,
            }
        };
        DescribeGroupsResponse { groups: request.groups.into_iter().map(describe).collect() }
    }

    pub(crate) fn list_groups(&self, header: &RequestHeader, _: &ListGroupsRequest) -> ListGroupsResponse {
        let is_here = |id: &GroupId| self.check_group_coordinator(id, header.broker).is_ok();
        let here = self.groups.by_id.iter().filter(|(id, _)| is_here(id));
        ListGroupsResponse { groups: here.map(|(id, group)| (id.clone(), group.state)).collect() }
    }
}
