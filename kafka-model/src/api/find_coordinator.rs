//! FindCoordinator, of one or several keys (KIP-699).
//!
//! Modelled: which broker holds the slot, rights to the key, COORDINATOR_NOT_AVAILABLE when none does or it is dead.
//! Not modelled: creation of the internal topics.

use crate::{BrokerId, Cluster, CoordinatorKind, Resource};
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
            let found = self.find_one(request.kind, &key);
            let error_code = found.err().unwrap_or(ErrorCode::None);
            FoundCoordinator { key, error_code, broker: found.ok() }
        };
        FindCoordinatorResponse { coordinators: request.keys.into_iter().map(find).collect() }
    }

    fn find_one(&self, kind: CoordinatorKind, key: &str) -> Result<BrokerId, ErrorCode> {
        self.check_access(&match kind {
            CoordinatorKind::Group => Resource::Group(key.into()),
            CoordinatorKind::Transaction => Resource::TransactionalId(key.into()),
        })?;
        if key.is_empty() && kind == CoordinatorKind::Transaction {
            return Err(ErrorCode::InvalidRequest);
        }
        let holder = self.coordinator(kind, key).filter(|broker| self.brokers.is_alive(*broker));
        holder.ok_or(ErrorCode::CoordinatorNotAvailable)
    }
}
