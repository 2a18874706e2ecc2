//! What the tests on real Kafka brokers are built from: brokers that can be killed and restarted, a proxy
//! that delays or cuts, the mirror as a real process, workloads, and a checker that judges contents.
//!
//! Nothing here uses the mirror's own code: a mistake shared by the mirror and its judge would be invisible.
#![deny(unsafe_code)]

pub mod admin;
pub mod batch;
pub mod broker_options;
pub mod checker;
pub mod differences;
pub mod docker;
pub mod ffi;
pub mod flow;
pub mod follower;
pub mod kafka;
pub mod mirror;
pub mod proxy;
pub mod report;
pub mod require;
pub mod transactions;
pub mod watchdog;
pub mod wire;
pub mod workload;

pub use ffi::headers;

/// A name that no other test, and no other run over the same broker, uses.
pub fn unique_name(stem: &str) -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{stem}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Asks again every 100 ms until the answer is there or the time is up.
///
/// # Panics
/// When the time is up, naming what was waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, timeout: std::time::Duration, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + timeout;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "waited {timeout:?} in vain for {what}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
