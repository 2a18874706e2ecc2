//! What the mirror does to the target besides copying: topics.

mod failures;
mod making;
mod refusals;
mod topic_config;
mod topics;

pub use topic_config::{config_for_copy, would_alter_records};
pub use topics::TargetTopics;
