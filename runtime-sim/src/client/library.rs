//! One client of the process: what it knows of its cluster, and its way to the brokers.

use super::coordinator::Coordinator;
use super::io::Io;
use super::metadata::Metadata;
use super::wire::{LibraryId, Pending};
use kafka_model::{BrokerId, ClientId, CoordinatorKind, Millis, Request};
use kafka_types::ErrorCode;
use verbatim_core::failure::Side;

/// `socket.timeout.ms`, unless a client says otherwise.
pub(super) const SOCKET_TIMEOUT_MS: Millis = 60_000;

/// Where and as whom a client connects.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) side: Side,
    pub(super) client_id: ClientId,
    /// `bootstrap.servers`
    pub(super) brokers: Vec<BrokerId>,
}

pub(super) struct Library {
    line: Line,
    pub(super) metadata: Metadata,
    coordinator: Option<Coordinator>,
}

/// A client's way to the brokers.
pub(super) struct Line {
    id: LibraryId,
    place: Place,
    socket_timeout_ms: Millis,
}

impl Library {
    pub(super) fn new(io: &mut Io, place: &Place, socket_timeout_ms: Millis) -> Library {
        let line = Line { id: io.wire.new_library(), place: place.clone(), socket_timeout_ms };
        Library { line, metadata: Metadata::default(), coordinator: None }
    }

    /// The same, with a coordinator to keep in touch with.
    #[must_use]
    pub(super) fn coordinated(mut self, kind: CoordinatorKind, key: &str) -> Library {
        self.coordinator = Some(Coordinator::new(kind, key));
        self
    }

    /// Keeps metadata and coordinator fresh. To be called whenever the client is looked at.
    pub(super) fn advance(&mut self, io: &mut Io) {
        self.metadata.advance(io, &self.line);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.advance(io, &self.line);
        }
    }

    pub(super) fn send(&self, io: &mut Io, broker: BrokerId, request: impl Into<Request>) -> Pending {
        self.line.send_within(io, broker, request, self.line.socket_timeout_ms)
    }

    pub(super) fn send_within(
        &self,
        io: &mut Io,
        broker: BrokerId,
        request: impl Into<Request>,
        patience_ms: Millis,
    ) -> Pending {
        self.line.send_within(io, broker, request, patience_ms)
    }

    pub(super) fn any_broker(&self, io: &mut Io) -> BrokerId {
        self.line.any_broker(io)
    }

    pub(super) fn coordinator(&self) -> Option<BrokerId> {
        self.coordinator.as_ref().and_then(Coordinator::broker)
    }

    /// Why nobody will say where the coordinator is, if the client has no right to know.
    pub(super) fn coordinator_denied(&self) -> Option<ErrorCode> {
        self.coordinator.as_ref().and_then(Coordinator::denied)
    }

    /// The coordinator is not where it was thought to be.
    pub(super) fn coordinator_moved(&mut self) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.forget();
        }
    }

    pub(super) fn close(&self, io: &mut Io) {
        io.wire.close(self.line.id);
    }
}

impl Line {
    pub(super) fn send_within(
        &self,
        io: &mut Io,
        broker: BrokerId,
        request: impl Into<Request>,
        patience_ms: Millis,
    ) -> Pending {
        let request = request.into();
        let version = version_of(&request);
        let to = (self.place.side, broker);
        io.wire.send(io.now, self.id, to, &self.place.client_id, version, request, patience_ms)
    }

    /// Any broker, for questions that any can answer.
    pub(super) fn any_broker(&self, io: &mut Io) -> BrokerId {
        *io.random.pick(&self.place.brokers).expect("a cluster has brokers")
    }
}

/// The versions that librdkafka 2.12 sends where they make a difference to the model.
fn version_of(request: &Request) -> i16 {
    match request {
        Request::EndTxn(_) => 1,
        Request::AddPartitionsToTxn(_) => 0,
        Request::InitProducerId(_) => 4,
        Request::JoinGroup(_) => 5,
        Request::Produce(_) => 9,
        _ => 9,
    }
}
