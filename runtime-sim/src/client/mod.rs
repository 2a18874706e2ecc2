//! The client library that a mirror runs on, as a pure state machine: librdkafka 2.12 as the real World uses it.
//!
//! ```text
//! process ─┬─ admin, group, follow, survey        one client (library) each
//!          └─ lane ─┬─ source ── fetcher           read_committed, positions checked
//!                   ├─ outbox ── producer          transactions, idempotent batches
//!                   └─ ledger_reader, prepare      readers of the target
//! every client ── library (metadata, coordinator) ── wire (connections, time-outs) ── effects
//! ```
//!
//! Every part has an `advance`: it looks at what has arrived, does all that can be done, and says until when
//! nothing else can. Nothing here waits, and time is an argument.

mod admin;
mod coordinator;
mod error;
mod faults;
mod fetcher;
mod follow;
mod group;
mod io;
mod lane;
mod ledger_records;
mod library;
mod marks;
mod metadata;
mod offsets;
mod process;
mod producer;
mod survey;
mod trouble;
pub(crate) mod unseeded;
mod wire;

pub use faults::{ClientFaults, ClientMutants};
pub use marks::Mark;
pub use process::{Process, ProcessSettings};
pub use wire::Effect;
