//! Two clusters in memory and a World made of them.
//!
//! [`Clusters`] outlive a process: several [`ScriptedWorld`]s, one after the other, stand for restarts.

mod checks;
mod clusters;
mod flow;
mod lane;
mod world;

pub use checks::Judge;
pub use clusters::Clusters;
pub use flow::Kit;
pub use world::{Answer, ScriptedWorld};
