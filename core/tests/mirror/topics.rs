//! Topics that appear, grow, vanish and come back; and starts that must survive all of that.

use crate::kit::{Answer, Clusters, Judge, Kit, ScriptedWorld};
use std::time::Duration;
use verbatim_core::command::{Command, LaneCommand};
use verbatim_core::config::Start;
use verbatim_core::event::{Event, LaneEvent, Step, Urgency};
use verbatim_core::failure::{Failure, Trouble};
use verbatim_core::ledger::HaltReason;
use verbatim_core::route::Rename;
use verbatim_core::{Exit, LaneId};

fn clusters(partitions: usize) -> Clusters {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", partitions);
    for partition in 0..partitions as i32 {
        clusters.append("orders", partition, 20);
    }
    clusters
}

/// An unbounded run of so many seconds, in which `change` happens after a minute.
fn a_long_run(
    clusters: Clusters,
    start: Start,
    seconds: u64,
    mut change: impl FnMut(&mut Clusters) + 'static,
) -> ScriptedWorld {
    let mut changed = false;
    let world = ScriptedWorld::new(clusters, 2)
        .interrupted(move |now, clusters| {
            if Duration::from_secs(60) <= now && !changed {
                changed = true;
                change(clusters);
            }
            Vec::new()
        })
        .at(seconds * 1_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world)
        .with(|flow| {
            flow.until = None;
            flow.start = start;
        })
        .run();
    assert_eq!(exit, Exit::Done);
    world
}

#[test]
fn new_topics_and_partitions_are_copied_from_their_first_record() {
    for start in [Start::Earliest, Start::Latest] {
        let world = a_long_run(clusters(2), start, 130, |clusters| {
            clusters.source_topic("later", 2);
            clusters.append("later", 1, 12);
            let orders = clusters.source.get_mut(&"orders".into()).unwrap();
            orders.logs.resize(5, Default::default());
            clusters.append("orders", 4, 7);
            clusters.append("orders", 0, 3);
        });
        let judge = Judge::new(&world.clusters);
        judge.sound();
        assert_eq!(judge.copies("later", 1).len(), 12, "{start:?}");
        assert_eq!(judge.copies("orders", 4).len(), 7, "{start:?}");
        let before = if start == Start::Earliest { 20 } else { 0 };
        assert_eq!(judge.copies("orders", 0).len(), before + 3, "{start:?}");
    }
}

/// Within one cluster, where what the rules make of a topic shows only when there is one.
#[test]
fn a_later_topic_whose_copy_would_be_copied_ends_the_mirror() {
    let mut clusters = Clusters::new();
    clusters.source_id = "target".into();
    let mut appeared = false;
    let world = ScriptedWorld::new(clusters, 2)
        .interrupted(move |now, clusters| {
            if Duration::from_secs(60) <= now && !appeared {
                appeared = true;
                clusters.source_topic("orders", 1);
                clusters.append("orders", 0, 3);
            }
            Vec::new()
        })
        .at(120_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world)
        .with(|flow| {
            flow.until = None;
            flow.rename = Rename::new("copy.{topic}").unwrap();
        })
        .run();
    let Exit::Configuration(text) = exit else { panic!("{exit:?}") };
    assert!(text.contains("copy.orders, the copy of orders, would be copied again"), "{text}");
    assert!(!world.clusters.target.contains_key(&"copy.orders".into()), "nothing is written");
}

/// H5: where a topic starts is resolved once, whatever fails around it.
#[test]
fn a_start_is_pinned_once_through_aborts_unknown_commits_and_crashes() {
    let failures = [Failure::Abort("x".into()), Failure::Unknown("x".into()), Failure::Fenced("x".into())];
    for (failure, applied) in failures.iter().flat_map(|failure| [(failure, false), (failure, true)]) {
        if applied && matches!(failure, Failure::Abort(_)) {
            continue;
        }
        for n in 2..5 {
            let failed = LaneEvent::Failed(Step::Settle, failure.clone());
            let mut seen = 0;
            let world = ScriptedWorld::new(clusters(2), 2).scripted(move |clusters, command| {
                let Command::Lane(LaneId(0), _, LaneCommand::Settle { .. }) = command else {
                    return Answer::Obey;
                };
                seen += 1;
                // What arrives from now on must be copied.
                clusters.append("orders", 0, 5);
                clusters.append("orders", 1, 5);
                match (seen == n, applied) {
                    (false, _) => Answer::Obey,
                    (true, true) => Answer::ObeyAndSay(vec![failed.clone()]),
                    (true, false) => Answer::Instead(vec![failed.clone()]),
                }
            });
            let kit = Kit::new(world).with(|flow| flow.start = Start::Latest);
            let (exit, world) = kit.run();
            assert_eq!(exit, Exit::Done);
            let judge = Judge::new(&world.clusters);
            judge.sound();
            let pins = judge.pins("orders");
            assert_eq!(pins.len(), 1, "{failure:?}, applied: {applied}, number {n}: {pins:?}");
        }
    }
}

#[test]
fn a_start_pinned_before_a_crash_holds_after_it() {
    for events in (20..140).step_by(3) {
        let mut world = ScriptedWorld::new(clusters(2), 2);
        world.records_max = 3;
        let latest = |flow: &mut verbatim_core::config::Flow| flow.start = Start::Latest;
        let (_, world) = Kit::new(world).with(latest).run_for(events);
        let pinned = Judge::new(&world.clusters).pins("orders");
        let mut clusters = world.clusters;
        clusters.append("orders", 0, 5);
        clusters.append("orders", 1, 5);
        let kit = Kit::from(clusters).with(latest).with(|flow| flow.incarnation = "i-2".into());
        let (exit, world) = kit.run();
        assert_eq!(exit, Exit::Done);
        let judge = Judge::new(&world.clusters);
        judge.sound();
        let pins = judge.pins("orders");
        assert_eq!(pins.len(), 1);
        if !pinned.is_empty() {
            assert_eq!(judge.copies("orders", 0).len(), 5, "what came after the pin is copied");
        }
    }
}

/// H6: with more records than before, a client would read on in the new topic as if it were the old one.
#[test]
fn a_topic_made_anew_while_running_halts_by_name_and_nothing_of_it_is_copied() {
    for records in [0, 5, 50] {
        let world = a_long_run(clusters(2), Start::Earliest, 130, move |clusters| {
            clusters.source_topic("orders", 2);
            clusters.append("orders", 0, records);
            clusters.append("orders", 1, records);
        });
        let judge = Judge::new(&world.clusters);
        for partition in 0..2 {
            let entry = judge.entry("orders", partition);
            let reason = entry.halted.as_ref().map(|halt| halt.reason);
            // A position beyond the new log is seen first, and is no truncation.
            assert_eq!(reason, Some(HaltReason::Recreated), "{records} records");
            assert_eq!(entry.next.0, 20);
            assert_eq!(judge.copies("orders", partition).len(), 20);
        }
    }
}

/// Found by simulation: an old answer that the topic was the same still counted, and a partition that only the new topic
/// has was neither copied nor halted.
#[test]
fn a_partition_that_only_the_topic_made_anew_has_halts_too() {
    let mut steps = 0;
    let world = ScriptedWorld::new(clusters(1), 1)
        .interrupted(move |now, clusters| {
            if steps == 0 && Duration::from_secs(60) <= now {
                steps = 1;
                let log = clusters.log("orders", 0);
                log.slots.truncate(10);
            } else if steps == 1 && Duration::from_secs(100) <= now {
                steps = 2;
                clusters.source_topic("orders", 2);
                clusters.append("orders", 1, 7);
            }
            Vec::new()
        })
        .at(200_000, Event::Stop(Urgency::Settle));
    let mut last = verbatim_core::command::Report::default();
    let (exit, world) = Kit::new(world)
        .with(|flow| {
            flow.until = None;
            flow.lanes = 1;
        })
        .run();
    assert_eq!(exit, Exit::Done);
    for command in &world.log {
        if let Command::Report(report) = command {
            last = report.clone();
        }
    }
    assert_eq!(last.halted, 2);
    assert!(Judge::new(&world.clusters).copies("orders", 1).is_empty());
}

#[test]
fn a_deleted_topic_halts_by_name_and_the_others_go_on() {
    let mut clusters = clusters(2);
    clusters.source_topic("payments", 1);
    let world = a_long_run(clusters, Start::Earliest, 130, |clusters| {
        clusters.source.remove(&"orders".into());
        clusters.append("payments", 0, 9);
    });
    let judge = Judge::new(&world.clusters);
    let halted = |partition| judge.entry("orders", partition).halted.as_ref().map(|halt| halt.reason);
    assert_eq!((halted(0), halted(1)), (Some(HaltReason::Deleted), Some(HaltReason::Deleted)));
    assert_eq!(judge.copies("payments", 0).len(), 9);
}

#[test]
fn a_target_topic_made_anew_while_running_halts_its_partitions() {
    let world = a_long_run(clusters(2), Start::Earliest, 130, |clusters| {
        let old = clusters.target.remove(&"orders".into()).unwrap();
        clusters.create(&verbatim_core::command::NewTopic {
            name: "orders".into(),
            partitions: 2,
            replication_factor: None,
            config: old.config,
        });
        clusters.append("orders", 0, 1);
    });
    let judge = Judge::new(&world.clusters);
    let reason = |partition| judge.entry("orders", partition).halted.as_ref().map(|halt| halt.reason);
    assert_eq!((reason(0), reason(1)), (Some(HaltReason::Recreated), Some(HaltReason::Recreated)));
}

/// What halted over a record says so only of the topic that it was read from: by the time that the refused one's
/// place is reached again, it is another topic's.
#[test]
fn a_refused_record_of_a_topic_made_anew_is_no_oversized_one() {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 1);
    for offset in 0..20 {
        clusters.append_sized("orders", 0, if offset == 5 { 5_000 } else { 100 });
    }
    let mut changed = false;
    let world = ScriptedWorld::new(clusters, 2).scripted(move |clusters, command| {
        if let Some(topic) = clusters.target.get_mut(&"orders".into()) {
            topic.config.insert("max.message.bytes".into(), "2000".into());
        }
        let Command::Lane(_, _, LaneCommand::Assign { positions } | LaneCommand::Rewind { positions }) =
            command
        else {
            return Answer::Obey;
        };
        if !changed && positions.iter().any(|position| position.stop_before.is_some()) {
            changed = true;
            clusters.source_topic("orders", 1);
            clusters.append("orders", 0, 20);
        }
        Answer::Obey
    });
    let (exit, world) = Kit::new(world).run();
    assert!(matches!(exit, Exit::Halted(_)), "{exit:?}");
    let judge = Judge::new(&world.clusters);
    let halt = judge.entry("orders", 0).halted.as_ref().map(|halt| halt.reason);
    assert_eq!(halt, Some(HaltReason::Recreated));
}

/// While no process runs: each change is found at the next start, before anything is copied.
#[test]
fn what_changed_while_down_is_found_before_anything_is_copied() {
    #[track_caller]
    fn check(change: impl Fn(&mut Clusters), expected: HaltReason) {
        let world = Kit::from(clusters(1)).run_to_done();
        let mut clusters = world.clusters;
        change(&mut clusters);
        let before = Judge::new(&clusters).copies("orders", 0).len();
        let world = ScriptedWorld::new(clusters, 2).at(20_000, Event::Stop(Urgency::Settle));
        let kit = Kit::new(world).with(|flow| {
            flow.until = None;
            flow.incarnation = "i-2".into();
        });
        let (exit, world) = kit.run();
        assert_eq!(exit, Exit::Done);
        let judge = Judge::new(&world.clusters);
        let halt = judge.entry("orders", 0).halted.clone();
        assert_eq!(halt.map(|halt| halt.reason), Some(expected));
        assert_eq!(judge.copies("orders", 0).len(), before);
    }
    check(
        |clusters| {
            clusters.source_topic("orders", 1);
            clusters.append("orders", 0, 100);
        },
        HaltReason::Recreated,
    );
    check(|clusters| drop(clusters.source.remove(&"orders".into())), HaltReason::Deleted);
    check(|clusters| drop(clusters.target.remove(&"orders".into())), HaltReason::Deleted);
    // The source deleted records that were never copied.
    check(
        |clusters| {
            clusters.append("orders", 0, 10);
            clusters.log("orders", 0).start = 25;
        },
        HaltReason::Gap,
    );
    check(|clusters| clusters.log("orders", 0).slots.truncate(10), HaltReason::Truncated);
    // The target lost its end, or holds more than the ledger knows.
    check(
        |clusters| clusters.target.get_mut(&"orders".into()).unwrap().logs[0].truncate(5),
        HaltReason::RolledBack,
    );
    check(
        |clusters| {
            let log = &mut clusters.target.get_mut(&"orders".into()).unwrap().logs[0];
            log.push(log[0]);
        },
        HaltReason::Torn,
    );
}

/// A topic that was never copied from is as if it had never been seen.
#[test]
fn a_topic_made_anew_before_its_target_exists_is_a_new_topic() {
    let mut creates = 0;
    let world = ScriptedWorld::new(clusters(2), 2).scripted(move |clusters, command| {
        if let Command::CreateTopics { topics, .. } = command
            && topics.iter().any(|topic| topic.name.as_str() == "orders")
        {
            creates += 1;
            if creates == 1 {
                clusters.source_topic("orders", 2);
                clusters.append("orders", 0, 4);
                return Answer::Obey;
            }
        }
        Answer::Obey
    });
    let world = world.at(100_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert_eq!(exit, Exit::Done);
    // It may be halted as made anew, but never mixed.
    Judge::new(&world.clusters).sound();
}

/// Positions carry the epoch of the last record, or truncation goes unnoticed (H7).
#[test]
fn a_restart_reads_from_the_ledgers_position_and_epoch() {
    let world = Kit::from(clusters(1)).run_to_done();
    let mut clusters = world.clusters;
    clusters.append("orders", 0, 3);
    let world = Kit::from(clusters).with(|flow| flow.incarnation = "i-2".into()).run_to_done();
    let positions: Vec<_> = world.lanes.values().flat_map(|lane| &lane.positions).collect();
    assert_eq!(positions.len(), 1);
    assert_eq!(positions[0].offset.0, 20);
    assert_eq!(positions[0].last.map(|last| (last.offset.0, last.epoch.unwrap().0)), Some((20, 3)));
}

/// Markers and aborted records lie between the last record and the position, written under later epochs. Found by
/// simulation: with the position itself, the record's epoch made the log look cut off, and the partition halted.
#[test]
fn a_position_beyond_markers_is_checked_at_its_last_record() {
    let mut clusters = clusters(1);
    clusters.append_holes("orders", 0, 5);
    let world = Kit::from(clusters).run_to_done();
    let mut clusters = world.clusters;
    clusters.append("orders", 0, 3);
    let world = Kit::from(clusters).with(|flow| flow.incarnation = "i-2".into()).run_to_done();
    let position = world.lanes.values().flat_map(|lane| &lane.positions).next().unwrap();
    assert_eq!(position.offset.0, 25);
    assert_eq!(position.last.map(|last| (last.offset.0, last.epoch.unwrap().0)), Some((20, 3)));
}

/// No record leads to the position, so none can be checked. Found by simulation: a log that was cut back and had grown
/// again was read from the position on, and what stood below it now was lost.
#[test]
fn a_position_without_a_record_is_checked_from_the_start() {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 1);
    clusters.append_holes("orders", 0, 23);
    let mut clusters = Kit::from(clusters).run_to_done().clusters;
    clusters.append("orders", 0, 3);
    let world = Kit::from(clusters).with(|flow| flow.incarnation = "i-2".into()).run_to_done();
    let position = world.lanes.values().flat_map(|lane| &lane.positions).next().unwrap();
    assert_eq!(position.offset.0, 23);
    let beginning = position.last.unwrap();
    assert_eq!((beginning.offset.0, beginning.epoch), (0, None));
}

#[test]
fn a_client_that_calls_a_topic_unknown_by_mistake_costs_nothing() {
    let mut told = false;
    let mut world = ScriptedWorld::new(clusters(2), 2).scripted(move |_, command| match command {
        Command::Lane(_, _, LaneCommand::Produce { .. }) if !told => {
            told = true;
            let place = kafka_types::SourcePartition::new("orders", 0);
            let place1 = kafka_types::SourcePartition::new("orders", 1);
            let gone = |it| LaneEvent::Stopped(it, verbatim_core::event::SourceStop::Gone);
            Answer::ObeyAndSay(vec![gone(place), gone(place1)])
        }
        _ => Answer::Obey,
    });
    world.records_max = 2;
    let world = Kit::new(world).run_to_done();
    let count = |is: fn(&Command) -> bool| world.log.iter().filter(|command| is(command)).count();
    // Read again under a new attempt, not by a new take.
    assert_eq!(count(|it| matches!(it, Command::Lane(_, _, LaneCommand::Abort))), 1);
    assert_eq!(count(|it| matches!(it, Command::Lane(_, _, LaneCommand::Open))), 2);
}

#[test]
fn a_target_that_refuses_a_topic_is_named_and_the_others_go_on() {
    let mut clusters = clusters(1);
    clusters.source_topic("payments", 1);
    clusters.append("payments", 0, 9);
    let world = ScriptedWorld::new(clusters, 2).scripted(|clusters, command| {
        let Command::CreateTopics { ask, topics } = command else { return Answer::Obey };
        let mut answer = std::collections::BTreeMap::new();
        for topic in topics {
            let refused = topic.name.as_str() == "orders";
            if !refused {
                clusters.create(topic);
            }
            let outcome = if refused { Err(Trouble::Refused("policy".into())) } else { Ok(()) };
            answer.insert(topic.name.clone(), outcome);
        }
        Answer::Events(vec![Event::TopicsCreated { ask: *ask, answer }])
    });
    let (exit, world) = Kit::new(world).run();
    let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
    assert_eq!(halted.values().collect::<Vec<_>>(), ["policy"]);
    assert_eq!(Judge::new(&world.clusters).copies("payments", 0).len(), 9);
}

/// Unfit halts are judged anew at the next start, whichever lane is faster.
#[test]
fn an_unfit_topic_halts_and_is_copied_once_it_was_made_fit() {
    let mut clusters = clusters(4);
    let config = [("message.timestamp.type".to_string(), "LogAppendTime".to_string())];
    clusters.create(&verbatim_core::command::NewTopic {
        name: "orders".into(),
        partitions: 4,
        replication_factor: None,
        config: config.into(),
    });
    let (exit, world) = Kit::from(clusters).run();
    let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
    assert_eq!(halted.len(), 4);
    let mut clusters = world.clusters;
    clusters.target.get_mut(&"orders".into()).unwrap().config.clear();
    Kit::from(clusters).with(|flow| flow.incarnation = "i-2".into()).run_to_done();
}
