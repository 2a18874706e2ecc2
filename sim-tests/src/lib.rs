//! The mirror under attack: plans drawn from seeds, a workload, faults, and an oracle that trusts nothing.

pub mod oracle;
pub mod plan;
