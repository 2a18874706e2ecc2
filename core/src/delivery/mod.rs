//! How records get across: one module a delivery mode.

pub mod exactly_once;
