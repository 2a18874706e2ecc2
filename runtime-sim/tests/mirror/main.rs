//! The mirror in the simulated world.
#![cfg(madsim)]

mod runs;
mod support;
