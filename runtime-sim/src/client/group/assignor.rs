//! The `range` assignor for one topic, and the bytes in which members tell each other of it. Only members read
//! them, so they need not be Kafka's own.

use bytes::Bytes;
use kafka_model::MemberId;
use kafka_model::api::join_group::JoinedMember;

pub(super) const RANGE: &str = "range";

/// Shares `partitions` partitions out in ranges, members in the order of their ids: instance ids where they have
/// them, so that a static member keeps its share.
pub(super) fn range(members: &[JoinedMember], partitions: usize) -> Vec<(MemberId, Bytes)> {
    let mut order: Vec<&JoinedMember> = members.iter().collect();
    order.sort_by_key(|member| (member.group_instance_id.clone(), member.member_id.clone()));
    let (each, more) = (partitions / order.len().max(1), partitions % order.len().max(1));
    let mut next = 0;
    let share = |(index, member): (usize, &&JoinedMember)| {
        let count = each + usize::from(index < more);
        let lanes: Vec<u32> = (next..next + count).map(|lane| lane as u32).collect();
        next += count;
        (member.member_id.clone(), encode(&lanes))
    };
    order.iter().enumerate().map(share).collect()
}

fn encode(lanes: &[u32]) -> Bytes {
    lanes.iter().flat_map(|lane| lane.to_be_bytes()).collect::<Vec<u8>>().into()
}

pub(super) fn decode(assignment: &Bytes) -> Vec<u32> {
    assignment
        .chunks_exact(4)
        .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("chunks of four")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> JoinedMember {
        JoinedMember { member_id: name.into(), group_instance_id: None, metadata: Bytes::new() }
    }

    #[test]
    fn every_lane_has_one_owner() {
        let shares = |members: &[&str], partitions| {
            let members: Vec<_> = members.iter().map(|name| member(name)).collect();
            let shares = range(&members, partitions).into_iter();
            shares.map(|(id, lanes)| (id.to_string(), decode(&lanes))).collect::<Vec<_>>()
        };
        let named = |name: &str, lanes: &[u32]| (name.to_owned(), lanes.to_vec());
        assert_eq!(shares(&["b", "a"], 3), [named("a", &[0, 1]), named("b", &[2])]);
        assert_eq!(shares(&["a", "b", "c"], 2), [named("a", &[0]), named("b", &[1]), named("c", &[])]);
        assert_eq!(shares(&["a"], 0), [named("a", &[])]);
    }
}
