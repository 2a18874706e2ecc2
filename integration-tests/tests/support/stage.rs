//! The source and the target that the tests of one binary share, one test at a time: what promises a time
//! must not compete with its neighbour for two cores.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use integration_tests::kafka::{Broker, BrokerOptions};
use integration_tests::watchdog;

/// For waits that promise nothing about time.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// It can be reached through a proxy too.
pub fn source() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    let options = || BrokerOptions::default().with_proxied_listener();
    BROKER.get_or_init(|| Broker::start(&options()).expect("a broker starts"))
}

pub fn target() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| Broker::start(&BrokerOptions::default()).expect("a broker starts"))
}

/// Held by a test for as long as it runs.
pub fn alone() -> MutexGuard<'static, ()> {
    static STAGE: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind but its topics.
    watchdog::waiting(|| STAGE.lock().unwrap_or_else(PoisonError::into_inner))
}
