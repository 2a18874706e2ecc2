//! All `unsafe` of this crate: what librdkafka offers and rust-rdkafka does not.

pub(crate) mod admin;
pub(crate) mod group;
