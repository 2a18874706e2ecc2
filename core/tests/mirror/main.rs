//! The mirror in a scripted world: two clusters in memory, a group, a clock, and faults on cue.
//!
//! The real `drive` runs here, on the one port that production uses too.

mod cases;
mod faults;
mod kit;
mod leaders;
mod random;
mod topics;
mod until;
