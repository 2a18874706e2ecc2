//! Planted bugs of the client library: a storm must show each of them, as a loss, a double, or as stuck.

use crate::storm::storm;
use runtime_sim::{ClientMutants, Setup};

fn seeds_until_caught(budget: u64, plant: fn(&mut ClientMutants)) -> Option<u64> {
    let change = |setup: &mut Setup| plant(&mut setup.client_mutants);
    (0..budget).find(|seed| std::panic::catch_unwind(|| storm(*seed, change)).is_err())
}

#[test]
fn mutants() {
    let mutants: &[(&str, fn(&mut ClientMutants))] = &[
        ("retried_commit_is_clean", |it| it.retried_commit_is_clean = true),
        ("replay_ends_at_end_of_partition", |it| it.replay_ends_at_end_of_partition = true),
        ("invalid_state_is_abortable", |it| it.invalid_state_is_abortable = true),
        ("send_errors_are_not_counted", |it| it.send_errors_are_not_counted = true),
        ("sequence_resets_on_leader_change", |it| it.sequence_resets_on_leader_change = true),
        ("timed_out_is_not_written", |it| it.timed_out_is_not_written = true),
        ("start_without_epoch", |it| it.start_without_epoch = true),
    ];
    for (name, plant) in mutants {
        println!("MUTANT {name}: {:?}", seeds_until_caught(300, *plant));
    }
}
