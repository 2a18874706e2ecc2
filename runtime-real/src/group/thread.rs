//! The membership's thread: orders in, what the group says out.

use super::Order;
use super::member::{Change, Member, Rebalance};
use super::refusal::refusal;
use crate::client_config::{self, REBALANCE_MS};
use crate::ffi::Code;
use crate::settings::Settings;
use crate::threads::Alarm;
use rdkafka::error::KafkaError;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::event::{Event, GroupEvent, Turn};
use verbatim_core::failure::Trouble;

/// How long a turn may stay open.
const TURN_MAX: Duration = Duration::from_millis(REBALANCE_MS as u64 * 2 / 3);

/// How long closing is waited for before the member counts as gone.
const CLOSE_MAX: Duration = Duration::from_secs(5);

pub(super) struct Thread {
    settings: Arc<Settings>,
    events: UnboundedSender<Event>,
    alarm: Alarm,
    turns: u64,
    member: Option<Member>,
}

impl Thread {
    pub(super) fn new(settings: Arc<Settings>, events: UnboundedSender<Event>, alarm: Alarm) -> Thread {
        Thread { settings, events, alarm, turns: 0, member: None }
    }

    /// Until nobody can give orders any more.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
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
        match Member::join(&client_config::group(&self.settings), &ledger) {
            Ok(member) => self.member = Some(member),
            Err(error) => self.tell(GroupEvent::Refused(Trouble::Refused(error.to_string()))),
        }
    }

    /// Lets librdkafka work for a moment, then reports what came of it.
    fn serve(&mut self) {
        let Some(member) = &mut self.member else { return };
        if let Err(error) = member.poll() {
            self.failed(&error);
            return;
        }
        if let Some((turn, change)) = member.open_for(TURN_MAX) {
            tracing::warn!(turn = turn.0, ?change, "the group waited too long for an answer");
            member.answer();
        }
        while let Some(rebalance) = self.member.as_ref().and_then(Member::rebalance) {
            self.rebalanced(rebalance);
        }
    }

    fn rebalanced(&mut self, rebalance: Rebalance) {
        let Some(member) = &mut self.member else { return };
        self.turns += 1;
        let turn = Turn(self.turns);
        let Rebalance { change, lanes, lost } = rebalance;
        tracing::info!(turn = turn.0, ?change, lost, ?lanes, "the group's turn");
        member.begin(turn, change);
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
            Some(member) if member.is_open(turn) => member.answer(),
            // Answered here already: empty, too late, or of a membership that is over.
            Some(_) | None => tracing::debug!(turn = turn.0, "an answer to a turn that is over"),
        }
    }

    /// librdkafka reports an error of the membership.
    fn failed(&mut self, error: &KafkaError) {
        let Some(member) = &self.member else { return };
        let event = match member.fatal_error() {
            Some(fatal) if fatal.code == Code::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID => {
                let instance = self.settings.instance.as_deref().unwrap_or_default();
                GroupEvent::Replaced(format!("another process runs as instance {instance:?}: {}", fatal.text))
            }
            Some(fatal) => GroupEvent::Refused(Trouble::Refused(fatal.to_string())),
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
        member.prepare_to_close();
        let leave_first = !keep_seat && self.settings.instance.is_some();
        let (done, closed) = channel();
        self.alarm.start("group-close", move || {
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

/// Also if the thread breaks: a member that is dropped as it is waits for answers that nobody gives.
impl Drop for Thread {
    fn drop(&mut self) {
        self.close(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_answered_well_before_the_group_stops_waiting() {
        assert!(TURN_MAX < Duration::from_millis(u64::from(REBALANCE_MS)));
    }
}
