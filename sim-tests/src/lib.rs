//! The mirror under attack: plans drawn from seeds, a workload, faults, and an oracle that trusts nothing.
//!
//! ```text
//! seed ─► plan ─► run ─► Run { findings, record }            plan/, run/
//!                  ├─ workload: producers at the source      workload/
//!                  ├─ faults: the plan's actions             run/clusters.rs
//!                  └─ oracle: watches both clusters          oracle/
//! ```

#[cfg(madsim)]
pub mod mutants;
pub mod oracle;
pub mod plan;
#[cfg(madsim)]
pub mod run;
#[cfg(madsim)]
pub mod sweep;
#[cfg(madsim)]
mod workload;
