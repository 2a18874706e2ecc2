//! Who still reaches whom: brokers that a machine is cut off from, and requests that outlive their client.

use super::connection::{Connection, Transit};
use super::{ConnectionId, Network, Sender};
use crate::counters::{Counters, Fault};
use kafka_model::{BrokerId, Millis, Response};
use std::collections::BTreeSet;
use verbatim_core::failure::Side;

/// What is lost between a machine and a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    Both,
    /// What the machine sends arrives, and is done.
    Answers,
}

/// Brokers, or all of a cluster where none is named.
pub(crate) type Unreachable = BTreeSet<(Side, Option<BrokerId>, Cut)>;

impl Network {
    /// From now on the sender reaches all brokers but these.
    pub fn cut_off(&mut self, sender: Sender, unreachable: Unreachable) {
        if unreachable.is_empty() {
            self.unreachable.remove(&sender);
        } else {
            self.unreachable.insert(sender, unreachable);
        }
    }

    pub(super) fn loses_requests(&self, sender: Sender, side: Side, broker: BrokerId) -> bool {
        self.is_cut(sender, side, broker, Cut::Both)
    }

    pub(super) fn loses_answers(&self, sender: Sender, side: Side, broker: BrokerId) -> bool {
        [Cut::Both, Cut::Answers].into_iter().any(|cut| self.is_cut(sender, side, broker, cut))
    }

    fn is_cut(&self, sender: Sender, side: Side, broker: BrokerId, cut: Cut) -> bool {
        let contains =
            |broker| self.unreachable.get(&sender).is_some_and(|it| it.contains(&(side, broker, cut)));
        contains(None) || contains(Some(broker))
    }

    pub(super) fn trouble(&mut self, now: Millis, sender: Sender, side: Side) {
        self.troubled.insert((sender, side), now);
    }

    /// When the sender last had no sound answer of a cluster.
    pub fn troubled_at(&self, sender: Sender, side: Side) -> Option<Millis> {
        self.troubled.get(&(sender, side)).copied()
    }

    pub(super) fn note_acknowledgement(
        &mut self,
        side: Side,
        sender: Sender,
        broker: BrokerId,
        response: &Response,
    ) {
        if let Response::Produce(answer) = response
            && (side, sender != Sender::Workload) == (Side::Target, true)
            && answer.partitions.iter().all(|partition| !partition.error_code.is_error())
        {
            self.last_acknowledging = Some(broker);
        }
    }

    /// The sender dies: what it has under way may arrive late.
    pub fn outlive(&mut self, now: Millis, sender: Sender, counters: &mut Counters) {
        let of_it = |(_, it): &(&ConnectionId, &Connection)| it.sender == sender;
        let ids: Vec<ConnectionId> = self.connections.iter().filter(of_it).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.outlive_on(now, id, counters));
    }

    /// The same of one connection, whose client gives up.
    pub fn outlive_on(&mut self, now: Millis, id: ConnectionId, counters: &mut Counters) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let is_under_way = 0 < connection.under_way && connection.arrivals_left != Some(0);
        if is_under_way && self.random.happens(self.faults.outlives_sender) {
            counters.fault(Fault::Outlived);
            let until = now + self.random.between(0, self.faults.slow_max_ms);
            connection.held_until = connection.held_until.max(until);
        }
    }

    /// Clients learn of every connection that lost something without a word, as they do when packets flow again.
    pub fn tell_of_losses(&mut self, now: Millis) {
        let lost = |(_, it): &(&ConnectionId, &Connection)| it.loses_answers && !it.is_closed;
        let ids: Vec<ConnectionId> = self.connections.iter().filter(lost).map(|(id, _)| *id).collect();
        for id in ids {
            let at = now + self.random.between(0, 1_000);
            self.schedule.at(at, Transit::Broken(id));
        }
    }

    /// The client hangs up. What it sent is under way all the same.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_closed = true;
            connection.outstanding.clear();
            self.forget_if_over(id);
        }
    }

    /// The client's process is gone.
    pub fn close_all_of(&mut self, sender: Sender) {
        let ids: Vec<_> =
            self.connections.iter().filter(|(_, it)| it.sender == sender).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.close(id));
        self.unreachable.remove(&sender);
    }

    /// For a simulator's mutant: what the sender has under way never arrives.
    pub fn cancel_all_of(&mut self, sender: Sender) {
        for connection in self.connections.values_mut().filter(|it| it.sender == sender) {
            connection.arrivals_left = Some(0);
            connection.at_broker.waiting.clear();
        }
    }
}
