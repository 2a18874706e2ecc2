use super::io::Io;
use super::library::Line;
use super::wire::Pending;
use kafka_model::api::find_coordinator::FindCoordinatorRequest;
use kafka_model::{BrokerId, CoordinatorKind, Millis, Response};
use kafka_types::ErrorCode;

const RETRY_MS: Millis = 500;
const PATIENCE_MS: Millis = 30_000;

/// Where a group's or a transactional id's coordinator is believed to be.
pub(super) struct Coordinator {
    kind: CoordinatorKind,
    key: String,
    broker: Option<BrokerId>,
    /// Why nobody will say where it is, if that is so.
    denied: Option<ErrorCode>,
    pending: Option<Pending>,
    may_ask_at: Millis,
}

impl Coordinator {
    pub(super) fn new(kind: CoordinatorKind, key: &str) -> Coordinator {
        Coordinator { kind, key: key.to_owned(), broker: None, denied: None, pending: None, may_ask_at: 0 }
    }

    pub(super) fn broker(&self) -> Option<BrokerId> {
        self.broker
    }

    pub(super) fn denied(&self) -> Option<ErrorCode> {
        self.denied
    }

    pub(super) fn forget(&mut self) {
        self.broker = None;
    }

    pub(super) fn advance(&mut self, io: &mut Io, line: &Line) {
        if let Some(pending) = self.pending {
            let Some(answer) = io.wire.take(pending) else { return };
            self.pending = None;
            self.may_ask_at = io.now + RETRY_MS;
            if let Ok(Response::FindCoordinator(response)) = answer {
                let found = response.coordinators.into_iter().next();
                self.denied = found.as_ref().map(|found| found.error_code).filter(|code| is_denial(*code));
                self.broker = found.filter(|found| !found.error_code.is_error()).and_then(|it| it.broker);
                io.look_again = true;
            }
        }
        if self.broker.is_none() && io.is_due(self.may_ask_at) {
            let request = FindCoordinatorRequest { kind: self.kind, keys: vec![self.key.clone()] };
            let broker = line.any_broker(io);
            self.pending = Some(line.send_within(io, broker, request, PATIENCE_MS));
        }
    }
}

fn is_denial(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::GroupAuthorizationFailed
            | ErrorCode::TransactionalIdAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
    )
}
