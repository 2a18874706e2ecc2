use crate::progress::{commit_as, group_coordinator, offset_of};
use crate::support::*;
use bytes::Bytes;
use kafka_model::api::delete_groups::DeleteGroupsRequest;
use kafka_model::api::describe_groups::DescribeGroupsRequest;
use kafka_model::api::heartbeat::HeartbeatRequest;
use kafka_model::api::join_group::{JoinGroupRequest, JoinGroupResponse};
use kafka_model::api::leave_group::{LeaveGroupRequest, LeavingMember};
use kafka_model::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use kafka_model::group::{Committer, GroupState};
use kafka_model::{BrokerId, ClusterConfig, CoordinatorKind, InstanceId, MemberId, RequestToken, Response};
use kafka_types::ErrorCode::{
    self, FencedInstanceId, IllegalGeneration, InconsistentGroupProtocol, InvalidSessionTimeout,
    MemberIdRequired, NonEmptyGroup, NotCoordinator, RebalanceInProgress, UnknownMemberId,
};

const REBALANCE_TIMEOUT_MS: i64 = 60_000;
const SESSION_TIMEOUT_MS: i64 = 10_000;

fn quick() -> Bench {
    let config = ClusterConfig { group_initial_rebalance_delay_ms: 0, ..ClusterConfig::default() };
    Bench::with(config, &[])
}

#[derive(Clone)]
struct Consumer {
    id: MemberId,
    instance: Option<InstanceId>,
    metadata: &'static str,
    generation: i32,
}

fn consumer(id: &MemberId) -> Consumer {
    Consumer { id: id.clone(), instance: None, metadata: "topics", generation: -1 }
}

fn static_consumer(instance: &str) -> Consumer {
    Consumer { instance: Some(instance.into()), ..consumer(&MemberId::default()) }
}

fn send_join(bench: &mut Bench, consumer: &Consumer) -> RequestToken {
    let request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
        member_id: consumer.id.clone(),
        group_instance_id: consumer.instance.clone(),
        protocol_type: "consumer".into(),
        protocols: vec![("range".into(), Bytes::from_static(consumer.metadata.as_bytes()))],
    };
    bench.send(group_coordinator(bench), request)
}

/// A static member that is in, alone and not yet synced.
fn joined_static(bench: &mut Bench, instance: &str) -> Consumer {
    let member = static_consumer(instance);
    let token = send_join(bench, &member);
    bench.wait(0);
    let response = joined(bench, token);
    Consumer { id: response.member_id, generation: response.generation_id, ..member }
}

fn joined(bench: &Bench, token: RequestToken) -> JoinGroupResponse {
    let Response::JoinGroup(response) = bench.response(token) else { panic!() };
    response
}

/// A dynamic member with the id that it was told to use.
fn new_member(bench: &mut Bench) -> Consumer {
    let token = send_join(bench, &consumer(&MemberId::default()));
    let response = joined(bench, token);
    assert_eq!(response.error_code, MemberIdRequired);
    consumer(&response.member_id)
}

fn send_sync(
    bench: &mut Bench,
    consumer: &Consumer,
    assignments: &[(&MemberId, &'static str)],
) -> RequestToken {
    let assignments =
        assignments.iter().map(|(id, it)| ((*id).clone(), Bytes::from_static(it.as_bytes()))).collect();
    let request = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: consumer.generation,
        member_id: consumer.id.clone(),
        group_instance_id: consumer.instance.clone(),
        protocol_type: None,
        protocol_name: None,
        assignments,
    };
    bench.send(group_coordinator(bench), request)
}

fn synced(bench: &Bench, token: RequestToken) -> SyncGroupResponse {
    let Response::SyncGroup(response) = bench.response(token) else { panic!() };
    response
}

fn beat(bench: &mut Bench, consumer: &Consumer) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: consumer.generation,
        member_id: consumer.id.clone(),
        group_instance_id: consumer.instance.clone(),
    };
    let Response::Heartbeat(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
    response.error_code
}

fn leave(bench: &mut Bench, consumer: &Consumer) -> ErrorCode {
    let leaving =
        LeavingMember { member_id: consumer.id.clone(), group_instance_id: consumer.instance.clone() };
    let request = LeaveGroupRequest { group_id: "g".into(), members: vec![leaving] };
    let Response::LeaveGroup(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
    response.members[0].1
}

fn commit(bench: &mut Bench, consumer: &Consumer) -> ErrorCode {
    let committer = Committer {
        generation_id: consumer.generation,
        member_id: consumer.id.clone(),
        group_instance_id: consumer.instance.clone(),
    };
    commit_as(bench, committer, offset_of(&tp("t", 0), 1))
}

fn state(bench: &mut Bench) -> Option<GroupState> {
    let request = DescribeGroupsRequest { groups: vec!["g".into()] };
    let Response::DescribeGroups(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
    response.groups[0].state
}

/// Two members in a stable group, the leader first.
fn pair(bench: &mut Bench) -> (Consumer, Consumer) {
    let mut leader = new_member(bench);
    let first = send_join(bench, &leader);
    bench.wait(0);
    leader.generation = joined(bench, first).generation_id;
    let alone = send_sync(bench, &leader, &[(&leader.id, "everything")]);
    assert_eq!(synced(bench, alone).error_code, NoError);
    let mut follower = new_member(bench);
    let second = send_join(bench, &follower);
    let first = send_join(bench, &leader);
    (leader.generation, follower.generation) =
        (joined(bench, first).generation_id, joined(bench, second).generation_id);
    settle(bench, &leader, &follower);
    (leader, follower)
}

fn settle(bench: &mut Bench, leader: &Consumer, follower: &Consumer) {
    let waiting = send_sync(bench, follower, &[]);
    assert_eq!(bench.outcome(waiting), None, "until the leader has spoken");
    let assigned = send_sync(bench, leader, &[(&leader.id, "half"), (&follower.id, "other half")]);
    assert_eq!(synced(bench, assigned).assignment, "half");
    assert_eq!(synced(bench, waiting).assignment, "other half");
}

#[test]
fn rule_4_4_members_join_and_sync_in_two_phases() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    assert_eq!((leader.generation, follower.generation), (2, 2));
    assert_eq!(state(&mut bench), Some(GroupState::Stable));
    assert_eq!((beat(&mut bench, &leader), beat(&mut bench, &follower)), (NoError, NoError));
    assert_eq!(commit(&mut bench, &follower), NoError);
}

#[test]
fn rule_4_4_the_first_rebalance_waits_for_more_members() {
    let mut bench = Bench::new();
    let (a, b) = (new_member(&mut bench), new_member(&mut bench));
    let first = send_join(&mut bench, &a);
    bench.wait(2_000);
    let second = send_join(&mut bench, &b);
    bench.wait(1_000);
    assert_eq!(bench.outcome(first), None, "a newcomer wins another delay");
    bench.wait(3_000);
    assert_eq!(joined(&bench, first).generation_id, 1);
    let members = |token| joined(&bench, token).members.len();
    assert_eq!((members(first), members(second)), (2, 0), "only the leader learns of the others");
}

#[test]
fn rule_4_4_a_rebalance_asks_everybody_to_join_again() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    let third = new_member(&mut bench);
    let waiting = send_join(&mut bench, &third);
    assert_eq!(beat(&mut bench, &leader), RebalanceInProgress);
    // Whoever does not know of it yet may still commit.
    assert_eq!(commit(&mut bench, &follower), NoError);
    let (first, second) = (send_join(&mut bench, &leader), send_join(&mut bench, &follower));
    assert_eq!(joined(&bench, waiting).generation_id, 3);
    assert_eq!(joined(&bench, first).members.len(), 3);
    assert_eq!(joined(&bench, second).generation_id, 3);
    assert_eq!(commit(&mut bench, &follower), IllegalGeneration);
    let follower = Consumer { generation: 3, ..follower };
    assert_eq!(commit(&mut bench, &follower), RebalanceInProgress, "CompletingRebalance");
}

#[test]
fn rule_4_4_cooperative_rebalance_takes_two_rounds() {
    // The coordinator only sees members that join again of their own accord with other metadata.
    let mut bench = quick();
    let (mut leader, mut follower) = pair(&mut bench);
    follower.metadata = "topics, without the revoked partition";
    let second = send_join(&mut bench, &follower);
    let first = send_join(&mut bench, &leader);
    leader.generation = joined(&bench, first).generation_id;
    follower.generation = joined(&bench, second).generation_id;
    assert_eq!(leader.generation, 3);
    settle(&mut bench, &leader, &follower);
}

#[test]
fn rule_4_4_a_follower_that_joins_unchanged_gets_the_same_generation() {
    let mut bench = quick();
    let (_, follower) = pair(&mut bench);
    let again = send_join(&mut bench, &follower);
    assert_eq!(joined(&bench, again).generation_id, 2);
    assert_eq!(state(&mut bench), Some(GroupState::Stable));
}

#[test]
fn rule_4_4_without_heartbeats_a_member_is_out() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    bench.wait(SESSION_TIMEOUT_MS - 1);
    assert_eq!(beat(&mut bench, &leader), NoError);
    bench.wait(1);
    assert_eq!(beat(&mut bench, &leader), RebalanceInProgress);
    assert_eq!(
        (beat(&mut bench, &follower), commit(&mut bench, &follower)),
        (UnknownMemberId, UnknownMemberId)
    );
    let alone = send_join(&mut bench, &leader);
    assert_eq!(joined(&bench, alone).generation_id, 3);
}

#[test]
fn rule_4_4_a_slow_member_is_evicted_by_the_rebalance_time_out() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    let third = new_member(&mut bench);
    let waiting = send_join(&mut bench, &third);
    let first = send_join(&mut bench, &leader);
    for _ in 0..6 {
        bench.wait(REBALANCE_TIMEOUT_MS / 6 - 1);
        // It revokes for ever: alive, and not joining.
        assert_eq!(beat(&mut bench, &follower), RebalanceInProgress);
    }
    bench.wait(6);
    assert_eq!(joined(&bench, first).members.len(), 2);
    assert_eq!(joined(&bench, waiting).generation_id, 3);
    assert_eq!(
        (beat(&mut bench, &follower), commit(&mut bench, &follower)),
        (UnknownMemberId, UnknownMemberId)
    );
}

#[test]
fn rule_4_4_a_member_that_never_syncs_is_out() {
    let mut bench = quick();
    let (mut leader, follower) = pair(&mut bench);
    leader.metadata = "other topics";
    let first = send_join(&mut bench, &leader);
    let second = send_join(&mut bench, &follower);
    leader.generation = joined(&bench, first).generation_id;
    let follower = Consumer { generation: joined(&bench, second).generation_id, ..follower };
    let assigned = send_sync(&mut bench, &leader, &[]);
    assert_eq!(synced(&bench, assigned).error_code, NoError);
    for _ in 0..7 {
        bench.wait(REBALANCE_TIMEOUT_MS / 7 - 1);
        beat(&mut bench, &leader);
        beat(&mut bench, &follower);
    }
    bench.wait(20);
    assert_eq!(beat(&mut bench, &follower), UnknownMemberId);
    assert_eq!(beat(&mut bench, &leader), RebalanceInProgress);
}

#[test]
fn rule_4_4_leaving_starts_a_rebalance() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    assert_eq!(leave(&mut bench, &leader), NoError);
    assert_eq!(leave(&mut bench, &leader), UnknownMemberId);
    assert_eq!(beat(&mut bench, &follower), RebalanceInProgress);
    let alone = send_join(&mut bench, &follower);
    let response = joined(&bench, alone);
    assert_eq!((response.leader, response.generation_id), (follower.id.clone(), 3));
    assert_eq!(leave(&mut bench, &follower), NoError);
    assert_eq!(state(&mut bench), Some(GroupState::Empty));
}

#[test]
fn rule_4_4_a_rebalance_interrupts_waiting_syncs() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    let second = send_join(&mut bench, &Consumer { metadata: "other", ..follower.clone() });
    send_join(&mut bench, &leader);
    let follower = Consumer { generation: joined(&bench, second).generation_id, ..follower };
    let waiting = send_sync(&mut bench, &follower, &[]);
    let third = new_member(&mut bench);
    send_join(&mut bench, &third);
    assert_eq!(synced(&bench, waiting).error_code, RebalanceInProgress);
}

#[test]
fn rule_4_4_static_members_come_back_without_a_rebalance() {
    let mut bench = quick();
    let first = joined_static(&mut bench, "one");
    let token = send_sync(&mut bench, &first, &[(&first.id, "everything")]);
    assert_eq!(synced(&bench, token).error_code, NoError);
    let token = send_join(&mut bench, &static_consumer("one"));
    let response = joined(&bench, token);
    assert_eq!((response.error_code, response.generation_id), (NoError, first.generation));
    assert!(response.skip_assignment && response.member_id != first.id);
    // The former holder of the name is fenced, fatally.
    assert_eq!((beat(&mut bench, &first), commit(&mut bench, &first)), (FencedInstanceId, FencedInstanceId));
    let token = send_join(&mut bench, &first);
    assert_eq!(joined(&bench, token).error_code, FencedInstanceId);
    let second = Consumer { id: response.member_id, ..first };
    let token = send_sync(&mut bench, &second, &[]);
    assert_eq!(synced(&bench, token).assignment, "everything");
}

#[test]
fn rule_4_4_a_waiting_static_member_is_fenced_at_once() {
    let mut bench = Bench::new();
    let first = send_join(&mut bench, &static_consumer("one"));
    let second = send_join(&mut bench, &static_consumer("one"));
    assert_eq!(joined(&bench, first).error_code, FencedInstanceId);
    bench.wait(3_000);
    assert_eq!(joined(&bench, second).generation_id, 1);
}

#[test]
fn rule_4_4_what_a_member_may_not_say() {
    let mut bench = quick();
    let (leader, _) = pair(&mut bench);
    let request = |protocol_type: &str, session_timeout_ms, member_id: MemberId| JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms,
        rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
        member_id,
        group_instance_id: None,
        protocol_type: protocol_type.into(),
        protocols: vec![("range".into(), Bytes::new())],
    };
    for (request, error) in [
        (request("connect", SESSION_TIMEOUT_MS, MemberId::default()), InconsistentGroupProtocol),
        (request("consumer", 100, MemberId::default()), InvalidSessionTimeout),
        (request("consumer", SESSION_TIMEOUT_MS, "stranger".into()), UnknownMemberId),
    ] {
        let token = bench.send(group_coordinator(&bench), request);
        assert_eq!(joined(&bench, token).error_code, error);
    }
    let stale = Consumer { generation: 1, ..leader.clone() };
    assert_eq!(
        (beat(&mut bench, &stale), commit(&mut bench, &stale)),
        (IllegalGeneration, IllegalGeneration)
    );
    let nobody = Committer::nobody();
    assert_eq!(commit_as(&mut bench, nobody, offset_of(&tp("t", 0), 1)), UnknownMemberId, "not empty");
}

#[test]
fn rule_4_4_a_moved_coordinator_goes_on_from_what_was_written_down() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    let third = new_member(&mut bench);
    let waiting = send_join(&mut bench, &third);
    let from = group_coordinator(&bench);
    let to = BrokerId(from.0 % 3 + 1);
    let replies = bench.cluster.move_coordinator(bench.now, CoordinatorKind::Group, "g", to);
    bench.take(replies);
    assert_eq!(joined(&bench, waiting).error_code, NotCoordinator);
    assert_eq!(state(&mut bench), Some(GroupState::Stable), "the rebalance was not written down");
    assert_eq!((beat(&mut bench, &leader), beat(&mut bench, &follower)), (NoError, NoError));
    let token = send_join(&mut bench, &third);
    assert_eq!(joined(&bench, token).error_code, UnknownMemberId);
}

/// What waits for an answer is not written down: a static member that came back at the old coordinator, and of which
/// the new one hears nothing, is out when its session is over.
#[test]
fn rule_4_4_a_member_that_a_moved_coordinator_never_hears_of_is_out() {
    let mut bench = quick();
    let first = joined_static(&mut bench, "one");
    send_sync(&mut bench, &first, &[(&first.id, "everything")]);
    let token = send_join(&mut bench, &static_consumer("one"));
    assert_eq!(joined(&bench, token).error_code, NoError);
    let to = BrokerId(group_coordinator(&bench).0 % 3 + 1);
    let replies = bench.cluster.move_coordinator(bench.now, CoordinatorKind::Group, "g", to);
    bench.take(replies);
    bench.wait(SESSION_TIMEOUT_MS - 1);
    assert_eq!(state(&mut bench), Some(GroupState::Stable));
    bench.wait(1);
    assert_eq!(state(&mut bench), Some(GroupState::Empty));
}

#[test]
fn rule_4_4_an_administrator_cannot_delete_a_group_in_use() {
    let mut bench = quick();
    let (leader, follower) = pair(&mut bench);
    let delete = |bench: &mut Bench| {
        let request = DeleteGroupsRequest { groups: vec!["g".into()] };
        let Response::DeleteGroups(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
        response.groups[0].1
    };
    assert_eq!(delete(&mut bench), NonEmptyGroup);
    leave(&mut bench, &leader);
    leave(&mut bench, &follower);
    assert_eq!(delete(&mut bench), NoError);
    assert_eq!(state(&mut bench), None);
}
