//! Starts that must write nothing, memory that must stay bounded, and ledgers that must be refused.

use crate::kit::{Answer, Clusters, Judge, Kit, ScriptedWorld};
use kafka_types::TopicName;
use std::collections::BTreeMap;
use std::time::Duration;
use verbatim_core::command::{Command, LaneCommand, NewTopic};
use verbatim_core::config::{Flow, FlowName};
use verbatim_core::event::{Event, LaneEvent, Listing, Urgency};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::ledger::{Claim, Record, Terms, wanted_settings};
use verbatim_core::route::Rename;
use verbatim_core::{Attempt, Exit, LaneId};

fn clusters() -> Clusters {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 3);
    for partition in 0..3 {
        clusters.append("orders", partition, 25);
    }
    clusters
}

fn with_ledger(change: impl FnOnce(&mut NewTopic)) -> Clusters {
    let mut clusters = clusters();
    let mut ledger = NewTopic {
        name: "verbatim.f.ledger.internal".into(),
        partitions: 2,
        replication_factor: None,
        config: wanted_settings(1),
    };
    change(&mut ledger);
    clusters.create(&ledger);
    clusters
}

fn claimed_under(terms: Terms) -> Clusters {
    let mut clusters = with_ledger(|_| {});
    let claim = Claim { incarnation: "other".into(), attempt: Attempt(1), terms };
    clusters.write_ledger(LaneId(1), vec![Record::Claim(claim).encode()]);
    clusters
}

#[test]
fn a_small_flow_is_copied_to_its_end() {
    let mut clusters = clusters();
    clusters.source_topic("payments", 1);
    clusters.append_holes("orders", 1, 3);
    clusters.append("payments", 0, 1);
    Kit::from(clusters).run_to_done();
}

/// Runs a mirror that must end before it has written anything.
#[track_caller]
fn refused(kit: Kit) -> Exit {
    let (exit, world) = kit.run();
    let writes = |command: &&Command| {
        matches!(command, Command::CreateTopics { .. } | Command::GrowTopics { .. } | Command::Lane(..))
    };
    assert_eq!(world.log.iter().find(writes), None);
    exit
}

#[track_caller]
fn misconfigured(kit: Kit, part: &str) {
    match refused(kit) {
        Exit::Configuration(text) => assert!(text.contains(part), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unfit_start_writes_nothing_and_says_why() {
    misconfigured(Kit::from(with_ledger(|ledger| ledger.partitions = 3)), "3 partitions");
    misconfigured(
        Kit::from(with_ledger(|ledger| {
            ledger.config.insert("cleanup.policy".into(), "delete".into());
        })),
        "cleanup.policy=delete",
    );
    let terms = |lanes, source, target, rename: &str| Terms::new(lanes, source, target, rename.into());
    for (terms, part) in [
        (terms(2, "elsewhere", "target", "{topic}"), "source cluster"),
        (terms(2, "source", "elsewhere", "{topic}"), "target cluster"),
        (terms(4, "source", "target", "{topic}"), "lanes"),
        (terms(2, "source", "target", "a.{topic}"), "rename rule"),
    ] {
        misconfigured(Kit::from(claimed_under(terms)), part);
    }
    let mut foreign = with_ledger(|_| {});
    let bytes = verbatim_core::command::NewLedgerRecord { key: b"x".to_vec(), value: b"y".to_vec() };
    foreign.write_ledger(LaneId(0), vec![bytes]);
    misconfigured(Kit::from(foreign), "not a ledger key");
}

#[test]
fn one_cluster_is_never_copied_onto_itself() {
    let same = || {
        let mut clusters = clusters();
        clusters.source_id = "target".into();
        clusters
    };
    misconfigured(Kit::from(same()), "onto itself");
    let again = |flow: &mut Flow| flow.rename = Rename::new("copy.{topic}").unwrap();
    misconfigured(Kit::from(same()).with(again), "copied again");
    let mut empty = Clusters::new();
    empty.source_id = "target".into();
    misconfigured(Kit::from(empty), "keep their names");
}

#[test]
fn a_cluster_that_does_not_answer_or_refuses_is_named() {
    let denied = || Trouble::NotAuthorized { resource: "Cluster".into(), operation: "Describe".into() };
    for side in [Side::Source, Side::Target] {
        let answering = |trouble: Trouble| {
            Kit::new(ScriptedWorld::new(clusters(), 2).scripted(move |_, command| match command {
                Command::Describe { side: asked, ask, .. } if *asked == side => {
                    let answer = Err(trouble.clone());
                    Answer::Events(vec![Event::Described { side, ask: *ask, answer }])
                }
                _ => Answer::Obey,
            }))
        };
        let unreachable = Trouble::Unreachable("timed out".into());
        let text = unreachable.to_string();
        assert_eq!(refused(answering(unreachable)), Exit::Unreachable(side, text));
        assert_eq!(refused(answering(denied())), Exit::NotAuthorized(side, denied()));
        let wrong = Trouble::Authentication("bad password".into());
        assert_eq!(refused(answering(wrong.clone())), Exit::NotAuthorized(side, wrong));
    }
}

/// A broker that is back within the time for connecting is waited for.
/// A process that is stopped for a minute while it starts has not waited for a minute.
#[test]
fn a_start_that_was_stopped_for_long_goes_on() {
    use verbatim_core::time::{Instant, Now, Timestamp};
    let at = |seconds| Now { instant: Instant(Duration::from_secs(seconds)), wall: Timestamp(0) };
    let mut mirror = verbatim_core::Mirror::new(at(0), Kit::from(clusters()).flow);
    mirror.take_commands();
    mirror.handle(at(60), Event::Woke);
    assert_eq!(mirror.exit(), None, "the answer may be waiting");
    let due = mirror.wake_at().expect("it still gives up at some time");
    mirror.handle(Now { instant: due, wall: Timestamp(0) }, Event::Woke);
    assert!(matches!(mirror.exit(), Some(Exit::Unreachable(..))));
}

#[test]
fn a_cluster_that_comes_late_is_waited_for() {
    let mut asked = 0;
    let world = ScriptedWorld::new(clusters(), 2).scripted(move |_, command| match command {
        Command::Describe { side: Side::Target, ask, .. } if asked < 6 => {
            asked += 1;
            let answer = Err(Trouble::Unreachable("refused".into()));
            Answer::Events(vec![Event::Described { side: Side::Target, ask: *ask, answer }])
        }
        _ => Answer::Obey,
    });
    Kit::new(world).run_to_done();
}

/// A client can know a cluster's topics before its id. Found by simulation: the claims said that the cluster had
/// no name, and every later start was refused for being another flow.
#[test]
fn a_cluster_without_its_id_is_asked_again() {
    let mut asked = BTreeMap::new();
    let world = ScriptedWorld::new(clusters(), 2).scripted(move |_, command| match command {
        Command::Describe { side, ask, .. } if asked.insert(*side, *ask).is_none() => {
            let answer = Ok(Listing { brokers: 1, ..Listing::default() });
            Answer::Events(vec![Event::Described { side: *side, ask: *ask, answer }])
        }
        _ => Answer::Obey,
    });
    let clusters = Kit::new(world).run_to_done().clusters;
    Kit::from(clusters).run_to_done();
}

/// H2: only the lane's own claim ends a replay. While it cannot be read, the lane waits; it never believes less.
#[test]
fn a_blocked_ledger_is_waited_for_and_nothing_is_copied_meanwhile() {
    let clusters = Kit::from(clusters()).run_to_done().clusters;
    let world = ScriptedWorld::new(clusters, 2).scripted(|_, command| match command {
        Command::Lane(_, _, LaneCommand::Replay { .. }) => Answer::Instead(vec![]),
        _ => Answer::Obey,
    });
    let world = world.at(300_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert_eq!(exit, Exit::Done);
    let produced = |it: &Command| matches!(it, Command::Lane(_, _, LaneCommand::Produce { .. }));
    assert!(!world.log.iter().any(produced));
    let left = world.log.iter().filter(|it| matches!(it, Command::LeaveGroup)).count();
    assert!((2..8).contains(&left), "an owner that cannot take its lanes leaves them to others: {left}");
}

#[test]
fn records_deleted_from_the_ledger_end_the_mirror() {
    let world = ScriptedWorld::new(clusters(), 2).scripted(|_, command| match command {
        Command::Lane(_, _, LaneCommand::Replay { .. }) => {
            let log_start = kafka_types::TargetOffset(4);
            Answer::Instead(vec![LaneEvent::Replayed { log_start, records: vec![] }])
        }
        _ => Answer::Obey,
    });
    let (exit, _) = Kit::new(world).run();
    assert!(matches!(exit, Exit::Configuration(_)), "{exit:?}");
}

/// H3, H4, while running: a ledger that was deleted and made again ends the mirror before it commits.
#[test]
fn a_ledger_made_anew_while_running_ends_the_mirror() {
    let mut changed = false;
    let world = ScriptedWorld::new(clusters(), 2).scripted(move |clusters, command| {
        if matches!(command, Command::Lane(_, _, LaneCommand::Produce { .. })) && !changed {
            changed = true;
            let ledger = FlowName::new("f").unwrap().ledger();
            let old = clusters.target.remove(&ledger).unwrap();
            let new = NewTopic { name: ledger, partitions: 2, replication_factor: None, config: old.config };
            clusters.create(&new);
        }
        Answer::Obey
    });
    let (exit, world) = Kit::new(world).run();
    assert!(matches!(exit, Exit::Configuration(_)), "{exit:?}");
    Judge::new(&world.clusters).sound();
}

/// H3: an instance that has nothing to settle is told too that its ledger was grown, or is another.
#[test]
fn an_idle_instance_is_told_of_its_ledger() {
    fn remake(clusters: &mut Clusters, ledger: &TopicName) {
        let old = clusters.target.remove(ledger).unwrap();
        let (name, config) = (ledger.clone(), old.config);
        clusters.create(&NewTopic { name, partitions: 2, replication_factor: None, config });
    }
    type Change = fn(&mut Clusters, &TopicName);
    let grow: Change = |clusters, ledger| clusters.target.get_mut(ledger).unwrap().logs.push(Vec::new());
    let delete: Change = |clusters, ledger| drop(clusters.target.remove(ledger));
    for (change, told) in
        [(grow, "now has 3 partitions"), (remake as Change, "made again"), (delete, "was deleted")]
    {
        let mut changed = false;
        let world = ScriptedWorld::new(clusters(), 2).interrupted(move |now, clusters| {
            if Duration::from_secs(60) <= now && !changed {
                changed = true;
                change(clusters, &FlowName::new("f").unwrap().ledger());
            }
            Vec::new()
        });
        let world = world.at(300_000, Event::Stop(Urgency::Settle));
        let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
        assert!(matches!(&exit, Exit::Configuration(text) if text.contains(told)), "{exit:?}");
        assert!(world.now().instant.0 < Duration::from_secs(120), "soon");
    }
}

/// Back-pressure: however much lies ready, and whatever its size, what is held stays within the budget and
/// one batch, and nothing ever waits for credit that does not come.
#[test]
fn what_is_held_is_bounded_and_credit_never_runs_dry() {
    const BUDGET: u64 = 2 << 20;
    for bytes in [1_000, 300_000, BUDGET / 3, BUDGET, 3 * BUDGET, 10 * BUDGET] {
        let mut clusters = Clusters::new();
        clusters.source_topic("orders", 1);
        for _ in 0..60 {
            clusters.append_sized("orders", 0, bytes);
        }
        let mut world = ScriptedWorld::new(clusters, 2).shuffled(bytes);
        world.records_max = 2;
        let world = Kit::new(world).with(|flow| flow.intake_bytes_max = BUDGET).run_to_done();
        let bound = BUDGET + 2 * bytes;
        assert!(world.held_max <= bound, "{} held of {bound} at {bytes} bytes a record", world.held_max);
    }
}

/// An idle mirror does almost nothing.
#[test]
fn an_idle_mirror_is_quiet() {
    let world = ScriptedWorld::new(clusters(), 2).at(3_600_000, Event::Stop(Urgency::Settle));
    let (exit, world) = Kit::new(world).with(|flow| flow.until = None).run();
    assert_eq!(exit, Exit::Done);
    Judge::new(&world.clusters).all_copied();
    assert!(Duration::from_secs(3_600) <= world.now().instant.0);
    assert!(world.log.len() < 400, "{} commands in an hour", world.log.len());
}
