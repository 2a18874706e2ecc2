//! Everything that touches rdkafka: the only crate that may.

mod property;

pub use property::{BadProperty, check_property};
