use super::{ConnectionId, Sender};
use kafka_model::{BrokerId, Millis, Request, RequestHeader, RequestToken};
use std::collections::{BTreeSet, VecDeque};
use verbatim_core::failure::Side;

/// One stream of requests to one broker, and of answers back.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) side: Side,
    pub(super) broker: BrokerId,
    pub(super) sender: Sender,
    /// Sent and not answered, as the client sees it.
    pub(super) outstanding: BTreeSet<RequestToken>,
    /// When the last request arrives, and the last answer: nothing that is sent later arrives earlier.
    pub(super) last_arrival: Millis,
    pub(super) last_answer: Millis,
    pub(super) loses_requests: bool,
    pub(super) loses_answers: bool,
    /// Of a broken connection: how many of the requests under way still arrive.
    pub(super) arrivals_left: Option<u32>,
    /// What is under way is held up until then.
    pub(super) held_until: Millis,
    /// Requests that have yet to arrive.
    pub(super) under_way: u32,
    pub(super) is_closed: bool,
    pub(super) at_broker: AtBroker,
}

/// A broker takes up one request of a connection at a time, and reads no further until it is answered.
#[derive(Clone, Debug, Default)]
pub(super) struct AtBroker {
    pub(super) busy: Option<RequestToken>,
    pub(super) is_muted: bool,
    pub(super) waiting: VecDeque<(RequestHeader, Request)>,
}

impl AtBroker {
    pub(super) fn take_up(&mut self) -> Option<(RequestHeader, Request)> {
        if self.busy.is_some() || self.is_muted {
            return None;
        }
        let (header, request) = self.waiting.pop_front()?;
        self.busy = Some(header.token);
        Some((header, request))
    }
}

impl Connection {
    pub(super) fn new(sender: Sender, side: Side, broker: BrokerId) -> Connection {
        Connection {
            side,
            broker,
            sender,
            outstanding: BTreeSet::new(),
            last_arrival: 0,
            last_answer: 0,
            loses_requests: false,
            loses_answers: false,
            arrivals_left: None,
            held_until: 0,
            under_way: 0,
            is_closed: false,
            at_broker: AtBroker::default(),
        }
    }

    /// Whether nothing of it is left anywhere.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed
            && self.under_way == 0
            && self.at_broker.busy.is_none()
            && self.at_broker.waiting.is_empty()
    }
}

/// Something that the network brings about at a moment.
#[derive(Clone, Debug)]
pub(super) enum Transit {
    Arrives(ConnectionId, RequestHeader, Box<Request>),
    Answered(ConnectionId, RequestToken, kafka_model::Response),
    /// The client learns that the connection is gone.
    Broken(ConnectionId),
    /// A throttled connection is read again.
    Unmuted(ConnectionId),
}
