//! Brokers that the tests of one binary share: a start costs ten seconds. Topics need unique names.

use std::sync::OnceLock;

use integration_tests::kafka::{Broker, BrokerOptions};

/// One broker of the default image for all who need nothing special.
pub fn shared_broker() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| Broker::start(&BrokerOptions::default()).expect("a broker starts"))
}
