use super::bounded::{BoundedRun, Surroundings};
use super::membership::{Membership, Rejoin};
use super::starting::{Started, feeds_itself};
use crate::command::{Command, Report};
use crate::config::Flow;
use crate::delivery::exactly_once::Lane;
use crate::event::{Ask, Event, GroupEvent, Listing, Turn, Urgency};
use crate::exit::Exit;
use crate::failure::{Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::identity::{Identity, TopicIdentity};
use crate::lane::LaneId;
use crate::ledger::{Terms, TopicTable};
use crate::mirror::{Context, Knowledge, LedgerGuard};
use crate::route::find_loop;
use crate::source::{Discovery, Leaders, share_of};
use crate::target::TargetTopics;
use crate::time::Instant;
use std::collections::BTreeMap;

/// How often at most whoever watches is told how far the flow is.
const REPORT_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// How long a mirror that is to stop at once waits for the target to confirm its aborts.
const ABORT_MAX: std::time::Duration = std::time::Duration::from_secs(2);

/// A mirror past its start: a member of the group, with the lanes it was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Running {
    know: Knowledge,
    membership: Membership,
    lanes: BTreeMap<LaneId, Lane>,
    topics: TargetTopics,
    bounded: Option<BoundedRun>,
    stopping: Option<Stopping>,
    /// When the source last answered anything.
    source_seen: Instant,
    reported: Option<Instant>,
}

/// The mirror is coming to its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stopping {
    deadline: Instant,
    /// How it will have ended once all is given up.
    exit: Exit,
    /// Whether what is left unsettled is the reason to give instead. A bounded run that has proved its end
    /// owes nothing for what came after.
    unless_unsettled: bool,
}

/// A group that will not have this instance, for want of a right or because it is set up otherwise.
fn refused_by_group(trouble: Trouble) -> Exit {
    match trouble {
        Trouble::NotAuthorized { .. } | Trouble::Authentication(_) => {
            Exit::NotAuthorized(Side::Target, trouble)
        }
        Trouble::Refused(text) | Trouble::Unreachable(text) | Trouble::Passing(text) => {
            Exit::Configuration(format!("the target's group coordinator refuses this instance: {text}"))
        }
    }
}

/// The ledger was deleted, whether or not another was made.
pub fn ledger_gone(flow: &Flow) -> Exit {
    Exit::Configuration(format!(
        "the ledger {} was deleted or made again while the mirror ran; what it had settled is on the target, but \
         its progress is lost",
        flow.name.ledger()
    ))
}

impl Running {
    pub fn start(ctx: &mut Context<'_, impl Faults>, started: Started) -> Running {
        let mut discovery = Discovery::default();
        discovery.start(ctx, &started.source, &started.target);
        let know = Knowledge {
            terms: started.terms,
            ledger_id: started.ledger_id,
            discovery,
            identity: TopicIdentity::default(),
            leaders: Leaders::default(),
            topic_table: TopicTable::default(),
            ledger_guard: LedgerGuard::default(),
            settled_something: false,
        };
        let mut running = Running {
            know,
            membership: Membership::default(),
            lanes: BTreeMap::new(),
            topics: TargetTopics::default(),
            bounded: ctx.flow.until.map(|until| BoundedRun::new(until, ctx.now.instant)),
            stopping: None,
            source_seen: ctx.now.instant,
            reported: None,
        };
        ctx.out.push(Command::FollowTopics);
        running.membership.join(ctx);
        running.poll(ctx);
        running
    }

    pub fn handle(&mut self, ctx: &mut Context<'_, impl Faults>, event: Event) {
        self.dispatch(ctx, event);
        // Once the end is decided nothing more is begun: above all, nothing is committed.
        if ctx.out.exit().is_none() {
            self.poll(ctx);
        }
    }

    /// The next moment after `now` at which something becomes due. What was due by `now` has been done.
    pub fn wake_at(&self, now: Instant, flow: &Flow) -> Option<Instant> {
        let lanes = self.lanes.values().flat_map(Lane::deadlines);
        let displaced = self.lanes.values().filter_map(Lane::displaced);
        let machines = [
            self.know.discovery.wake_at(),
            self.know.identity.wake_at(),
            self.know.ledger_guard.wake_at(),
            self.membership.wake_at(),
            self.topics.wake_at(),
            self.bounded.as_ref().and_then(|bounded| bounded.wake_at()),
            self.stopping.as_ref().map(|stopping| stopping.deadline),
            self.unable_at(flow),
            Some(self.doubts_source_at(flow)),
            Some(self.source_seen + flow.limits.unable_max),
            self.reported.filter(|_| self.know.settled_something).map(|at| at + REPORT_EVERY),
        ];
        machines.into_iter().flatten().chain(lanes).chain(displaced).filter(|at| now < *at).min()
    }

    fn dispatch(&mut self, ctx: &mut Context<'_, impl Faults>, event: Event) {
        match event {
            Event::Woke => {}
            Event::Stop(Urgency::Settle) => self.stop(ctx, None),
            Event::Stop(Urgency::Now) => self.stop_now(ctx),
            Event::Trouble(side, trouble) => tracing::warn!(%side, %trouble, "cluster trouble"),
            Event::Described { side, ask, answer } => self.described(ctx, side, ask, answer),
            Event::TopicRecords(records) => match self.know.topic_table.apply(&records) {
                Ok(()) => self.note_news(),
                Err(bad) => ctx.out.end(Exit::Configuration(bad.to_string())),
            },
            Event::Group(event) => self.group(ctx, event),
            Event::Lane(lane, attempt, event) => {
                if matches!(event, crate::event::LaneEvent::Fetched(_)) {
                    self.source_seen = ctx.now.instant;
                }
                if let Some(lane) = self.lanes.get_mut(&lane) {
                    lane.handle(ctx, &mut self.know, attempt, event);
                }
            }
            event @ (Event::Configs { .. }
            | Event::TopicsCreated { .. }
            | Event::TopicsGrown { .. }
            | Event::SourceOffsets { .. }
            | Event::TargetEnds { .. }
            | Event::OpenTransactions { .. }
            | Event::Surveyed { .. }) => self.answered(ctx, &event),
        }
    }

    fn answered(&mut self, ctx: &mut Context<'_, impl Faults>, event: &Event) {
        if let Event::Configs { ask, answer, .. } = event
            && self.know.ledger_guard.answered(ctx, *ask, answer)
        {
            return;
        }
        if let Event::SourceOffsets { ask, answer } = event
            && self.know.leaders.answered(*ask, answer)
        {
            return;
        }
        if let Some(first) = self.lanes.get_mut(&LaneId::FIRST)
            && self.topics.handle(ctx, &mut self.know, first, event)
        {
            return;
        }
        let around = Surroundings { know: &self.know, lanes: &self.lanes, topics: &self.topics };
        let Some(bounded) = &mut self.bounded else { return };
        let before = bounded.progress();
        let exit = bounded.handle(ctx, &around, event);
        self.know.settled_something |= bounded.progress() != before;
        if let Some(exit) = exit {
            self.stop(ctx, Some(exit));
        }
    }

    fn described(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        ask: Ask,
        answer: Result<Listing, Trouble>,
    ) {
        if side == Side::Source
            && let Ok(listing) = &answer
        {
            self.source_seen = ctx.now.instant;
            self.check_loops(ctx, listing);
        }
        if self.know.identity.answered(ctx, side, ask, &answer) {
            self.check_ledger_lives(ctx);
        } else if self.know.discovery.answered(ctx, side, ask, &answer) {
            self.doubt_ledger(ctx, side, &answer);
            self.note_news();
        } else {
            return self.answered(ctx, &Event::Described { side, ask, answer });
        }
        if let (Side::Target, Ok(listing)) = (side, &answer) {
            self.check_ledger_partitions(ctx, listing);
        }
    }

    /// A topic that appears later can make a mirror within one cluster copy its own copies.
    fn check_loops(&self, ctx: &mut Context<'_, impl Faults>, source: &Listing) {
        let Terms { source_cluster, target_cluster, .. } = &self.know.terms;
        if source_cluster == target_cluster
            && let Some(found) = find_loop(&ctx.flow.filter, &ctx.flow.rename, source.topics.keys())
        {
            ctx.out.end(feeds_itself(source_cluster, &found));
        }
    }

    /// A ledger that was grown would move partitions between lanes (H3). One that has nothing to settle learns it from
    /// listings.
    fn check_ledger_partitions(&self, ctx: &mut Context<'_, impl Faults>, listing: &Listing) {
        let ledger = ctx.flow.name.ledger();
        let found = listing.topics.get(&ledger).map(|info| info.partitions);
        let is_another = |found: &u32| *found != ctx.flow.lanes && !ctx.plants(Mutant::LanesFromLedger);
        if let Some(found) = found.filter(is_another) {
            ctx.out.end(Exit::Configuration(format!(
                "the ledger {ledger} now has {found} partitions, but delivery.lanes is {}: lanes are fixed \
                 when the ledger is created",
                ctx.flow.lanes
            )));
        }
    }

    /// A listing shows another ledger, or none, which only an answer about the ledger itself proves.
    fn doubt_ledger(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        answer: &Result<Listing, Trouble>,
    ) {
        let ledger = ctx.flow.name.ledger();
        let (Side::Target, Ok(listing)) = (side, answer) else { return };
        if listing.topics.get(&ledger).is_none_or(|info| info.id != self.know.ledger_id) {
            self.know.identity.want(ctx, Side::Target, [ledger]);
        }
    }

    fn check_ledger_lives(&self, ctx: &mut Context<'_, impl Faults>) {
        let ledger = ctx.flow.name.ledger();
        match self.know.identity.since(Side::Target, &ledger, Ask::default()) {
            Identity::Pending => {}
            Identity::Is(id) if id == self.know.ledger_id => {}
            Identity::Is(_) | Identity::Deleted => ctx.out.end(ledger_gone(ctx.flow)),
        }
    }

    fn group(&mut self, ctx: &mut Context<'_, impl Faults>, event: GroupEvent) {
        match event {
            GroupEvent::Offered { turn, lanes } => {
                ctx.out.push(Command::Accept(turn));
                self.offered(ctx, lanes);
            }
            GroupEvent::Recalled { turn, lanes } => {
                let deadline = ctx.now.instant + ctx.flow.limits.release_max;
                self.taken_away(ctx, turn, lanes, |lane, _| lane.release(deadline));
            }
            GroupEvent::Lost { turn, lanes } => {
                tracing::warn!(?lanes, "lanes lost: the group went on without this instance");
                if ctx.plants(Mutant::LostLanesCommit) {
                    let deadline = ctx.now.instant + ctx.flow.limits.release_max;
                    return self.taken_away(ctx, turn, lanes, |lane, _| lane.release(deadline));
                }
                self.taken_away(ctx, turn, lanes, Lane::lose);
            }
            GroupEvent::Replaced(text) => ctx.out.end(Exit::Replaced(text)),
            GroupEvent::Refused(trouble) => ctx.out.end(refused_by_group(trouble)),
            GroupEvent::Left => {
                if self.membership.left(ctx) {
                    // Lanes that were offered or kept until now are no longer ours.
                    for lane in self.lanes.values_mut() {
                        lane.lose(ctx);
                        lane.forget_displacement();
                    }
                }
            }
        }
    }

    fn offered(&mut self, ctx: &mut Context<'_, impl Faults>, lanes: Vec<LaneId>) {
        if self.stopping.is_some() || !self.membership.is_member() {
            // The offer crossed our leaving.
            return;
        }
        if let Some(lane) = lanes.iter().find(|lane| ctx.flow.lanes <= lane.0) {
            return ctx.out.end(Exit::Configuration(format!(
                "the group offers lane {lane}, but delivery.lanes is {}: the ledger has been given more \
                 partitions; lanes are fixed when it is created",
                ctx.flow.lanes
            )));
        }
        self.membership.forget_releases(ctx, &lanes);
        for id in lanes {
            if id == LaneId::FIRST {
                self.topics.reset();
            }
            self.lanes.entry(id).or_insert_with(|| Lane::new(id, ctx)).take(ctx);
        }
    }

    fn taken_away<F: Faults>(
        &mut self,
        ctx: &mut Context<'_, F>,
        turn: Turn,
        lanes: Vec<LaneId>,
        give_up: impl Fn(&mut Lane, &mut Context<'_, F>),
    ) {
        for id in &lanes {
            if let Some(lane) = self.lanes.get_mut(id) {
                give_up(lane, ctx);
                lane.forget_displacement();
            }
        }
        self.membership.owe_release(turn, lanes);
    }

    fn share_memory(&mut self, ctx: &Context<'_, impl Faults>) {
        let open = self.lanes.values().filter(|lane| !lane.is_closed()).count();
        let share = share_of(ctx.flow.intake_bytes_max, open);
        for lane in self.lanes.values_mut() {
            lane.set_budget(share);
        }
    }

    fn note_news(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.note_news();
        }
    }

    fn poll(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.know.discovery.poll(ctx);
        self.know.identity.poll(ctx);
        self.know.ledger_guard.poll(ctx);
        self.share_memory(ctx);
        for lane in self.lanes.values_mut() {
            lane.poll(ctx, &mut self.know);
        }
        if let Some(first) = self.lanes.get_mut(&LaneId::FIRST) {
            self.topics.poll(ctx, &self.know, first);
            // What it noted there is to be settled.
            first.poll(ctx, &mut self.know);
        }
        let lanes = &self.lanes;
        let is_closed = |id: LaneId| lanes.get(&id).is_none_or(Lane::is_closed);
        self.membership.release_closed(ctx, is_closed);
        match &self.stopping {
            Some(_) => self.poll_stopping(ctx),
            None => {
                self.poll_membership(ctx);
                if let Some(bounded) = &mut self.bounded {
                    bounded.poll(ctx, &self.know);
                }
            }
        }
        self.report(ctx);
    }

    /// An owner that cannot do its work leaves the group to those who can (S6, H9).
    fn poll_membership(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let now = ctx.now.instant;
        let able = now.since(self.source_seen) < ctx.flow.limits.unable_max;
        if self.doubts_source_at(ctx.flow) <= now {
            self.know.discovery.look_soon(now, Side::Source);
        }
        self.membership.poll(ctx, able);
        if !self.membership.is_member() || ctx.plants(Mutant::UnableOwnersStay) {
            return;
        }
        let displaced = self.lanes.values().filter_map(Lane::displaced).any(|until| until <= now);
        let stuck = self.unable_at(ctx.flow).is_some_and(|at| at <= now)
            || self.lanes.values().any(|lane| !lane.is_closed() && lane.keeps_failing());
        if displaced {
            self.leave(ctx, Rejoin::Soon, "another instance has a lane that the group still gives us");
        } else if !able {
            self.leave(ctx, Rejoin::OnceAble, "the source does not answer");
        } else if stuck {
            self.leave(ctx, Rejoin::Soon, "a lane makes no progress");
        }
    }

    fn leave(&mut self, ctx: &mut Context<'_, impl Faults>, again: Rejoin, why: &str) {
        tracing::warn!(why, "leaving the group");
        for lane in self.lanes.values_mut() {
            lane.slow_down(ctx);
            lane.lose(ctx);
            lane.forget_displacement();
        }
        self.membership.leave(ctx, again);
    }

    /// When to ask the source whether it is there, if nothing was heard of it until then.
    fn doubts_source_at(&self, flow: &Flow) -> Instant {
        self.source_seen + flow.limits.unable_max / 2
    }

    fn unable_at(&self, flow: &Flow) -> Option<Instant> {
        let since = self.lanes.values().filter(|lane| !lane.is_closed()).filter_map(Lane::unable_since).min();
        since.map(|since| since + flow.limits.unable_max)
    }

    /// Settles what is open, gives all lanes up and leaves the group; then `exit`, if all went well.
    fn stop(&mut self, ctx: &mut Context<'_, impl Faults>, exit: Option<Exit>) {
        if self.stopping.is_some() {
            return;
        }
        let unless_unsettled = exit.is_none() && !ctx.plants(Mutant::StoppedEarlyIsDone);
        let exit = exit.unwrap_or_else(|| match &self.bounded {
            None => Exit::Done,
            Some(_) if ctx.plants(Mutant::StoppedEarlyIsDone) => Exit::Done,
            Some(bounded) => bounded.stopped_early(ctx.flow),
        });
        let deadline = ctx.now.instant + ctx.flow.limits.stop_max;
        // Some time is left for leaving the group.
        let settle_by = ctx.now.instant + ctx.flow.limits.stop_max.mul_f32(0.75);
        for lane in self.lanes.values_mut() {
            if ctx.plants(Mutant::StopsWithoutSettling) {
                lane.lose(ctx);
            }
            lane.release(settle_by);
        }
        self.stopping = Some(Stopping { deadline, exit, unless_unsettled });
    }

    /// Aborts what is open and gives all lanes up; for an abort there is a moment, for nothing else.
    fn stop_now(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let deadline = ctx.now.instant + ABORT_MAX;
        let busy = self.lanes.values().any(|lane| !lane.is_closed() || lane.left_unsettled());
        let exit = match (busy, &self.bounded) {
            (false, None) => Exit::Done,
            _ => Exit::Unsettled("stopped at once; what was open is aborted".into()),
        };
        for lane in self.lanes.values_mut() {
            lane.drop_open(ctx, deadline);
        }
        self.stopping = Some(Stopping { deadline, exit, unless_unsettled: false });
    }

    fn poll_stopping(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let Some(Stopping { deadline, exit, unless_unsettled }) = &self.stopping else { return };
        let closed = self.lanes.values().all(Lane::is_closed);
        let late = *deadline <= ctx.now.instant;
        let unsettled = self.lanes.values().any(Lane::left_unsettled) || !closed;
        if closed {
            self.membership.leave(ctx, Rejoin::Never);
        }
        if (closed && self.membership.is_outside()) || late {
            ctx.out.end(match exit {
                Exit::Done if *unless_unsettled && unsettled => {
                    Exit::Unsettled("stopped before all that was read was settled".into())
                }
                exit => exit.clone(),
            });
        }
    }

    fn report(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let over = ctx.out.exit().is_some();
        let due = over || self.reported.is_none_or(|at| at + REPORT_EVERY <= ctx.now.instant);
        if !self.know.settled_something || !due {
            return;
        }
        self.know.settled_something = false;
        self.reported = Some(ctx.now.instant);
        let (done, total) = self.bounded.as_ref().map_or((0, None), |bounded| {
            let (done, total) = bounded.progress();
            (done, Some(total))
        });
        let totals = self.lanes.values().map(Lane::totals);
        let (records, bytes) = totals.fold((0, 0), |sum, it| (sum.0 + it.records, sum.1 + it.bytes));
        ctx.out.push(Command::Report(Report {
            lanes_owned: self.lanes.values().filter(|lane| lane.is_mirroring()).count() as u32,
            records_settled: records,
            bytes_settled: bytes,
            done,
            total,
            halted: self.lanes.values().flat_map(Lane::halted).count() as u32,
        }));
    }
}
