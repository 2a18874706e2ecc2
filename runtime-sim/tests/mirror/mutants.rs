//! Planted bugs of the client library, of which a storm must show each as a loss, a double, or as stuck.

use crate::storm::storm;
use runtime_sim::{ClientMutants, Setup};

/// Panics of caught mutants are what is wanted, so their text is of no interest.
fn is_caught_within(budget: u64, plant: fn(&mut ClientMutants)) -> bool {
    let change = |setup: &mut Setup| plant(&mut setup.client_mutants);
    (0..budget).any(|seed| std::panic::catch_unwind(|| storm(seed, change)).is_err())
}

#[test]
fn a_retried_commit_that_counts_as_clean() {
    assert!(is_caught_within(60, |it| it.retried_commit_is_clean = true));
}

#[test]
fn a_replay_that_ends_at_the_end_of_the_partition() {
    assert!(is_caught_within(20, |it| it.replay_ends_at_end_of_partition = true));
}

#[test]
fn sequence_numbers_that_begin_anew_at_a_new_leader() {
    assert!(is_caught_within(20, |it| it.sequence_resets_on_leader_change = true));
}

#[test]
fn a_produce_that_timed_out_and_counts_as_not_written() {
    assert!(is_caught_within(60, |it| it.timed_out_is_not_written = true));
}
