//! FindCoordinator, of one or several keys (KIP-699).
//!
//! Modelled: which broker holds the slot, COORDINATOR_NOT_AVAILABLE when none does or it is dead.
//! Not modelled: creation of the internal topics.

use crate::{BrokerId, Cluster, CoordinatorKind};
use kafka_types::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FindCoordinatorRequest {
    pub kind: CoordinatorKind,
    pub keys: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FindCoordinatorResponse {
    pub coordinators: Vec<FoundCoordinator>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FoundCoordinator {
    pub key: String,
    pub error_code: ErrorCode,
    pub broker: Option<BrokerId>,
}

impl Cluster {
    pub(crate) fn find_coordinator(&self, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
        let find = |key: String| {
            let holder = self.coordinator(request.kind, &key).filter(|broker| self.brokers.is_alive(*broker));
            let error_code = match holder {
                _ if key.is_empty() && request.kind == CoordinatorKind::Transaction => {
                    ErrorCode::InvalidRequest
                }
                Some(_) => ErrorCode::None,
                None => ErrorCode::CoordinatorNotAvailable,
            };
            let broker = holder.filter(|_| !error_code.is_error());
            FoundCoordinator { key, error_code, broker }
        };
        FindCoordinatorResponse { coordinators: request.keys.into_iter().map(find).collect() }
    }
}
