//! Bounded runs and endings: when a mirror may say that it is done, and what it says otherwise.

use crate::kit::{Answer, Clusters, Judge, Kit, ScriptedWorld};
use std::time::Duration;
use verbatim_core::command::{Command, LaneCommand, NewTopic, Topics};
use verbatim_core::config::{Flow, Until};
use verbatim_core::event::{Event, GroupEvent, LaneEvent, Listing, Step, TopicInfo, Turn, Urgency};
use verbatim_core::failure::{Failure, Side};
use verbatim_core::ledger::HaltReason;
use verbatim_core::route::TopicFilter;
use verbatim_core::time::Timestamp;
use verbatim_core::{Exit, LaneId};

fn clusters() -> Clusters {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 2);
    clusters.append("orders", 0, 30);
    clusters.append("orders", 1, 30);
    clusters
}

fn is_copying(command: &Command) -> bool {
    matches!(command, Command::Lane(_, _, LaneCommand::Produce { .. }))
}

fn count(world: &ScriptedWorld, is: impl Fn(&Command) -> bool) -> usize {
    world.log.iter().filter(|command| is(command)).count()
}

#[test]
fn nothing_to_copy_is_done_at_once() {
    Kit::from(Clusters::new()).run_to_done();
    let mut empty = Clusters::new();
    empty.source_topic("orders", 3);
    Kit::from(empty).run_to_done();
}

/// S1: a done instance waits for lanes that are somebody else's.
#[test]
fn the_end_is_the_whole_flows_end() {
    let mut world = ScriptedWorld::new(clusters(), 2);
    world.lanes_offered = vec![LaneId(0)];
    let offer = GroupEvent::Offered { turn: Turn(50), lanes: vec![LaneId(1)] };
    let world = world.at(20_000, Event::Group(offer));
    let world = Kit::new(world).run_to_done();
    assert_eq!(count(&world, |it| matches!(it, Command::Lane(LaneId(1), _, LaneCommand::Open))), 1);
}

#[test]
fn what_is_held_back_by_an_open_transaction_is_named_after_the_wait() {
    let mut clusters = clusters();
    clusters.log("orders", 1).open_from = Some(12);
    let (exit, world) = Kit::from(clusters).run();
    let Exit::OpenTransactions(open) = exit else { panic!("{exit:?}") };
    assert_eq!(open.len(), 1);
    assert!(Duration::from_secs(60) <= world.now().instant.0);
    let judge = Judge::new(&world.clusters);
    judge.sound();
    assert_eq!(judge.entry("orders", 1).next.0, 12, "all that is readable was copied");
}

#[test]
fn an_open_transaction_that_ends_in_time_is_waited_for() {
    let mut clusters = clusters();
    clusters.log("orders", 1).open_from = Some(12);
    let world = ScriptedWorld::new(clusters, 2).interrupted(|now, clusters| {
        if Duration::from_secs(30) < now {
            clusters.log("orders", 1).open_from = None;
        }
        Vec::new()
    });
    Kit::new(world).run_to_done();
}

#[test]
fn until_a_time_ends_there_and_copies_all_before_it() {
    let kit = Kit::from(clusters()).with(|flow| flow.until = Some(Until::Time(Timestamp(1_010))));
    let (exit, world) = kit.run();
    assert_eq!(exit, Exit::Done);
    let judge = Judge::new(&world.clusters);
    judge.sound();
    assert!(10 <= judge.entry("orders", 0).next.0);
}

#[test]
fn sigterm_settles_and_leaves() {
    let world = ScriptedWorld::new(clusters(), 2).at(2_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert_eq!(exit, Exit::Done);
    Judge::new(&world.clusters).all_copied();
    assert_eq!(count(&world, |it| matches!(it, Command::LeaveGroup)), 1);
    assert!(world.now().instant.0 < Duration::from_secs(3));
}

#[test]
fn sigterm_before_the_end_of_a_bounded_run_says_so() {
    let world = ScriptedWorld::new(clusters(), 2).at(1, Event::Stop(Urgency::Settle));
    let (exit, _) = Kit::new(world).run();
    assert!(matches!(exit, Exit::Unsettled(_)), "{exit:?}");
}

#[test]
fn a_second_signal_aborts_at_once() {
    let world = ScriptedWorld::new(clusters(), 2).upon(is_copying, Event::Stop(Urgency::Now));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert!(matches!(exit, Exit::Unsettled(_)), "{exit:?}");
    Judge::new(&world.clusters).sound();
}

/// With a target that no longer answers, stopping keeps its deadline and says what is left.
#[test]
fn sigterm_with_a_dead_target_ends_in_time() {
    let world = ScriptedWorld::new(clusters(), 2)
        .scripted(|_, command| match command {
            Command::Lane(_, _, LaneCommand::Produce { .. } | LaneCommand::Close) => Answer::Instead(vec![]),
            Command::LeaveGroup => Answer::Events(vec![]),
            _ => Answer::Obey,
        })
        .at(2_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert!(matches!(exit, Exit::Unsettled(_)), "{exit:?}");
    assert!(world.now().instant.0 <= Duration::from_secs(11));
}

/// A lane that was lost is somebody else's to settle.
#[test]
fn a_lane_lost_long_ago_does_not_make_a_stop_unsettled() {
    let lost = GroupEvent::Lost { turn: Turn(70), lanes: vec![LaneId(0), LaneId(1)] };
    let world = ScriptedWorld::new(clusters(), 2)
        .upon(is_copying, Event::Group(lost))
        .at(2_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert_eq!(exit, Exit::Done);
    Judge::new(&world.clusters).sound();
    assert_eq!(count(&world, |it| matches!(it, Command::Release(Turn(70)))), 1);
}

/// Nothing was read of a lane that could not even be opened.
#[test]
fn a_lane_that_was_never_taken_does_not_make_a_stop_unsettled() {
    for (step, lane) in [(Step::Open, LaneId(1)), (Step::Replay, LaneId(0))] {
        let world = ScriptedWorld::new(clusters(), 2).scripted(move |_, command| match command {
            Command::Lane(at, _, LaneCommand::Open) if *at == lane && step == Step::Open => {
                Answer::Instead(vec![LaneEvent::Failed(step, Failure::Retry("no answer".into()))])
            }
            Command::Lane(at, _, LaneCommand::Replay { .. }) if *at == lane && step == Step::Replay => {
                Answer::Instead(vec![LaneEvent::Failed(step, Failure::Retry("no answer".into()))])
            }
            _ => Answer::Obey,
        });
        let world = world.at(2_000, Event::Stop(Urgency::Settle));
        let (exit, _) = Kit::new(world).with(|flow| flow.until = None).run();
        assert_eq!(exit, Exit::Done);
    }
}

#[test]
fn a_recalled_lane_settles_and_a_lost_one_does_not() {
    for (recalled, settles) in [(true, true), (false, false)] {
        let (turn, lanes) = (Turn(80), vec![LaneId(1)]);
        let event = match recalled {
            true => GroupEvent::Recalled { turn, lanes },
            false => GroupEvent::Lost { turn, lanes },
        };
        let mut world = ScriptedWorld::new(clusters(), 2)
            .upon(is_copying, Event::Group(event))
            .at(4_000, Event::Stop(Urgency::Settle));
        world.lanes_offered = vec![LaneId(1)];
        // Lane 0 is somebody else's; its records are written here.
        let mut empty = Clusters::new();
        empty.source_topic("orders", 2);
        let made = |flow: &mut Flow| flow.until = None;
        let (_, first) = Kit::from(empty).with(made).run_for(200);
        world.clusters = first.clusters;
        world.clusters.append("orders", 0, 30);
        world.clusters.append("orders", 1, 30);
        let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
        assert_eq!(exit, Exit::Done);
        let log = &world.log;
        let turn = log.iter().position(|it| matches!(it, Command::Release(Turn(80)))).expect("released");
        let close = log.iter().position(|it| matches!(it, Command::Lane(_, _, LaneCommand::Close))).unwrap();
        assert!(close < turn, "closed, then released");
        let is_settle = |it: &&Command| matches!(it, Command::Lane(LaneId(1), _, LaneCommand::Settle { .. }));
        let settled = 1 < log[..close].iter().filter(is_settle).count();
        assert_eq!(settled, settles, "recalled: {recalled}");
        Judge::new(&world.clusters).sound();
    }
}

#[test]
fn a_recalled_lane_that_cannot_settle_is_given_up_at_its_deadline() {
    let world = ScriptedWorld::new(clusters(), 2)
        .scripted(|_, command| match command {
            Command::Lane(LaneId(1), _, LaneCommand::Produce { .. }) => Answer::Instead(vec![]),
            _ => Answer::Obey,
        })
        .at(3_000, Event::Group(GroupEvent::Recalled { turn: Turn(90), lanes: vec![LaneId(1)] }))
        .at(12_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert_eq!(exit, Exit::Done);
    assert_eq!(count(&world, |it| matches!(it, Command::Release(Turn(90)))), 1);
}

/// S7.
#[test]
fn a_replaced_instance_says_so_at_once() {
    let event = Event::Group(GroupEvent::Replaced("fenced instance id".into()));
    let world = ScriptedWorld::new(clusters(), 2).upon(is_copying, event);
    let (exit, _) = Kit::new(world).run();
    assert_eq!(exit, Exit::Replaced("fenced instance id".into()));
}

/// A halt that an operator has repaired is not held against the next run.
#[test]
fn a_repaired_halt_is_lifted_by_the_next_run() {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 1);
    clusters.append("orders", 0, 5);
    clusters.append_sized("orders", 0, 5_000);
    clusters.append("orders", 0, 5);
    let world = ScriptedWorld::new(clusters, 2).scripted(|clusters, _| {
        if let Some(topic) = clusters.target.get_mut(&"orders".into()) {
            topic.config.insert("max.message.bytes".into(), "2000".into());
        }
        Answer::Obey
    });
    let (exit, world) = Kit::new(world).run();
    assert!(matches!(exit, Exit::Halted(_)), "{exit:?}");
    let mut clusters = world.clusters;
    let topic = clusters.target.get_mut(&"orders".into()).unwrap();
    topic.config.insert("max.message.bytes".into(), "10000".into());
    let world = Kit::from(clusters).with(|flow| flow.incarnation = "i-2".into()).run_to_done();
    assert_eq!(Judge::new(&world.clusters).entry("orders", 0).halted, None);
}

/// No end can be fixed for what is gone, but done it is not.
#[test]
fn a_topic_deleted_while_down_is_a_halt_and_no_success() {
    let mut clusters = Kit::from(clusters()).run_to_done().clusters;
    clusters.source.remove(&"orders".into());
    clusters.source_topic("payments", 1);
    clusters.append("payments", 0, 7);
    let (exit, world) = Kit::from(clusters).with(|flow| flow.incarnation = "i-2".into()).run();
    let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
    assert_eq!(halted.len(), 2, "{halted:?}");
    assert!(halted.values().all(|reason| reason.starts_with("deleted")), "{halted:?}");
    assert_eq!(Judge::new(&world.clusters).copies("payments", 0).len(), 7, "the others are copied");
    // Whoever does not want it any more says so.
    let without = |flow: &mut Flow| {
        flow.incarnation = "i-3".into();
        flow.filter = TopicFilter::new(&[".*".into()], &["orders".into()]).unwrap();
    };
    Kit::from(world.clusters).with(without).run_to_done();
}

/// H6: a topic is made anew while nobody runs, and is no longer than what was copied of the old one. A run that has no
/// lane yet must not take one position for the other.
#[test]
fn a_topic_made_anew_while_down_is_a_halt_and_no_success() {
    let one_lane = |flow: &mut Flow| flow.lanes = 1;
    let mut clusters = Kit::new(ScriptedWorld::new(clusters(), 1)).with(one_lane).run_to_done().clusters;
    clusters.source.remove(&"orders".into());
    clusters.source_topic("orders", 2);
    clusters.append("orders", 0, 7);
    let mut world = ScriptedWorld::new(clusters, 1);
    world.lanes_offered = Vec::new();
    let offer = GroupEvent::Offered { turn: Turn(50), lanes: vec![LaneId(0)] };
    let world = world.at(20_000, Event::Group(offer));
    let again = |flow: &mut Flow| (flow.lanes, flow.incarnation) = (1, "i-2".into());
    let (exit, _) = Kit::new(world).with(again).run();
    let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
    assert_eq!(halted.len(), 2, "{halted:?}");
    assert!(halted.values().all(|reason| reason.starts_with("recreated")), "{halted:?}");
}

/// H5: a listing lacks a topic that is there. The run must reach its end too.
#[test]
fn a_topic_missing_from_the_first_listing_is_not_left_out_of_a_bounded_run() {
    let mut clusters = Kit::from(clusters()).run_to_done().clusters;
    clusters.append("orders", 0, 5);
    let mut hidden = false;
    let world = ScriptedWorld::new(clusters, 2).scripted(move |clusters, command| match command {
        Command::Describe { side: Side::Source, ask, topics: Topics::All } if !hidden => {
            hidden = true;
            let listing =
                Listing { cluster_id: clusters.source_id.clone(), brokers: 1, ..Listing::default() };
            Answer::Events(vec![Event::Described { side: Side::Source, ask: *ask, answer: Ok(listing) }])
        }
        _ => Answer::Obey,
    });
    let quick = |flow: &mut Flow| {
        flow.incarnation = "i-2".into();
        flow.refresh = Duration::from_secs(2);
    };
    let world = Kit::new(world).with(quick).run_to_done();
    assert_eq!(Judge::new(&world.clusters).copies("orders", 0).len(), 35);
}

/// The same of a flow that has never copied anything: no ledger tells what the listing lacks.
#[test]
fn a_topic_missing_from_the_first_listing_is_not_left_out_of_a_first_run() {
    let mut all = clusters();
    all.source_topic("payments", 1);
    all.append("payments", 0, 5);
    for lacking in [vec!["orders", "payments"], vec!["orders"], vec!["payments"]] {
        let mut hidden = false;
        let world = ScriptedWorld::new(all.clone(), 2).scripted(move |clusters, command| match command {
            Command::Describe { side: Side::Source, ask, topics: Topics::All } if !hidden => {
                hidden = true;
                let listed = clusters.source.iter().filter(|(name, _)| !lacking.contains(&name.as_str()));
                let topics = listed.map(|(name, topic)| {
                    let partitions = topic.logs.len() as u32;
                    (name.clone(), TopicInfo { id: topic.id, partitions, internal: false })
                });
                let topics = topics.collect();
                let cluster_id = clusters.source_id.clone();
                let listing = Listing { cluster_id, brokers: 1, topics, ..Listing::default() };
                Answer::Events(vec![Event::Described { side: Side::Source, ask: *ask, answer: Ok(listing) }])
            }
            _ => Answer::Obey,
        });
        Kit::new(world).run_to_done();
    }
}

/// Right before the last commit the target topic is made anew, and is as long: the run is not done, the partition halts.
#[test]
fn a_copy_in_another_topic_is_no_end_of_a_bounded_run() {
    let mut changed = false;
    let world = ScriptedWorld::new(clusters(), 1).scripted(move |clusters, command| {
        let settles = matches!(command, Command::Lane(_, _, LaneCommand::Settle { .. }));
        let has_copies = clusters
            .target
            .get(&"orders".into())
            .is_some_and(|topic| topic.logs.iter().map(Vec::len).sum::<usize>() == 60);
        if settles && has_copies && !changed {
            changed = true;
            let old = clusters.target.remove(&"orders".into()).unwrap();
            let (name, config) = ("orders".into(), old.config);
            clusters.create(&NewTopic { name, partitions: 2, replication_factor: None, config });
            clusters.target.get_mut(&"orders".into()).unwrap().logs = old.logs;
        }
        Answer::Obey
    });
    let (exit, world) = Kit::new(world).with(|flow| flow.lanes = 1).run();
    let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
    assert_eq!(halted.len(), 2);
    let halt = |partition| Judge::new(&world.clusters).entry("orders", partition).halted.clone();
    for partition in 0..2 {
        assert_eq!(halt(partition).map(|halt| halt.reason), Some(HaltReason::Recreated));
    }
}

/// A commit of unknown outcome while leaving is left to the next owner.
#[test]
fn an_unknown_commit_on_the_way_out_is_unsettled_and_the_next_run_goes_on() {
    for applied in [false, true] {
        let world = ScriptedWorld::new(clusters(), 2)
            .scripted(move |_, command| match command {
                Command::Lane(_, _, LaneCommand::Settle { records })
                    if records.iter().any(|it| it.key.starts_with(br#"{"kind":"entry"#)) =>
                {
                    let failed = vec![LaneEvent::Failed(Step::Settle, Failure::Unknown("timed out".into()))];
                    if applied { Answer::ObeyAndSay(failed) } else { Answer::Instead(failed) }
                }
                _ => Answer::Obey,
            })
            .upon(is_copying, Event::Stop(Urgency::Settle));
        let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
        assert!(matches!(exit, Exit::Unsettled(_)), "{exit:?}");
        Judge::new(&world.clusters).sound();
        Kit::from(world.clusters).with(|flow| flow.incarnation = "i-2".into()).run_to_done();
    }
}

/// There is time for it, and readers of the target need not wait for whoever takes the lane next.
#[test]
fn a_lane_that_is_given_up_aborts_what_it_cannot_settle() {
    let is_entry = |key: &[u8]| key.windows(5).any(|part| part == b"entry");
    let world = ScriptedWorld::new(clusters(), 2)
        .scripted(move |_, command| match command {
            Command::Lane(_, _, LaneCommand::Settle { records })
                if records.iter().any(|it| is_entry(&it.key)) =>
            {
                let failure = Failure::Abort("not acknowledged in time".into());
                Answer::Instead(vec![LaneEvent::Failed(Step::Settle, failure)])
            }
            _ => Answer::Obey,
        })
        .upon(is_copying, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert!(matches!(exit, Exit::Unsettled(_)), "{exit:?}");
    assert_ne!(count(&world, |it| matches!(it, Command::Lane(_, _, LaneCommand::Abort))), 0);
}
