//! What is to be copied, and how much of it may be under way.

mod discovery;
mod intake;

pub use discovery::Discovery;
pub use intake::{Intake, share_of};
