//! What an administrator may forbid clients, topics left out (`topics.rs` has those).
//!
//! Modelled: READ and DESCRIBE of groups together, WRITE and DESCRIBE of transactional ids together,
//! IDEMPOTENT_WRITE of the cluster. Whatever the request, its resource is looked at before anything else.
//! Not modelled: users. What is forbidden is forbidden to all.

use crate::{Cluster, ErrorCode, GroupId, Millis, Reply, TransactionalId};

/// Something that clients need a right to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// To be an idempotent producer without a transactional id.
    Cluster,
    Group(GroupId),
    TransactionalId(TransactionalId),
}

impl Cluster {
    /// Withdraws or restores the clients' right to something.
    pub fn deny(&mut self, now: Millis, resource: Resource, is_denied: bool) -> Vec<Reply> {
        self.advance_to(now);
        if is_denied {
            self.denied.insert(resource);
        } else {
            self.denied.remove(&resource);
        }
        self.finish()
    }

    pub(crate) fn check_access(&self, resource: &Resource) -> Result<(), ErrorCode> {
        if !self.denied.contains(resource) {
            return Ok(());
        }
        Err(match resource {
            Resource::Cluster => ErrorCode::ClusterAuthorizationFailed,
            Resource::Group(_) => ErrorCode::GroupAuthorizationFailed,
            Resource::TransactionalId(_) => ErrorCode::TransactionalIdAuthorizationFailed,
        })
    }
}
