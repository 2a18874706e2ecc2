//! The simulated World: two [`kafka_model`] clusters, a network that loses and delays, a client library as a
//! pure state machine, and instances of the mirror that crash, pause and restart, all in virtual time.
//!
//! ```text
//! scenario ── Handle ──┬─ instances (madsim nodes): drive(Mirror, SimWorld)   instance.rs, world.rs
//!                      │       SimWorld ─ client library (pure)               client/
//!                      ├─ network: what was sent belongs to it (pure)         network/
//!                      ├─ clusters (pure)                                     kafka-model
//!                      └─ clock: the one task that lets time act              clock.rs, universe.rs
//! ```
//!
//! A seed decides everything: the same seed gives the same trace, byte for byte.

#[cfg(madsim)]
mod alarms;
pub mod client;
#[cfg(madsim)]
mod clock;
mod counters;
#[cfg(madsim)]
mod handle;
#[cfg(madsim)]
mod instance;
mod moments;
mod network;
mod random;
#[cfg(madsim)]
mod sends;
#[cfg(madsim)]
mod shared;
#[cfg(madsim)]
mod simulation;
#[cfg(madsim)]
mod slots;
mod trace;
#[cfg(madsim)]
mod universe;
#[cfg(madsim)]
mod world;

pub use client::{ClientFaults, ClientMutants};
pub use counters::{Counters, Fault};
#[cfg(madsim)]
pub use handle::Handle;
#[cfg(madsim)]
pub use instance::InstanceSettings;
pub use moments::Moment;
pub use network::{Cut, NetworkFaults};
pub use random::{Random, Rate};
#[cfg(madsim)]
pub use simulation::{Panicked, Record, Setup, SimMutants, simulate};
#[cfg(madsim)]
pub use slots::{Deed, Slot};
pub use trace::TraceMode;
#[cfg(madsim)]
pub use universe::{Seen, Watcher};
#[cfg(madsim)]
pub use world::SimWorld;
