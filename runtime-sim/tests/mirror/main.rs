//! The mirror in the simulated world.
#![cfg(madsim)]

mod determinism;
mod mutants;
mod runs;
mod storm;
mod storms;
mod support;
