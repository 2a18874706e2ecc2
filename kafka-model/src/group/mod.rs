//! The group coordinator for classic groups
//! (group-coordinator/.../GroupMetadataManager.java and classic/ClassicGroup.java).
//!
//! Modelled: dynamic and static members (KIP-345), ids that must be known (KIP-394), generations, both phases of
//! a rebalance with their time-outs, eager and cooperative assignment (which the coordinator cannot tell
//! apart), session time-outs, committed offsets and those of open transactions, expiry, coordinators that move
//! and go on from what they had written down.
//! Not modelled: the consumer protocol of KIP-848, the group's log as a topic.

mod membership;
mod offsets;
mod rebalance;

pub use offsets::{CommittedOffset, Committer};

use crate::{BrokerId, ClientId, Cluster, GroupId, InstanceId, MemberId, Millis, Outcome, RequestHeader};
use bytes::Bytes;
use kafka_types::{ErrorCode, ProducerId, TopicName, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupState {
    #[default]
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl GroupState {
    /// As DescribeGroups spells it.
    pub fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
        }
    }
}

/// A name that the members understand, such as `cooperative-sticky`, with what the member says under it.
pub type Protocol = (String, Bytes);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) instance_id: Option<InstanceId>,
    pub(crate) client_id: ClientId,
    rebalance_timeout_ms: Millis,
    session_timeout_ms: Millis,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    /// Until its first JoinGroup is answered. Such a member can expire while it waits.
    is_new: bool,
    waiting_join: Option<RequestHeader>,
    waiting_sync: Option<RequestHeader>,
}

/// What a coordinator finds when it loads the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct WrittenDown {
    generation: i32,
    protocol_type: Option<String>,
    protocol_name: Option<String>,
    leader: Option<MemberId>,
    members: BTreeMap<MemberId, Member>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(crate) state: GroupState,
    /// The first rebalance of an empty group waits for more members, up to a limit.
    initial_remaining_ms: Option<Millis>,
    new_member_added: bool,
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol_name: Option<String>,
    pub(crate) leader: Option<MemberId>,
    pub(crate) members: BTreeMap<MemberId, Member>,
    static_members: BTreeMap<InstanceId, MemberId>,
    /// Ids that were given out and have not joined yet.
    pending_members: BTreeSet<MemberId>,
    pending_sync: BTreeSet<MemberId>,
    written_down: WrittenDown,
    emptied_at: Option<Millis>,
    pub(crate) offsets: BTreeMap<TopicPartition, CommittedOffset>,
    pub(crate) pending_offsets: BTreeMap<ProducerId, BTreeMap<TopicPartition, CommittedOffset>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Groups {
    pub(crate) by_id: BTreeMap<GroupId, Group>,
    members_named: u64,
}

impl Groups {
    pub(crate) fn forget_topic(&mut self, topic: &TopicName) {
        for group in self.by_id.values_mut() {
            group.offsets.retain(|tp, _| tp.topic != *topic);
        }
    }

    fn name_member(&mut self, prefix: &str) -> MemberId {
        self.members_named += 1;
        MemberId::new(format!("{prefix}-{:08}", self.members_named))
    }
}

impl Group {
    /// Not who waits for an answer: those requests are the coordinator's own, and end with it.
    fn write_down(&mut self) {
        let written = |(id, member): (&MemberId, &Member)| {
            let member = Member { is_new: false, waiting_join: None, waiting_sync: None, ..member.clone() };
            (id.clone(), member)
        };
        self.written_down = WrittenDown {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone(),
            members: self.members.iter().map(written).collect(),
        };
    }

    fn is_leader(&self, member: &MemberId) -> bool {
        self.leader.as_ref() == Some(member)
    }

    fn has_all_members_joined(&self) -> bool {
        self.pending_members.is_empty() && self.members.values().all(|member| member.waiting_join.is_some())
    }

    fn rebalance_timeout_ms(&self) -> Millis {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0)
    }

    /// Protocols that every member knows.
    fn candidate_protocols(&self) -> BTreeSet<&str> {
        let names = |member: &'_ Member| -> BTreeSet<String> {
            member.protocols.iter().map(|(name, _)| name.clone()).collect()
        };
        let mut members = self.members.values();
        let Some(first) = members.next() else { return BTreeSet::new() };
        let others: Vec<BTreeSet<String>> = members.map(names).collect();
        let first = first.protocols.iter().map(|(name, _)| name.as_str());
        first.filter(|name| others.iter().all(|known| known.contains(*name))).collect()
    }

    /// Each member votes for the first that all of them know; a tie goes to the first by name.
    fn select_protocol(&self) -> Option<String> {
        let candidates = self.candidate_protocols();
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut known = member.protocols.iter().map(|(name, _)| name.as_str());
            if let Some(name) = known.find(|name| candidates.contains(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().max().copied()?;
        votes.iter().find(|(_, count)| **count == most).map(|(name, _)| (*name).to_owned())
    }

    fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let candidates = self.candidate_protocols();
        self.protocol_type.as_deref() == Some(protocol_type)
            && (self.members.is_empty()
                || protocols.iter().any(|(name, _)| candidates.contains(name.as_str())))
    }

    /// ClassicGroup.validateMember
    pub(crate) fn check_member(
        &self,
        member: &MemberId,
        instance: Option<&InstanceId>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.static_members.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(known) if known != member => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    fn remove(&mut self, id: &MemberId) -> Option<Member> {
        let removed = self.members.remove(id);
        if let Some(instance) = removed.as_ref().and_then(|member| member.instance_id.as_ref()) {
            self.static_members.remove(instance);
        }
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.pending_members.remove(id);
        self.pending_sync.remove(id);
        removed
    }
}

impl Cluster {
    /// Requests that wait at a broker that died are never answered.
    pub(crate) fn drop_group_waits_of(&mut self, broker: BrokerId) {
        let is_there = |wait: &mut RequestHeader| wait.broker == broker;
        let mut dropped = Vec::new();
        for group in self.groups.by_id.values_mut() {
            for member in group.members.values_mut() {
                dropped.extend(member.waiting_join.take_if(is_there));
                dropped.extend(member.waiting_sync.take_if(is_there));
            }
        }
        for header in dropped {
            self.reply(header, Outcome::ConnectionClosed);
        }
    }
}
