//! The protocol hazards of docs/hazards.md that a broker, a proxy or a tool can provoke, on real brokers. Each
//! test is named after its hazard.

mod bounded;
mod ends_of_transactions;
mod flow;
mod ledger;
mod refused_batches;
mod target_contents;
mod topics;
