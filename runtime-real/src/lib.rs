//! The mirror's World on real Kafka: it carries out the core's commands through librdkafka and reports what
//! happened. It decides nothing.

mod admin;
mod client;
mod cluster;
mod ffi;
mod group;
mod open_transactions;
pub mod settings;
pub mod trouble;

pub use settings::Settings;
