//! This instance's membership in the flow's group on the target, on a thread of its own.
//!
//! The group shares out the ledger's partitions, which stand for lanes. Nothing is ever consumed, and no
//! partition is ever assigned to the client: the group's protocol (which partitions this member owns, what it
//! says when it joins again) is kept by librdkafka apart from what the client fetches, so a turn is answered
//! with an empty list. That fetches nothing, looks up no offsets, and needs no READ on the ledger.
//!
//! Lanes are shared out eagerly, all at once (docs/adr/0004): every lane always has an owner, whoever is killed when.
//!
//! **Turns.** When the group assigns or revokes, librdkafka calls [`MemberContext::rebalance`] and then waits,
//! heartbeating, until `assign` or `unassign` is called: from any thread at any time,
//! not only from the callback. So the callback only notes what happened, and the call is made when the
//! Mirror has submitted Accept or Release. There is one open turn at a time: librdkafka begins no other
//! before. The client is polled all the while, so `max.poll.interval.ms` never runs out; but the *group*
//! waits that long for a member that does not join a rebalance, and a member with an open turn does not
//! join. Hence [`TURN_MAX`]: a turn open for longer is answered here. Nothing unsafe can come of it, since
//! safety rests on fencing and not on the group.
//!
//! **Static membership** (`group.instance.id`). A member that ends without leaving keeps its seat for
//! `session.timeout.ms` (8 s), and a process that comes back under the same id within that time is given the
//! same lanes at once, without a rebalance; later, the lanes have gone to others. So a static member does
//! *not* leave when it was told to stop, for it may be about to be restarted, and no seat is kept longer than
//! a crashed one's. It does leave, at once, when the mirror gives its lanes up of its own accord (it cannot
//! make them progress, S6): another instance must have them. A member without an id always leaves.

use crate::client::{detach, log};
use crate::ffi::group::member_id;
use crate::settings::{REBALANCE_MS, Settings};
use crate::trouble::{ApiError, Asked};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka::{ClientContext, TopicPartitionList};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::LaneId;
use verbatim_core::event::{Event, GroupEvent, Turn};
use verbatim_core::failure::{Side, Trouble};

/// How long a turn may stay open.
const TURN_MAX: Duration = Duration::from_millis(REBALANCE_MS as u64 * 2 / 3);

/// How long one wait for librdkafka takes, and so how long an order may lie.
const POLL: Duration = Duration::from_millis(50);

/// How long closing is waited for before the member counts as gone.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// How long a static member's request to leave may take to be sent.
const LEAVE_MAX: Duration = Duration::from_secs(3);

enum Order {
    Join,
    Answer(Turn),
    Leave { keep_seat: bool },
}

/// The handle on the membership's thread, which closes the member and ends when this is dropped.
pub(crate) struct Group {
    orders: Sender<Order>,
    ended: Receiver<()>,
}

impl Group {
    pub(crate) fn start(settings: &Arc<Settings>, events: &UnboundedSender<Event>) -> Group {
        let (orders, received) = channel();
        let thread =
            Thread { settings: Arc::clone(settings), events: events.clone(), turns: 0, member: None };
        let (end, ended) = channel();
        detach("group", move || {
            thread.run(&received);
            drop(end);
        });
        Group { orders, ended }
    }

    /// Ends the membership, as a process does that is told to stop. Waits only so long.
    pub(crate) fn end(self, within: Duration) {
        drop(self.orders);
        // Nothing is ever sent: the wait is for the other end to go.
        if self.ended.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("leaving the group takes too long; its session will time out instead");
        }
    }

    pub(crate) fn join(&self) {
        self.order(Order::Join);
    }

    /// Accept or Release: the group asked only one thing under this turn.
    pub(crate) fn answer(&self, turn: Turn) {
        self.order(Order::Answer(turn));
    }

    /// `keep_seat`: a static member stays a member until its session times out.
    pub(crate) fn leave(&self, keep_seat: bool) {
        self.order(Order::Leave { keep_seat });
    }

    fn order(&self, order: Order) {
        if self.orders.send(order).is_err() {
            tracing::error!("the group's thread has ended");
        }
    }
}

struct Thread {
    settings: Arc<Settings>,
    events: UnboundedSender<Event>,
    turns: u64,
    member: Option<Member>,
}

struct Member {
    consumer: BaseConsumer<MemberContext>,
    open: Option<OpenTurn>,
}

struct OpenTurn {
    turn: Turn,
    change: Change,
    since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Assign,
    Revoke,
}

/// What a rebalance callback left behind.
struct Rebalance {
    change: Change,
    lanes: Vec<LaneId>,
    lost: bool,
}

impl Thread {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match &self.member {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => orders.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                }),
            };
            match order {
                Ok(Order::Join) => self.join(),
                Ok(Order::Answer(turn)) => self.answer(turn),
                Ok(Order::Leave { keep_seat }) => {
                    self.close(keep_seat);
                    self.tell(GroupEvent::Left);
                }
                Err(RecvTimeoutError::Timeout) => self.serve(),
                Err(RecvTimeoutError::Disconnected) => {
                    self.close(true);
                    return;
                }
            }
        }
    }

    fn tell(&self, event: GroupEvent) {
        // Nobody listens any more once the World is shut down.
        let _ = self.events.send(Event::Group(event));
    }

    fn join(&mut self) {
        if self.member.is_some() {
            return;
        }
        let ledger = self.settings.flow.ledger();
        let consumer = self.settings.group().create_with_context(MemberContext::default());
        let joined = consumer.and_then(|consumer: BaseConsumer<MemberContext>| {
            consumer.subscribe(&[ledger.as_str()])?;
            Ok(consumer)
        });
        match joined {
            Ok(consumer) => self.member = Some(Member { consumer, open: None }),
            Err(error) => self.tell(GroupEvent::Refused(Trouble::Refused(error.to_string()))),
        }
    }

    /// Lets librdkafka work for a moment, then reports what came of it.
    fn serve(&mut self) {
        let Some(member) = &mut self.member else { return };
        if let Some(Err(error)) = member.consumer.poll(POLL) {
            self.failed(&error);
            return;
        }
        if let Some(open) = &member.open
            && TURN_MAX < open.since.elapsed()
        {
            tracing::warn!(turn = open.turn.0, change = ?open.change, "the group waited too long for an answer");
            member.answer();
        }
        while let Some(rebalance) = self.member.as_ref().and_then(|member| member.consumer.context().next()) {
            self.rebalanced(rebalance);
        }
    }

    fn rebalanced(&mut self, rebalance: Rebalance) {
        let Some(member) = &mut self.member else { return };
        self.turns += 1;
        let turn = Turn(self.turns);
        let Rebalance { change, lanes, lost } = rebalance;
        tracing::info!(turn = turn.0, ?change, lost, ?lanes, "the group's turn");
        member.open = Some(OpenTurn { turn, change, since: Instant::now() });
        if lanes.is_empty() {
            // Nothing to decide. That the group spoke is still news.
            member.answer();
        }
        self.tell(match (change, lost) {
            (Change::Assign, _) => GroupEvent::Offered { turn, lanes },
            (Change::Revoke, false) => GroupEvent::Recalled { turn, lanes },
            (Change::Revoke, true) => GroupEvent::Lost { turn, lanes },
        });
    }

    fn answer(&mut self, turn: Turn) {
        match &mut self.member {
            Some(member) if member.open.as_ref().is_some_and(|open| open.turn == turn) => member.answer(),
            // Answered here already: empty, too late, or of a membership that is over.
            Some(_) | None => tracing::debug!(turn = turn.0, "an answer to a turn that is over"),
        }
    }

    /// librdkafka reports an error of the membership.
    fn failed(&mut self, error: &KafkaError) {
        let Some(member) = &self.member else { return };
        let event = match member.consumer.client().fatal_error() {
            Some((RDKafkaErrorCode::FencedInstanceId, text)) => {
                let instance = self.settings.instance.as_deref().unwrap_or_default();
                GroupEvent::Replaced(format!("another process runs as instance {instance:?}: {text}"))
            }
            Some((code, text)) => GroupEvent::Refused(Trouble::Refused(format!("{text} ({code:?})"))),
            None => match refusal(error, &self.settings) {
                Some(trouble) => GroupEvent::Refused(trouble),
                None => {
                    tracing::info!(%error, "the group's client reports an error");
                    return;
                }
            },
        };
        self.close(true);
        self.tell(event);
    }

    /// Closes the member on a thread that is waited for only so long: librdkafka has no bound of its own.
    fn close(&mut self, keep_seat: bool) {
        let Some(mut member) = self.member.take() else { return };
        member.consumer.context().closing.store(true, Ordering::Relaxed);
        member.answer();
        let leave_first = !keep_seat && self.settings.instance.is_some();
        let (done, closed) = channel();
        detach("group-close", move || {
            if leave_first {
                member.leave();
            }
            drop(member);
            let _ = done.send(());
        });
        if closed.recv_timeout(CLOSE_MAX).is_err() {
            tracing::warn!("leaving the group takes long; not waiting for it");
        }
    }
}

impl Member {
    /// Answers the open turn, if there is one. Empty, since nothing is assigned to the client: see above.
    fn answer(&mut self) {
        if let Some(open) = self.open.take() {
            answer(&self.consumer, open.change);
        }
    }

    /// Leaves the group although static: closing alone would not, unsubscribing does. The member id goes when
    /// the request to leave has been handed to the connection.
    fn leave(&self) {
        self.consumer.unsubscribe();
        let since = Instant::now();
        let is_member = || member_id(self.consumer.client().native_client()).is_some_and(|id| !id.is_empty());
        while is_member() && since.elapsed() < LEAVE_MAX {
            self.consumer.poll(POLL);
        }
        // Sent, but closing right away could overtake it.
        self.consumer.poll(POLL);
    }
}

fn answer(consumer: &BaseConsumer<MemberContext>, change: Change) {
    let nothing = TopicPartitionList::new();
    let answered = match change {
        Change::Assign => consumer.assign(&nothing),
        Change::Revoke => consumer.unassign(),
    };
    if let Err(error) = answered {
        tracing::warn!(?change, %error, "librdkafka does not take the answer to a turn");
    }
}

/// Why the group will never have this member; `None` for errors that pass.
fn refusal(error: &KafkaError, settings: &Settings) -> Option<Trouble> {
    let code = error.rdkafka_error_code()?;
    let error = ApiError::new(code, "joining the group");
    let (group, ledger) = (settings.flow.group(), settings.flow.ledger());
    let trouble = match code {
        RDKafkaErrorCode::TopicAuthorizationFailed => error.trouble(&Asked::new("Describe", ledger.as_str())),
        _ => error.trouble(&Asked::new("Read", &group)),
    };
    match trouble {
        Trouble::NotAuthorized { .. } | Trouble::Refused(_) => Some(trouble),
        // Reported by the client that asks the questions to this cluster, and worth another try.
        Trouble::Unreachable(_) | Trouble::Authentication(_) | Trouble::Passing(_) => None,
    }
}

/// Collects what librdkafka's callback says, for the thread that polls to act on.
#[derive(Default)]
struct MemberContext {
    rebalances: Mutex<VecDeque<Rebalance>>,
    /// Closing has begun: whatever is still revoked is answered at once, or closing would never end.
    closing: AtomicBool,
}

impl MemberContext {
    fn next(&self) -> Option<Rebalance> {
        self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl ClientContext for MemberContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log(Side::Target, level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // Returned by poll too, where it is acted on.
        tracing::debug!(%error, reason, "the group's client reports an error");
    }
}

impl ConsumerContext for MemberContext {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let change = match what {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Change::Assign,
            _ => Change::Revoke,
        };
        if self.closing.load(Ordering::Relaxed) {
            answer(consumer, change);
            return;
        }
        // Valid only within this callback.
        let lost = consumer.assignment_lost();
        let lanes =
            partitions.elements().into_iter().filter_map(|place| u32::try_from(place.partition()).ok());
        let rebalance = Rebalance { change, lanes: lanes.map(LaneId).collect(), lost };
        self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).push_back(rebalance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_core::config::FlowName;

    fn refused(code: RDKafkaErrorCode) -> Option<Trouble> {
        let settings = Settings {
            source: Default::default(),
            target: Default::default(),
            flow: FlowName::new("x").unwrap(),
            lanes: 8,
            instance: None,
            memory_bytes: 0,
        };
        refusal(&KafkaError::MessageConsumption(code), &settings)
    }

    #[test]
    fn only_what_will_not_pass_is_a_refusal() {
        let denied = |resource: &str, operation: &str| {
            Some(Trouble::NotAuthorized { resource: resource.into(), operation: operation.into() })
        };
        assert_eq!(refused(RDKafkaErrorCode::GroupAuthorizationFailed), denied("Group verbatim-x", "Read"));
        assert_eq!(
            refused(RDKafkaErrorCode::TopicAuthorizationFailed),
            denied("Topic verbatim.x.ledger.internal", "Describe")
        );
        assert!(matches!(refused(RDKafkaErrorCode::InvalidSessionTimeout), Some(Trouble::Refused(_))));
        for code in [
            RDKafkaErrorCode::UnknownTopicOrPartition,
            RDKafkaErrorCode::BrokerTransportFailure,
            RDKafkaErrorCode::CoordinatorNotAvailable,
            RDKafkaErrorCode::Authentication,
        ] {
            assert_eq!(refused(code), None, "{code:?}");
        }
    }

    #[test]
    fn a_turn_is_answered_well_before_the_group_stops_waiting() {
        assert!(TURN_MAX < Duration::from_millis(u64::from(REBALANCE_MS)));
    }
}
