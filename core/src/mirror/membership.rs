use crate::backoff::SOON;
use crate::command::Command;
use crate::event::Turn;
use crate::fault::Faults;
use crate::lane::LaneId;
use crate::mirror::Context;
use crate::time::Instant;
use std::collections::BTreeSet;

/// This instance's place in the group: load balancing only, safety never rests on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Membership {
    state: State,
    releases: Vec<PendingRelease>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Outside,
    Member,
    Leaving {
        again: Rejoin,
    },
    /// Left, to join again at this time.
    Away {
        until: Instant,
    },
    /// Left, to join again once whatever made us leave is over.
    AwayUntilAble,
}

/// Whether and when a leaver comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejoin {
    Never,
    Soon,
    OnceAble,
}

/// A turn that is answered once all its lanes are closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PendingRelease {
    turn: Turn,
    lanes: BTreeSet<LaneId>,
}

impl Membership {
    pub fn join(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.state = State::Member;
        ctx.out.push(Command::JoinGroup);
    }

    pub fn is_member(&self) -> bool {
        self.state == State::Member
    }

    pub fn is_outside(&self) -> bool {
        self.state == State::Outside
    }

    /// A turn took lanes away; they are released together once all are closed.
    pub fn owe_release(&mut self, turn: Turn, lanes: impl IntoIterator<Item = LaneId>) {
        self.releases.push(PendingRelease { turn, lanes: lanes.into_iter().collect() });
    }

    /// Releases what turns wait for, as far as lanes are closed.
    pub fn release_closed(&mut self, ctx: &mut Context<'_, impl Faults>, is_closed: impl Fn(LaneId) -> bool) {
        self.releases.retain(|release| {
            let done = release.lanes.iter().all(|lane| is_closed(*lane));
            if done {
                ctx.out.push(Command::Release(release.turn));
            }
            !done
        });
    }

    pub fn leave(&mut self, ctx: &mut Context<'_, impl Faults>, again: Rejoin) {
        match self.state {
            State::Member => {
                self.state = State::Leaving { again };
                ctx.out.push(Command::LeaveGroup);
            }
            State::Leaving { .. } => self.state = State::Leaving { again },
            State::Outside | State::Away { .. } | State::AwayUntilAble => self.left_as(ctx, again),
        }
    }

    /// The group confirms that this member has left, if it was about to.
    pub fn left(&mut self, ctx: &Context<'_, impl Faults>) -> bool {
        let State::Leaving { again } = self.state else { return false };
        self.releases.clear();
        self.left_as(ctx, again);
        true
    }

    /// Lanes that are offered again are not awaited by earlier turns any more.
    pub fn forget_releases(&mut self, ctx: &mut Context<'_, impl Faults>, lanes: &[LaneId]) {
        for release in &mut self.releases {
            release.lanes.retain(|lane| !lanes.contains(lane));
        }
        self.release_closed(ctx, |_| false);
    }

    /// Joins again when it is time to.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>, able: bool) {
        match self.state {
            State::Away { until } if until <= ctx.now.instant => self.join(ctx),
            State::AwayUntilAble if able => self.join(ctx),
            _ => {}
        }
    }

    pub fn wake_at(&self) -> Option<Instant> {
        match self.state {
            State::Away { until } => Some(until),
            State::Outside | State::Member | State::Leaving { .. } | State::AwayUntilAble => None,
        }
    }

    fn left_as(&mut self, ctx: &Context<'_, impl Faults>, again: Rejoin) {
        self.state = match again {
            Rejoin::Never => State::Outside,
            Rejoin::Soon => State::Away { until: ctx.now.instant + SOON },
            Rejoin::OnceAble => State::AwayUntilAble,
        };
    }
}
