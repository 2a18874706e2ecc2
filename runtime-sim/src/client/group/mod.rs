//! This instance's membership in the flow's group: librdkafka's classic, eager consumer group as the real World
//! uses it. Nothing is ever consumed; a turn is open until the mirror has answered it.

mod assignor;
mod heartbeat;
mod joining;

use super::io::Io;
use super::library::{Library, Place, SOCKET_TIMEOUT_MS};
use super::marks::Mark;
use super::trouble::trouble;
use super::wire::Pending;
use crate::moments::Moment;
use kafka_model::api::join_group::JoinedMember;
use kafka_model::api::leave_group::{LeaveGroupRequest, LeavingMember};
use kafka_model::{CoordinatorKind, InstanceId, MemberId, Millis};
use kafka_types::{ErrorCode, TopicName};
use std::collections::VecDeque;
use verbatim_core::LaneId;
use verbatim_core::event::{GroupEvent, Turn};

const SESSION_MS: Millis = 8_000;
const HEARTBEAT_MS: Millis = 2_000;
const REBALANCE_MS: Millis = 30_000;
/// How long a turn may stay open before it is answered here.
const TURN_MAX_MS: Millis = REBALANCE_MS * 2 / 3;
/// Between two attempts of anything.
const RETRY_MS: Millis = 500;
/// How long leaving is waited for before the member counts as gone.
const LEAVE_MAX_MS: Millis = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Assign,
    Revoke,
}

struct OpenTurn {
    turn: Turn,
    change: Change,
    since: Millis,
}

enum Stage {
    /// About to ask to join.
    Outside {
        may_join_at: Millis,
    },
    Joining {
        pending: Pending,
    },
    /// The leader has to know how many lanes there are before it can share them out.
    Sharing {
        members: Vec<JoinedMember>,
        answers_before: u64,
    },
    Syncing {
        pending: Pending,
    },
    Member,
    Leaving {
        pending: Option<Pending>,
        until: Millis,
    },
}

struct Membership {
    library: Library,
    stage: Stage,
    member_id: MemberId,
    generation: i32,
    lanes: Vec<LaneId>,
    open: Option<OpenTurn>,
    /// What to do once the open turn is answered.
    must_rejoin: bool,
    /// The lanes are gone already.
    is_lost: bool,
    heartbeat: Option<Pending>,
    next_heartbeat_at: Millis,
    last_heard_at: Millis,
}

pub(super) struct Group {
    place: Place,
    group_id: String,
    ledger: TopicName,
    instance_id: Option<InstanceId>,
    membership: Option<Membership>,
    /// It was told to join before it had left.
    joins_again: bool,
    turns: u64,
    pub(super) events: VecDeque<GroupEvent>,
}

impl Group {
    pub(super) fn new(place: Place, group_id: String, ledger: TopicName, instance_id: Option<&str>) -> Group {
        let instance_id = instance_id.map(InstanceId::from);
        Group {
            place,
            group_id,
            ledger,
            instance_id,
            membership: None,
            joins_again: false,
            turns: 0,
            events: VecDeque::new(),
        }
    }

    pub(super) fn join(&mut self, io: &mut Io) {
        if let Some(membership) = &self.membership {
            self.joins_again = matches!(membership.stage, Stage::Leaving { .. });
            return;
        }
        let library = Library::new(io, &self.place, SOCKET_TIMEOUT_MS);
        let mut library = library.coordinated(CoordinatorKind::Group, &self.group_id);
        library.metadata.want(&self.ledger);
        self.membership = Some(Membership {
            library,
            stage: Stage::Outside { may_join_at: io.now },
            member_id: MemberId::default(),
            generation: -1,
            lanes: Vec::new(),
            open: None,
            must_rejoin: false,
            is_lost: false,
            heartbeat: None,
            next_heartbeat_at: 0,
            last_heard_at: io.now,
        });
    }

    /// Accept or Release.
    pub(super) fn answer(&mut self, io: &mut Io, turn: Turn) {
        let Some(membership) = &mut self.membership else { return };
        if membership.open.as_ref().is_some_and(|open| open.turn == turn) {
            membership.answered(io);
        }
    }

    /// `keep_seat`: a static member stays a member until its session times out.
    pub(super) fn leave(&mut self, io: &mut Io, keep_seat: bool) {
        let Some(membership) = &mut self.membership else {
            self.events.push_back(GroupEvent::Left);
            return;
        };
        let leaves = !keep_seat || self.instance_id.is_none();
        let leaving = LeavingMember {
            member_id: membership.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
        };
        let request = LeaveGroupRequest { group_id: self.group_id.as_str().into(), members: vec![leaving] };
        let coordinator =
            membership.library.coordinator().filter(|_| leaves && !membership.member_id.is_empty());
        let pending = coordinator.map(|broker| membership.library.send(io, broker, request));
        membership.open = None;
        membership.stage = Stage::Leaving { pending, until: io.now + LEAVE_MAX_MS };
    }

    pub(super) fn close(&mut self, io: &mut Io) {
        if let Some(membership) = self.membership.take() {
            membership.library.close(io);
        }
    }

    pub(super) fn advance(&mut self, io: &mut Io) {
        let Some(membership) = &mut self.membership else { return };
        membership.library.advance(io);
        if let Some(error) = membership.library.metadata.error(&self.ledger)
            && error.0 == ErrorCode::TopicAuthorizationFailed
        {
            let refused = trouble(error.0, "Describe", self.ledger.as_str());
            return self.end(io, GroupEvent::Refused(refused));
        }
        if let Some(denied) = membership.library.coordinator_denied()
            && !matches!(membership.stage, Stage::Leaving { .. })
            && self.is_final(io, denied)
        {
            return;
        }
        let Some(membership) = &mut self.membership else { return };
        if let Some(open) = &membership.open
            && io.is_due(open.since + TURN_MAX_MS)
        {
            membership.answered(io);
        }
        self.heartbeat(io);
        self.work(io);
    }

    fn end(&mut self, io: &mut Io, event: GroupEvent) {
        self.close(io);
        self.events.push_back(event);
        if std::mem::take(&mut self.joins_again) {
            self.join(io);
        }
    }

    /// One step of joining, if one can be taken.
    fn work(&mut self, io: &mut Io) {
        let Some(membership) = &mut self.membership else { return };
        match std::mem::replace(&mut membership.stage, Stage::Member) {
            Stage::Outside { may_join_at } => {
                membership.stage = Stage::Outside { may_join_at };
                self.ask_to_join(io, may_join_at);
            }
            Stage::Joining { pending } => match io.wire.take(pending) {
                None => membership.stage = Stage::Joining { pending },
                Some(answer) => self.joined(io, answer),
            },
            Stage::Sharing { members, answers_before } => {
                membership.stage = Stage::Sharing { members, answers_before };
                self.share(io);
            }
            Stage::Syncing { pending } => match io.wire.take(pending) {
                None => membership.stage = Stage::Syncing { pending },
                Some(answer) => self.synced(io, answer),
            },
            Stage::Member => {
                if membership.open.is_none() && membership.must_rejoin {
                    self.give_up_lanes(io);
                }
            }
            Stage::Leaving { pending, until } => {
                let is_answered = pending.is_none_or(|pending| io.wire.take(pending).is_some());
                if is_answered || io.is_due(until) {
                    self.end(io, GroupEvent::Left);
                } else {
                    membership.stage = Stage::Leaving { pending, until };
                }
            }
        }
    }

    fn open_turn(&mut self, io: &mut Io, change: Change) {
        let Some(membership) = &mut self.membership else { return };
        self.turns += 1;
        let turn = Turn(self.turns);
        let lanes = membership.lanes.clone();
        let is_lost = membership.is_lost;
        membership.open = Some(OpenTurn { turn, change, since: io.now });
        if lanes.is_empty() {
            // Nothing to decide. That the group spoke is still news.
            membership.answered(io);
        }
        self.events.push_back(match (change, is_lost) {
            (Change::Assign, _) => GroupEvent::Offered { turn, lanes },
            (Change::Revoke, false) => GroupEvent::Recalled { turn, lanes },
            (Change::Revoke, true) => GroupEvent::Lost { turn, lanes },
        });
        if change == Change::Revoke {
            io.wire.mark(Mark::Moment(Moment::Revoking));
        }
        io.look_again = true;
    }

    /// Eagerly: all lanes go before the member joins again.
    fn give_up_lanes(&mut self, io: &mut Io) {
        let Some(membership) = &mut self.membership else { return };
        if membership.lanes.is_empty() {
            membership.must_rejoin = false;
            membership.stage = Stage::Outside { may_join_at: io.now };
            io.look_again = true;
        } else {
            self.open_turn(io, Change::Revoke);
        }
    }

    /// Ends the membership over an error that no retry mends; whether it was one.
    fn is_final(&mut self, io: &mut Io, error: ErrorCode) -> bool {
        match error {
            ErrorCode::FencedInstanceId => {
                let instance = self.instance_id.as_ref().map_or(String::new(), ToString::to_string);
                let text = format!("another process runs as instance {instance:?}: {error}");
                self.end(io, GroupEvent::Replaced(text));
            }
            ErrorCode::GroupAuthorizationFailed
            | ErrorCode::InvalidGroupId
            | ErrorCode::InvalidSessionTimeout
            | ErrorCode::InconsistentGroupProtocol => {
                let refused = trouble(error, "Read", &self.group_id);
                self.end(io, GroupEvent::Refused(refused));
            }
            _ => return false,
        }
        true
    }
}

impl Membership {
    /// The group has gone on without this member: its lanes are others' by now.
    fn lose(&mut self, keeps_id: bool) {
        self.is_lost = true;
        self.generation = -1;
        if !keeps_id {
            self.member_id = MemberId::default();
        }
        self.must_rejoin = true;
    }

    /// The open turn is answered, by the mirror or because it took too long.
    fn answered(&mut self, io: &mut Io) {
        let Some(open) = self.open.take() else { return };
        io.look_again = true;
        match open.change {
            Change::Assign => {}
            Change::Revoke => {
                self.lanes.clear();
                self.must_rejoin = false;
                self.stage = Stage::Outside { may_join_at: io.now };
            }
        }
    }
}
