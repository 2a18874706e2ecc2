//! What was passed without a record counts only if one leader showed all of it.

use crate::kit::{Answer, Clusters, Judge, Kit, ScriptedWorld};
use kafka_types::SourcePartition;
use verbatim_core::command::{Command, LaneCommand, Place, Position};
use verbatim_core::config::Flow;
use verbatim_core::event::{Event, Urgency};
use verbatim_core::failure::Trouble;

/// Ten records, and markers behind them.
fn clusters(holes: usize) -> Clusters {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 1);
    clusters.append("orders", 0, 10);
    clusters.append_holes("orders", 0, holes);
    clusters
}

fn asks_for_leaders(command: &Command) -> bool {
    matches!(command, Command::SourceOffsets { at: Place::HighWatermark, .. })
}

fn aborts(command: &Command) -> bool {
    matches!(command, Command::Lane(_, _, LaneCommand::Abort))
}

fn count(world: &ScriptedWorld, is: fn(&Command) -> bool) -> usize {
    world.log.iter().filter(|command| is(command)).count()
}

/// Runs until it is told to stop; by then everything must be copied.
fn run(world: ScriptedWorld) -> ScriptedWorld {
    let world = world.at(5_000, Event::Stop(Urgency::Settle));
    let (_, world) = Kit::new(world).with(|flow: &mut Flow| flow.until = None).run();
    Judge::new(&world.clusters).all_copied();
    world
}

/// Another leader whenever such a command is carried out, so many times.
fn elected_upon(holes: usize, is: fn(&Command) -> bool, times: usize) -> ScriptedWorld {
    let mut left = times;
    ScriptedWorld::new(clusters(holes), 2).scripted(move |clusters, command| {
        if is(command) && 0 < left {
            left -= 1;
            clusters.leader_epoch += 1;
        }
        Answer::Obey
    })
}

#[test]
fn records_without_a_hole_between_them_vouch_for_themselves() {
    let world = run(ScriptedWorld::new(clusters(0), 2));
    assert_eq!((count(&world, asks_for_leaders), count(&world, aborts)), (0, 0));
}

#[test]
fn behind_markers_the_leader_is_asked_who_it_is() {
    let world = run(ScriptedWorld::new(clusters(2), 2));
    assert_eq!((count(&world, asks_for_leaders), count(&world, aborts)), (1, 0));
}

/// Under whichever leader it was read: it is read again, from the last record that was settled on, under the new one.
#[test]
fn what_was_passed_under_an_older_leader_is_read_again() {
    let world = run(elected_upon(2, asks_for_leaders, 1));
    assert_eq!((count(&world, asks_for_leaders), count(&world, aborts)), (2, 1));
    let again = world.lanes.values().flat_map(|lane| &lane.positions);
    let again: Vec<&Position> =
        again.filter(|it| it.partition == SourcePartition::new("orders", 0)).collect();
    assert_eq!(again.len(), 2);
    assert_eq!(Judge::new(&world.clusters).entry("orders", 0).next.0, 12);
}

#[test]
fn leaders_that_change_all_the_time_hold_it_up_only_as_long() {
    let world = run(elected_upon(2, asks_for_leaders, 5));
    assert_eq!(count(&world, aborts), 5);
}

/// A later record of another leader says nothing of who showed what lies before it.
#[test]
fn a_record_of_a_new_leader_has_what_lies_before_it_read_again() {
    let mut grown = false;
    let world = ScriptedWorld::new(clusters(0), 2).interrupted(move |now, clusters| {
        if 2 <= now.as_secs() && !grown {
            grown = true;
            clusters.leader_epoch += 1;
            clusters.append("orders", 0, 3);
        }
        Vec::new()
    });
    let world = run(world.at(2_000, Event::Woke));
    assert_eq!((count(&world, asks_for_leaders), count(&world, aborts)), (2, 1));
}

#[test]
fn a_leader_that_does_not_answer_is_asked_again() {
    let mut left = 2;
    let world = ScriptedWorld::new(clusters(2), 2).scripted(move |_, command| match command {
        Command::SourceOffsets { ask, partitions, at: Place::HighWatermark } if 0 < left => {
            left -= 1;
            let trouble = || Err(Trouble::Passing("no leader".into()));
            let answer = partitions.iter().map(|partition| (partition.clone(), trouble())).collect();
            Answer::Events(vec![Event::SourceOffsets { ask: *ask, answer }])
        }
        _ => Answer::Obey,
    });
    let world = run(world);
    assert_eq!(count(&world, asks_for_leaders), 3);
}
