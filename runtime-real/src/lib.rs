//! The World on real Kafka clusters: carries out a mirror's commands and reports what happened.
//!
//! The only crate that knows rdkafka. It makes no decision of policy: those are in `verbatim-core`.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "the only place for it")]
#[allow(dead_code, reason = "until the World uses it")]
mod ffi;
#[allow(dead_code, reason = "until the World uses it")]
mod lane;
