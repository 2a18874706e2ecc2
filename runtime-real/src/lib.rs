//! The World on real Kafka clusters: carries out a mirror's commands and reports what happened.
//!
//! The only crate that knows rdkafka. It makes no decision of policy: those are in `verbatim-core`.

#![deny(unsafe_code)]

mod admin;
mod client;
mod client_config;
mod clock;
mod cluster;
#[allow(unsafe_code, reason = "the only place for it")]
mod ffi;
mod follow;
mod group;
mod lane;
mod lanes;
mod open_transactions;
mod property;
mod reader;
mod reading;
mod settings;
mod threads;
mod trouble;
mod world;

pub use client_config::client_configs;
pub use property::{BadProperty, check_property};
pub use reader::{Ends, Reader};
pub use reading::{ReadError, RecordView, Span};
pub use settings::Settings;
pub use world::{RealWorld, StartError, Stopper};
