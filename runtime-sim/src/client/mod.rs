//! The client library that a mirror runs on, as a pure state machine: librdkafka 2.12 as the real World uses it.

mod faults;

pub use faults::{ClientFaults, ClientMutants};
