//! This instance's membership in the flow's group on the target, on a thread of its own.
//!
//! The group shares out the ledger's partitions, which stand for lanes. Nothing is ever consumed, and no
//! partition is ever assigned to the client: the group's protocol (which partitions this member owns, what it
//! says when it joins again) is kept by librdkafka apart from what the client fetches, so a turn is answered
//! with an empty list. That fetches nothing, looks up no offsets, and needs no READ on the ledger.
//!
//! Lanes are shared out eagerly, all at once (docs/adr/0004): every lane always has an owner, whoever is killed when.
//!
//! **Turns.** When the group assigns or revokes, librdkafka calls [`member::Context::rebalance`] and then waits,
//! heartbeating, until `assign` or `unassign` is called: from any thread at any time,
//! not only from the callback. So the callback only notes what happened, and the call is made when the
//! Mirror has submitted Accept or Release. There is one open turn at a time: librdkafka begins no other
//! before. The client is polled all the while, so `max.poll.interval.ms` never runs out; but the *group*
//! waits that long for a member that does not join a rebalance, and a member with an open turn does not
//! join. Hence [`thread::TURN_MAX`]: a turn open for longer is answered here. Nothing unsafe can come of it, since
//! safety rests on fencing and not on the group.
//!
//! **Static membership** (`group.instance.id`). A member that ends without leaving keeps its seat for
//! `session.timeout.ms` (8 s), and a process that comes back under the same id within that time is given the
//! same lanes at once, without a rebalance; later, the lanes have gone to others. So a static member does
//! *not* leave when it was told to stop, for it may be about to be restarted, and no seat is kept longer than
//! a crashed one's. It does leave, at once, when the mirror gives its lanes up of its own accord (it cannot
//! make them progress, S6): another instance must have them. A member without an id always leaves.

mod member;
mod refusal;
mod thread;

use crate::settings::Settings;
use crate::threads::Alarm;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use thread::Thread;
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::event::{Event, Turn};

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
    pub(crate) fn start(settings: &Arc<Settings>, events: &UnboundedSender<Event>, alarm: &Alarm) -> Group {
        let (orders, received) = channel();
        let thread = Thread::new(Arc::clone(settings), events.clone(), alarm.clone());
        let (end, ended) = channel();
        alarm.start("group", move || {
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
