//! The mirror as pure state machines.
//!
//! Data flows left to right, here as in the process: `source` -> `route` -> `target` -> `ledger`. The World
//! ([`world::World`]) holds the records and speaks to the clusters; [`drive`] hands its events to a
//! [`Mirror`] and the Mirror's commands back to it. Nothing here waits, reads a clock, starts a thread or
//! draws a random number.

mod backoff;
pub mod batch;
pub mod command;
pub mod config;
mod delivery;
pub mod digest;
mod drive;
pub mod event;
pub mod exit;
pub mod failure;
pub mod fault;
mod identity;
pub mod lane;
pub mod ledger;
pub mod mirror;
pub mod route;
pub mod source;
pub mod status;
mod target;
pub mod time;
pub mod world;

pub use drive::drive;
pub use exit::Exit;
pub use lane::{Attempt, LaneId};
pub use mirror::Mirror;
pub use world::World;
