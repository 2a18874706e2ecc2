//! Where librdkafka's own functions are called; the only place of this crate with `unsafe`.

pub mod headers;
