//! The client library model by itself: each test is a behaviour of librdkafka that a mirror must live with.

mod bench;
mod consumer;
mod transactions;
