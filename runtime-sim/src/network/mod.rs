//! What is under way between clients and brokers.
//!
//! Once sent, a request belongs to the network and to the broker: a client that dies or gives up cancels
//! nothing. So a request may be applied and never acknowledged, and one of a dead client may arrive late.

mod blank;
mod connection;
mod errors;
mod faults;
mod reach;
mod refusal;
mod schedule;
mod trouble;

pub use faults::NetworkFaults;

use crate::counters::{Counters, Fault};
use crate::random::{Random, Rate};
use crate::trace::Trace;
use connection::{Connection, Transit};
use kafka_model::{
    BrokerId, Millis, Outcome, Reply, Request, RequestHeader, RequestToken, Response, TransactionalId,
};
pub use reach::Cut;
pub(crate) use reach::Unreachable;
use schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use trouble::Trouble;
use verbatim_core::failure::Side;

/// Chosen by the client; each names one connection for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// One start of an instance; the next start is somebody else.
    Instance(u32),
    Workload,
}

/// A request on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub sender: Sender,
    pub connection: ConnectionId,
    pub side: Side,
    pub header: RequestHeader,
    pub request: Request,
}

/// The end of a request, as its client sees it.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub sender: Sender,
    pub token: RequestToken,
    pub outcome: Outcome,
}

/// What the network hands on.
#[derive(Debug)]
pub enum Delivery {
    ToBroker(Side, RequestHeader, Request),
    ToClient(Incoming),
}

/// Where the run is recorded.
pub struct Books<'a> {
    pub trace: &'a mut Trace,
    pub counters: &'a mut Counters,
}

pub struct Network {
    pub faults: NetworkFaults,
    random: Random,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Requests at a broker, by the connection that they came on.
    at_brokers: BTreeMap<RequestToken, ConnectionId>,
    /// Answers that a fault will spoil when the broker gives them.
    to_spoil: BTreeMap<RequestToken, kafka_types::ErrorCode>,
    /// Answers that a fault will lose.
    to_lose: BTreeSet<RequestToken>,
    /// Whose transactions requests at a broker end.
    ending: BTreeMap<RequestToken, TransactionalId>,
    /// Those whose last EndTxn was done and not answered: the next one is often refused.
    unanswered: BTreeSet<TransactionalId>,
    schedule: Schedule,
    /// Brokers that a sender does not reach.
    unreachable: BTreeMap<Sender, Unreachable>,
    /// When a sender last had no sound answer of a cluster: late, lost, spoilt, an error, or none.
    troubled: BTreeMap<(Sender, Side), Millis>,
    /// The target broker that last told a mirror's producer that its records are stored.
    pub last_acknowledging: Option<BrokerId>,
}

impl Network {
    pub fn new(faults: NetworkFaults, random: Random) -> Network {
        Network {
            faults,
            random,
            connections: BTreeMap::new(),
            at_brokers: BTreeMap::new(),
            to_spoil: BTreeMap::new(),
            to_lose: BTreeSet::new(),
            ending: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            schedule: Schedule::default(),
            unreachable: BTreeMap::new(),
            troubled: BTreeMap::new(),
            last_acknowledging: None,
        }
    }

    pub fn next_at(&self) -> Option<Millis> {
        self.schedule.next_at()
    }

    fn delay(
        &mut self,
        now: Millis,
        (sender, side): (Sender, Side),
        token: RequestToken,
        books: &mut Books,
    ) -> Millis {
        if self.strikes(sender) && self.random.happens(self.faults.slow) {
            self.trouble(now, sender, side);
            let delay = self.random.between(self.faults.delay_max_ms, self.faults.slow_max_ms);
            books.counters.fault(Fault::Slow);
            books.trace.note(now, "slow", &sender, &(token, delay));
            return delay;
        }
        self.random.between(self.faults.delay_min_ms, self.faults.delay_max_ms)
    }

    fn strikes(&self, sender: Sender) -> bool {
        match sender {
            Sender::Instance(_) => true,
            Sender::Workload => self.faults.strikes_workload,
        }
    }

    pub fn send(&mut self, now: Millis, outgoing: Outgoing, books: &mut Books) {
        let Outgoing { sender, connection: id, side, header, request } = outgoing;
        books.trace.note(now, "request", &(sender, side, header.broker), &(header.token, &request));
        books.counters.requests += 1;
        let strikes = self.strikes(sender);
        let delay = self.delay(now, (sender, side), header.token, books);
        let lost = |network: &mut Network, rate: Rate| strikes && network.random.happens(rate);
        let is_cut = self.loses_requests(sender, side, header.broker);
        let is_lost = lost(self, self.faults.request_lost) || is_cut;
        let breaks = lost(self, self.faults.disconnect)
            || matches!(request, Request::EndTxn(_)) && lost(self, self.faults.disconnect_end_txn);
        let is_silent = self.random.happens(self.faults.silent);
        if is_lost || breaks {
            self.trouble(now, sender, side);
        }
        let connection =
            self.connections.entry(id).or_insert_with(|| Connection::new(sender, side, header.broker));
        if connection.is_closed {
            // Its end is on its way to the client already.
            connection.outstanding.insert(header.token);
            self.schedule.at(now, Transit::Broken(id));
            return;
        }
        connection.outstanding.insert(header.token);
        connection.last_arrival = connection.last_arrival.max(now + delay);
        let at = connection.last_arrival;
        if is_lost {
            books.counters.fault(if is_cut { Fault::CutOff } else { Fault::RequestLost });
            books.trace.note(now, "lost", &(sender, side, header.broker), &header.token);
            connection.loses_requests = true;
            connection.loses_answers = true;
        }
        // A packet that goes nowhere is told by nobody.
        let tells = is_lost && !is_silent && !is_cut;
        if !connection.loses_requests {
            connection.under_way += 1;
            self.schedule.at(at, Transit::Arrives(id, header, Box::new(request)));
        }
        if breaks {
            books.counters.fault(Fault::Disconnected);
            self.break_off(now, id, books);
        }
        if (breaks && !self.random.happens(self.faults.breaks_silently)) || tells {
            let learns_after = self.random.between(0, 1_000);
            self.schedule.at(now + learns_after, Transit::Broken(id));
        }
    }

    /// Some of the first requests under way still arrive, perhaps much later: they are in some buffer, or the
    /// broker has yet to take them up. No answer comes back.
    fn break_off(&mut self, now: Millis, id: ConnectionId, books: &mut Books) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        // None, all, or any number between.
        let arrivals = self.random.below(u64::from(connection.under_way) + 2);
        connection.arrivals_left = Some((arrivals as u32).min(connection.under_way));
        connection.loses_answers = true;
        connection.loses_requests = true;
        if self.random.below(2) == 0 {
            connection.held_until = now + self.random.between(0, self.faults.slow_max_ms);
        }
        let still = (id, connection.arrivals_left, connection.held_until);
        books.trace.note(now, "broken", &(connection.sender, connection.side), &still);
    }

    fn forget_if_over(&mut self, id: ConnectionId) {
        if self.connections.get(&id).is_some_and(Connection::is_over) {
            self.connections.remove(&id);
        }
    }

    /// The next thing that is due by `now`, if it concerns anybody.
    pub fn deliver(&mut self, now: Millis, books: &mut Books) -> Option<Delivery> {
        while let Some(transit) = self.schedule.pop(now) {
            let delivery = match transit {
                Transit::Arrives(id, header, request) => self.arrives(now, id, header, *request, books),
                Transit::Answered(id, token, response) => self.answered(now, id, token, response, books),
                Transit::Broken(id) => self.broken(now, id, books),
                Transit::Unmuted(id) => {
                    if let Some(connection) = self.connections.get_mut(&id) {
                        connection.at_broker.is_muted = false;
                    }
                    books.trace.note(now, "unmuted", &"network", &id);
                    self.take_up(now, id, books)
                }
            };
            if delivery.is_some() {
                return delivery;
            }
        }
        None
    }

    fn arrives(
        &mut self,
        now: Millis,
        id: ConnectionId,
        header: RequestHeader,
        request: Request,
        books: &mut Books,
    ) -> Option<Delivery> {
        let connection = self.connections.get_mut(&id)?;
        if now < connection.held_until {
            let at = connection.held_until;
            self.schedule.at(at, Transit::Arrives(id, header, Box::new(request)));
            return None;
        }
        connection.under_way -= 1;
        if let Some(left) = &mut connection.arrivals_left {
            if *left == 0 {
                self.forget_if_over(id);
                return None;
            }
            *left -= 1;
        }
        connection.at_broker.waiting.push_back((header, request));
        self.take_up(now, id, books)
    }

    /// The broker reads the next request, unless it is busy with one of the same connection.
    fn take_up(&mut self, now: Millis, id: ConnectionId, books: &mut Books) -> Option<Delivery> {
        let connection = self.connections.get_mut(&id)?;
        let (side, sender) = (connection.side, connection.sender);
        let Some((header, request)) = connection.at_broker.take_up() else {
            self.forget_if_over(id);
            return None;
        };
        if is_without_answer(&request) {
            connection.at_broker.busy = None;
        }
        self.at_brokers.insert(header.token, id);
        if self.strikes(sender) {
            let (before, after) = errors::of(&request);
            let trouble = self.trouble_with(&request, header.token);
            let refuses = self.random.happens(self.faults.refused);
            let worst = match trouble {
                Some(Trouble::Refused) => Some(errors::worst_of(&request)),
                Some(Trouble::Forgotten) => Some(errors::FORGOTTEN),
                Some(Trouble::RefusedAfterApply | Trouble::Unanswered) | None => None,
            };
            if (refuses || worst.is_some())
                && let Some(&code) = self.random.pick(worst.unwrap_or(before))
            {
                self.trouble(now, sender, side);
                books.counters.fault(Fault::Refused);
                books.trace.note(now, "refuses", &(side, header.broker), &(header.token, code));
                let response = refusal::refuse(&request, code);
                let reply = Reply {
                    token: header.token,
                    broker: header.broker,
                    throttle_time_ms: 0,
                    outcome: Outcome::Response(response),
                };
                return self.reply(now, reply, books);
            }
            let refuses_after = self.random.happens(self.faults.refused_after_apply);
            if trouble == Some(Trouble::Unanswered) {
                self.to_lose.insert(header.token);
            }
            if (refuses_after || trouble == Some(Trouble::RefusedAfterApply))
                && let Some(&code) = self.random.pick(after)
            {
                books.counters.fault(Fault::RefusedAfterApply);
                books.trace.note(now, "will spoil", &(side, header.broker), &(header.token, code));
                self.to_spoil.insert(header.token, code);
            }
        }
        books.trace.note(now, "arrives", &(side, header.broker), &header.token);
        Some(Delivery::ToBroker(side, header, request))
    }

    /// Takes a broker's answer; what the broker reads next on the same connection is handed on.
    pub fn reply(&mut self, now: Millis, reply: Reply, books: &mut Books) -> Option<Delivery> {
        let Reply { token, broker, throttle_time_ms, outcome } = reply;
        let id = self.at_brokers.remove(&token)?;
        let spoiled = self.to_spoil.remove(&token);
        let connection = self.connections.get_mut(&id)?;
        let (side, sender) = (connection.side, connection.sender);
        connection.at_broker.busy = None;
        let mut response = match outcome {
            Outcome::Response(response) => response,
            Outcome::ConnectionClosed => {
                books.trace.note(now, "hangs up", &(side, broker), &token);
                connection.at_broker.waiting.clear();
                connection.arrivals_left = Some(0);
                connection.loses_answers = true;
                let at = now + self.random.between(0, self.faults.delay_max_ms);
                self.schedule.at(at, Transit::Broken(id));
                return None;
            }
        };
        if let Some(code) = spoiled {
            refusal::spoil(&mut response, code);
        }
        let mut is_sound = throttle_time_ms == 0;
        refusal::codes(&response, |code| {
            is_sound = false;
            books.counters.error(side, code);
        });
        books.counters.rebalances += u64::from(begins_generation(&response));
        books.trace.note(now, "answers", &(side, broker), &(token, &response));
        let strikes = self.strikes(sender);
        let delay = self.delay(now, (sender, side), token, books);
        let is_cut = self.loses_answers(sender, side, broker);
        if !is_sound || is_cut {
            self.trouble(now, sender, side);
        }
        self.note_acknowledgement(side, sender, broker, &response);
        let is_lost = strikes && self.random.happens(self.faults.response_lost)
            || self.to_lose.remove(&token)
            || is_cut;
        let ending = self.ending.remove(&token);
        let is_silent = self.random.happens(self.faults.silent);
        let connection = self.connections.get_mut(&id)?;
        if is_lost || connection.loses_answers {
            self.unanswered.extend(ending);
            self.troubled.insert((sender, side), now);
        }
        if is_lost && !connection.loses_answers {
            books.counters.fault(Fault::ResponseLost);
            books.trace.note(now, "lost", &(side, broker, sender), &token);
            connection.loses_answers = true;
            if !is_silent && !is_cut {
                let at = now + self.random.between(0, 1_000);
                self.schedule.at(at, Transit::Broken(id));
            }
        } else if !connection.loses_answers && !connection.is_closed {
            connection.last_answer = connection.last_answer.max(now + delay);
            let at = connection.last_answer;
            self.schedule.at(at, Transit::Answered(id, token, response));
        }
        if 0 < throttle_time_ms {
            books.counters.fault(Fault::Throttled);
            books.trace.note(now, "mutes", &(side, broker), &(id, throttle_time_ms));
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.at_broker.is_muted = true;
            }
            self.schedule.at(now + throttle_time_ms, Transit::Unmuted(id));
        }
        self.take_up(now, id, books)
    }

    fn answered(
        &mut self,
        now: Millis,
        id: ConnectionId,
        token: RequestToken,
        response: Response,
        books: &mut Books,
    ) -> Option<Delivery> {
        let connection = self.connections.get_mut(&id)?;
        if connection.loses_answers || connection.is_closed || !connection.outstanding.remove(&token) {
            return None;
        }
        books.trace.note(now, "response", &connection.sender, &token);
        let outcome = Outcome::Response(response);
        Some(Delivery::ToClient(Incoming { sender: connection.sender, token, outcome }))
    }

    /// One request after the other ends without an answer.
    fn broken(&mut self, now: Millis, id: ConnectionId, books: &mut Books) -> Option<Delivery> {
        let connection = self.connections.get_mut(&id)?;
        let sender = connection.sender;
        self.troubled.insert((sender, connection.side), now);
        connection.is_closed = true;
        connection.loses_answers = true;
        let Some(token) = connection.outstanding.pop_first() else {
            self.forget_if_over(id);
            return None;
        };
        if !connection.outstanding.is_empty() {
            self.schedule.at(now, Transit::Broken(id));
        }
        self.forget_if_over(id);
        books.trace.note(now, "no answer", &sender, &token);
        Some(Delivery::ToClient(Incoming { sender, token, outcome: Outcome::ConnectionClosed }))
    }

    /// A broker's living connections break with it.
    pub fn broker_died(&mut self, now: Millis, side: Side, broker: BrokerId) {
        let of_it = |it: &Connection| it.side == side && it.broker == broker && !it.is_closed;
        let ids: Vec<_> = self.connections.iter().filter(|(_, it)| of_it(it)).map(|(id, _)| *id).collect();
        for id in ids {
            self.schedule.at(now, Transit::Broken(id));
        }
    }
}

/// A produce that asks for no acknowledgement is not answered.
fn is_without_answer(request: &Request) -> bool {
    matches!(request, Request::Produce(produce) if produce.acks == 0)
}

/// Of each generation of a group the leader is told once, whatever becomes of the answer.
fn begins_generation(response: &Response) -> bool {
    matches!(response, Response::JoinGroup(joined)
        if !joined.error_code.is_error() && joined.leader == joined.member_id && !joined.skip_assignment)
}
