//! What a process has sent and what it awaits: the sockets under all of its clients.
//!
//! A client that sends gets a [`Pending`] and asks for its end whenever it is looked at again. A request that is
//! not answered in time costs its connection, and with it all else that was sent there, as in librdkafka.

use super::marks::Mark;
use crate::network::ConnectionId;
use crate::random::Random;
use kafka_model::{BrokerId, ClientId, Millis, Outcome, Request, RequestHeader, RequestToken, Response};
use std::collections::{BTreeMap, BTreeSet};
use verbatim_core::failure::Side;

/// Between two attempts to connect: `reconnect.backoff.ms` and `reconnect.backoff.max.ms` as the mirror sets them.
const RECONNECT_MIN_MS: Millis = 100;
const RECONNECT_MAX_MS: Millis = 1_000;

/// A part of the process that is looked at by itself: a lane, or all the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner(u32);

impl Owner {
    pub(super) const REST: Owner = Owner(0);

    pub(super) fn lane(lane: verbatim_core::LaneId) -> Owner {
        Owner(lane.0 + 1)
    }
}

/// One client of a process, with connections of its own (an `rd_kafka_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LibraryId(u32);

/// A request that was sent, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pending(RequestToken);

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    TimedOut,
    /// Likewise, and it never left the process.
    NeverSent,
    Disconnected,
}

pub(super) type Answer = Result<Response, Lost>;

/// What a process does to the world outside.
#[derive(Clone, Debug)]
pub enum Effect {
    Send { connection: ConnectionId, side: Side, header: RequestHeader, request: Request },
    Close(ConnectionId),
    Mark(Mark),
}

struct Awaited {
    library: LibraryId,
    broker: BrokerId,
    /// None while it waits for the connection.
    connection: Option<ConnectionId>,
    deadline: Millis,
    /// Nobody asks for its end any more.
    is_unwanted: bool,
}

struct Held {
    token: RequestToken,
    client_id: ClientId,
    side: Side,
    api_version: i16,
    request: Request,
}

#[derive(Default)]
struct Link {
    connection: Option<ConnectionId>,
    may_connect_at: Millis,
    /// Requests until then.
    held: Vec<Held>,
}

pub(super) struct Wire {
    /// The high half of every name given here, so that no two processes ever share one.
    start: u32,
    last_token: u32,
    last_connection: u32,
    last_library: u32,
    /// Who is looked at now: clients made meanwhile are its own.
    owner: Owner,
    owners: BTreeMap<LibraryId, Owner>,
    /// For whom something has arrived since they were last looked at.
    woken: BTreeSet<Owner>,
    links: BTreeMap<(LibraryId, BrokerId), Link>,
    awaited: BTreeMap<RequestToken, Awaited>,
    deadlines: BTreeSet<(Millis, RequestToken)>,
    answers: BTreeMap<RequestToken, Answer>,
    /// An answer was taken since it was last asked about.
    was_taken: bool,
    effects: Vec<Effect>,
}

impl Wire {
    pub(super) fn new(start: u32) -> Wire {
        Wire {
            start,
            last_token: 0,
            last_connection: 0,
            last_library: 0,
            owner: Owner::REST,
            owners: BTreeMap::new(),
            woken: BTreeSet::new(),
            links: BTreeMap::new(),
            awaited: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            answers: BTreeMap::new(),
            was_taken: false,
            effects: Vec::new(),
        }
    }

    pub(super) fn new_library(&mut self) -> LibraryId {
        self.last_library += 1;
        let library = LibraryId(self.last_library);
        self.owners.insert(library, self.owner);
        library
    }

    /// From now on `owner` is looked at. Whether anything has arrived for it since it last was.
    pub(super) fn look_at(&mut self, owner: Owner) -> bool {
        self.owner = owner;
        self.woken.remove(&owner)
    }

    fn name(&self, number: u32) -> u64 {
        (u64::from(self.start) << 32) | u64::from(number)
    }

    #[expect(clippy::too_many_arguments, reason = "they are what a request is sent with")]
    pub(super) fn send(
        &mut self,
        now: Millis,
        library: LibraryId,
        (side, broker): (Side, BrokerId),
        client_id: &ClientId,
        api_version: i16,
        request: Request,
        patience_ms: Millis,
    ) -> Pending {
        self.last_token += 1;
        let token = RequestToken(self.name(self.last_token));
        let deadline = now + patience_ms;
        self.awaited
            .insert(token, Awaited { library, broker, connection: None, deadline, is_unwanted: false });
        self.deadlines.insert((deadline, token));
        let held = Held { token, client_id: client_id.clone(), side, api_version, request };
        let link = self.links.entry((library, broker)).or_default();
        link.held.push(held);
        if link.may_connect_at <= now {
            self.flush((library, broker));
        }
        Pending(token)
    }

    fn flush(&mut self, place: (LibraryId, BrokerId)) {
        let Some(link) = self.links.get_mut(&place) else { return };
        if link.held.is_empty() {
            return;
        }
        let connection = *link.connection.get_or_insert_with(|| {
            self.last_connection += 1;
            ConnectionId((u64::from(self.start) << 32) | u64::from(self.last_connection))
        });
        for Held { token, client_id, side, api_version, request } in link.held.drain(..) {
            if let Some(awaited) = self.awaited.get_mut(&token) {
                awaited.connection = Some(connection);
            }
            let header = RequestHeader { broker: place.1, token, client_id, api_version };
            self.effects.push(Effect::Send { connection, side, header, request });
        }
    }

    /// The end of a request, once: its answer, or that there will be none.
    pub(super) fn take(&mut self, pending: Pending) -> Option<Answer> {
        if self.answers.is_empty() {
            return None;
        }
        let answer = self.answers.remove(&pending.0)?;
        self.was_taken = true;
        Some(answer)
    }

    /// Nobody waits for this answer any more.
    pub(super) fn forget(&mut self, pending: Pending) {
        self.answers.remove(&pending.0);
        // A request on the way is still timed, for the sake of its connection.
        if let Some(awaited) = self.awaited.get_mut(&pending.0) {
            awaited.is_unwanted = true;
        }
    }

    fn ended(&mut self, token: RequestToken, awaited: &Awaited, answer: Answer) {
        self.deadlines.remove(&(awaited.deadline, token));
        if !awaited.is_unwanted {
            self.answers.insert(token, answer);
            self.woken.extend(self.owners.get(&awaited.library));
        }
    }

    pub(super) fn arrived(
        &mut self,
        now: Millis,
        token: RequestToken,
        outcome: Outcome,
        random: &mut Random,
    ) {
        let Some(awaited) = self.awaited.remove(&token) else { return };
        match outcome {
            Outcome::Response(response) => self.ended(token, &awaited, Ok(response)),
            Outcome::ConnectionClosed => {
                self.ended(token, &awaited, Err(Lost::Disconnected));
                self.disconnect(now, (awaited.library, awaited.broker), awaited.connection, random);
            }
        }
    }

    /// The link has lost that connection; with it goes all that was sent there.
    fn disconnect(
        &mut self,
        now: Millis,
        place: (LibraryId, BrokerId),
        connection: Option<ConnectionId>,
        random: &mut Random,
    ) {
        let Some(connection) = connection else { return };
        let Some(link) = self.links.get_mut(&place) else { return };
        if link.connection == Some(connection) {
            link.connection = None;
            link.may_connect_at = now + random.between(RECONNECT_MIN_MS, RECONNECT_MAX_MS);
        }
        let lost: Vec<RequestToken> = self
            .awaited
            .iter()
            .filter(|(_, awaited)| awaited.connection == Some(connection))
            .map(|(token, _)| *token)
            .collect();
        for token in lost {
            if let Some(awaited) = self.awaited.remove(&token) {
                self.ended(token, &awaited, Err(Lost::Disconnected));
            }
        }
        self.effects.push(Effect::Close(connection));
    }

    pub(super) fn advance(&mut self, now: Millis, random: &mut Random) {
        while let Some((at, token)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, token));
            let Some(awaited) = self.awaited.remove(&token) else { continue };
            let lost = if awaited.connection.is_some() { Lost::TimedOut } else { Lost::NeverSent };
            self.ended(token, &awaited, Err(lost));
            let place = (awaited.library, awaited.broker);
            match awaited.connection {
                Some(connection) => self.disconnect(now, place, Some(connection), random),
                None => {
                    if let Some(link) = self.links.get_mut(&place) {
                        link.held.retain(|held| held.token != token);
                    }
                }
            }
        }
        let ready: Vec<_> = self
            .links
            .iter()
            .filter(|(_, link)| !link.held.is_empty() && link.may_connect_at <= now)
            .map(|(place, _)| *place)
            .collect();
        ready.into_iter().for_each(|place| self.flush(place));
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        let connects =
            self.links.values().filter(|link| !link.held.is_empty()).map(|link| link.may_connect_at);
        self.deadlines.first().map(|(at, _)| *at).into_iter().chain(connects).min()
    }

    /// The client is destroyed. What it sent is under way all the same.
    pub(super) fn close(&mut self, library: LibraryId) {
        self.owners.remove(&library);
        let links: Vec<_> = self
            .links
            .range((library, BrokerId(i32::MIN))..=(library, BrokerId(i32::MAX)))
            .map(|it| *it.0)
            .collect();
        for place in links {
            if let Some(connection) = self.links.remove(&place).and_then(|link| link.connection) {
                self.effects.push(Effect::Close(connection));
            }
        }
        let of_it: Vec<_> =
            self.awaited.iter().filter(|(_, it)| it.library == library).map(|(token, _)| *token).collect();
        for token in of_it {
            if let Some(awaited) = self.awaited.remove(&token) {
                self.deadlines.remove(&(awaited.deadline, token));
            }
        }
        // Answers that nobody took are of other clients, or few.
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        self.effects.push(Effect::Mark(mark));
    }

    /// Whether any part has taken an answer, and so may wait for something else now.
    pub(super) fn anything_taken(&mut self) -> bool {
        std::mem::take(&mut self.was_taken)
    }

    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Answers that nobody has taken yet.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }
}
