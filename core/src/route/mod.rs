//! Which source topics are taken, and what they are called on the target.

mod filter;
mod naming;
mod one_cluster;

pub use filter::{BadPattern, TopicFilter, is_internal};
pub use naming::{BadRename, Rename};
pub use one_cluster::{Loop, find_loop};
