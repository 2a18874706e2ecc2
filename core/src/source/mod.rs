//! What is to be copied, and how much of it may be under way.

mod cursor;
mod discovery;
mod intake;
mod leaders;

pub use cursor::{Cursor, End, Judgement, Outside};
pub(crate) use discovery::Discovery;
pub(crate) use intake::{Intake, share_of};
pub(crate) use leaders::Leaders;
