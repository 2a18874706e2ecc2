//! Planted bugs: what the oracle and the faults are worth.
//!
//! A mutant counts as caught only by a promise, in a run like any other: no assertion is written for it, and
//! nothing in `oracle/` can name it.

mod document;
mod hunt;
mod table;

pub use crate::run::Planted;
pub use document::document;
pub use hunt::{BUDGET, Caught, Hunt, hunt, hunt_in};
pub use table::{Expected, Mutant, TABLE, by_number, with_dead_clients_requests_cancelled};
