//! Those who write to the source while it is mirrored: plain, idempotent and transactional producers.

mod client;
mod content;
mod producer;
mod transactions;

pub use producer::{Workload, start};
