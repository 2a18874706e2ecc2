//! The rules of Kafka that the model honours, a test a rule. The names begin with the section of the list of
//! rules: 4.1 idempotent producers, 4.2 transactions, 4.3 progress, 4.4 groups, 4.5 logs and leaders.

mod anything;
mod groups;
mod idempotence;
mod leadership;
mod log;
mod mutants;
mod progress;
mod requests;
mod support;
mod transactions;
