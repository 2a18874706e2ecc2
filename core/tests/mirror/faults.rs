//! Each step of a lane's work fails in each way, once: all is copied all the same, exactly once.

use crate::kit::{Answer, Clusters, Judge, Kit, ScriptedWorld};
use kafka_types::{SourceOffset, SourcePartition};
use verbatim_core::batch::Acknowledged;
use verbatim_core::command::{Command, LaneCommand};
use verbatim_core::event::{LaneEvent, Refused, SourceStop, Step};
use verbatim_core::failure::{Failure, Refusal, Side, Trouble};
use verbatim_core::ledger::{Claim, Record, Terms};
use verbatim_core::{Attempt, Exit, LaneId};

fn clusters() -> Clusters {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 4);
    for partition in 0..4 {
        clusters.append("orders", partition, 35);
    }
    clusters
}

fn step_of(command: &LaneCommand) -> Option<Step> {
    match command {
        LaneCommand::Open => Some(Step::Open),
        LaneCommand::Replay { .. } => Some(Step::Replay),
        LaneCommand::ReadClaims => Some(Step::ReadClaims),
        LaneCommand::Prepare { .. } => Some(Step::Prepare),
        LaneCommand::Produce { .. } => Some(Step::Produce),
        LaneCommand::Settle { .. } => Some(Step::Settle),
        LaneCommand::Abort => Some(Step::Abort),
        _ => None,
    }
}

/// Answers the n-th command of a step as told, and lets all others pass.
fn nth(step: Step, n: usize, say: impl Fn(&LaneCommand) -> Answer + 'static) -> ScriptedWorld {
    let mut seen = 0;
    ScriptedWorld::new(clusters(), 2).scripted(move |_, command| {
        let Command::Lane(_, _, command) = command else { return Answer::Obey };
        if step_of(command) == Some(step) {
            seen += 1;
            if seen == n {
                return say(command);
            }
        }
        match (step, command) {
            // What leads to these steps.
            (Step::Abort, LaneCommand::Produce { batch, .. }) if seen == 0 => {
                let refusal = Refusal::Collateral(Failure::Abort("purged".into()));
                let refused = Refused { refusal, record: None };
                Answer::Instead(vec![LaneEvent::Acked(*batch, Err(refused))])
            }
            (Step::ReadClaims, LaneCommand::Produce { .. }) if seen == 0 => {
                Answer::Instead(vec![LaneEvent::Failed(Step::Settle, Failure::Fenced("timed out".into()))])
            }
            _ => Answer::Obey,
        }
    })
}

const STEPS: [Step; 7] =
    [Step::Open, Step::Replay, Step::ReadClaims, Step::Prepare, Step::Produce, Step::Settle, Step::Abort];

#[test]
fn every_step_survives_every_passing_failure_applied_or_not() {
    let text = || "scripted".to_string();
    let failures = [
        Failure::Retry(text()),
        Failure::Abort(text()),
        Failure::Fenced(text()),
        Failure::Unknown(text()),
        Failure::Fatal(Trouble::Passing(text())),
        Failure::Fatal(Trouble::Unreachable(text())),
    ];
    for step in STEPS {
        for failure in &failures {
            // Whether a step was carried out is known unless its outcome is unknown.
            let unknown = matches!(failure, Failure::Unknown(_) | Failure::Fenced(_));
            for applied in [false, true].into_iter().take(1 + usize::from(unknown)) {
                for n in 1..=4 {
                    let failed = LaneEvent::Failed(step, failure.clone());
                    let world = nth(step, n, move |_| match applied {
                        true => Answer::ObeyAndSay(vec![failed.clone()]),
                        false => Answer::Instead(vec![failed.clone()]),
                    });
                    let (exit, world) = Kit::new(world).run();
                    let case = format!("{step:?} {failure:?} applied: {applied}, number {n}");
                    assert_eq!(exit, Exit::Done, "{case}");
                    Judge::new(&world.clusters).all_copied();
                }
            }
        }
    }
}

#[test]
fn what_nobody_but_an_operator_can_repair_ends_the_mirror() {
    let denied =
        || Trouble::NotAuthorized { resource: "TransactionalId x".into(), operation: "Write".into() };
    for step in STEPS {
        let failed = LaneEvent::Failed(step, Failure::Fatal(denied()));
        let (exit, world) = Kit::new(nth(step, 1, move |_| Answer::Instead(vec![failed.clone()]))).run();
        assert_eq!(exit, Exit::NotAuthorized(Side::Target, denied()), "{step:?}");
        Judge::new(&world.clusters).sound();

        let failed = LaneEvent::Failed(step, Failure::Fatal(Trouble::Refused("no".into())));
        let (exit, _) = Kit::new(nth(step, 1, move |_| Answer::Instead(vec![failed.clone()]))).run();
        assert!(matches!(exit, Exit::Configuration(_)), "{step:?}: {exit:?}");
    }
}

/// H10: accepted, acknowledged and held records must agree.
#[test]
fn a_miscounted_batch_is_never_settled() {
    for (accepted, acknowledged) in [(0, 0), (9, 9), (10, 9), (9, 10), (11, 11)] {
        let world = nth(Step::Produce, 2, move |command| {
            let LaneCommand::Produce { batch, .. } = command else { unreachable!() };
            let acknowledged = Acknowledged { accepted, acknowledged, run: None };
            Answer::ObeyAndSay(vec![LaneEvent::Acked(*batch, Ok(acknowledged))])
        });
        let world = Kit::new(world).run_to_done();
        let aborts = world.log.iter().filter(|it| matches!(it, Command::Lane(_, _, LaneCommand::Abort)));
        assert_eq!(aborts.count(), 1, "accepted {accepted}, acknowledged {acknowledged}");
    }
}

/// S11: acknowledgements of repeated sends carry no offset.
#[test]
fn an_acknowledgement_without_an_offset_leaves_the_end_open() {
    let world = nth(Step::Produce, 1, move |command| {
        let LaneCommand::Produce { batch, .. } = command else { unreachable!() };
        let acknowledged = Acknowledged { accepted: 10, acknowledged: 10, run: None };
        Answer::ObeyAndSay(vec![LaneEvent::Acked(*batch, Ok(acknowledged))])
    });
    let world = Kit::new(world).run_to_done();
    let judge = Judge::new(&world.clusters);
    assert!(judge.entries.values().any(|entry| entry.target_end.is_none() && entry.run.is_none()));
}

/// H9: the last claim tells a time-out from a fence.
#[test]
fn a_lane_that_another_instance_claimed_is_left_until_the_group_answers_anew() {
    let mut done = false;
    let world = ScriptedWorld::new(clusters(), 2).scripted(move |clusters, command| {
        let is_produce = matches!(command, Command::Lane(LaneId(1), _, LaneCommand::Produce { .. }));
        if is_produce && !done {
            done = true;
            clusters.fence(LaneId(1));
            let terms = Terms::new(2, "source", "target", "{topic}".into());
            let claim = Claim { incarnation: "other".into(), attempt: Attempt(9), terms };
            clusters.write_ledger(LaneId(1), vec![Record::Claim(claim).encode()]);
        }
        Answer::Obey
    });
    let world = Kit::new(world).run_to_done();
    let opens: Vec<usize> =
        positions(&world.log, |it| matches!(it, Command::Lane(LaneId(1), _, LaneCommand::Open)));
    let joins = positions(&world.log, |it| matches!(it, Command::JoinGroup));
    assert_eq!((opens.len(), joins.len()), (2, 2));
    assert!(joins[1] < opens[1], "taken again only once the group was asked anew");
}

fn positions(log: &[Command], is: impl Fn(&Command) -> bool) -> Vec<usize> {
    log.iter().enumerate().filter(|(_, command)| is(command)).map(|(at, _)| at).collect()
}

/// H11: a refusal speaks of the whole batch; only a record that went alone is to blame.
#[test]
fn one_record_too_large_halts_its_partition_behind_all_before_it() {
    for (poisoned, clean) in [(0, true), (17, true), (34, true), (0, false), (17, false), (34, false)] {
        let mut clusters = Clusters::new();
        clusters.source_topic("orders", 2);
        clusters.append("orders", 1, 35);
        for offset in 0..35 {
            clusters.append_sized("orders", 0, if offset == poisoned { 5_000 } else { 100 });
        }
        let limited = |clusters: &mut Clusters| {
            if let Some(topic) = clusters.target.get_mut(&"orders".into()) {
                topic.config.insert("max.message.bytes".into(), "2000".into());
            }
        };
        let world = ScriptedWorld::new(clusters, 2).scripted(move |clusters, command| {
            limited(clusters);
            if clean { Answer::Obey } else { unclean_abort(command) }
        });
        let (exit, world) = Kit::new(world).run();
        let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
        assert_eq!(halted.len(), 1);
        let judge = Judge::new(&world.clusters);
        judge.sound();
        let entry = judge.entry("orders", 0);
        assert_eq!(entry.next.0, poisoned, "all before it is copied");
        assert_eq!(entry.halted.as_ref().and_then(|halt| halt.offset), Some(entry.next));
        assert_eq!(judge.entry("orders", 1).next.0, 35, "the others went on");
    }
}

/// What a target refuses leaves a gap in the producer's sequence numbers, and librdkafka's abort does not close
/// it: the lane must be taken again, and still know what to send alone and where to halt.
fn unclean_abort(command: &Command) -> Answer {
    match command {
        Command::Lane(_, _, LaneCommand::Abort) => {
            let failure = Failure::Unknown("a gap in the sequence numbers".into());
            Answer::Instead(vec![LaneEvent::Failed(Step::Abort, failure)])
        }
        _ => Answer::Obey,
    }
}

#[test]
fn a_batch_too_large_as_a_whole_is_copied_record_by_record() {
    for clean in [true, false] {
        let mut clusters = Clusters::new();
        clusters.source_topic("orders", 1);
        clusters.append("orders", 0, 50);
        let world = ScriptedWorld::new(clusters, 2).scripted(move |clusters, command| {
            if let Some(topic) = clusters.target.get_mut(&"orders".into()) {
                topic.config.insert("max.message.bytes".into(), "150".into());
            }
            if clean { Answer::Obey } else { unclean_abort(command) }
        });
        Kit::new(world).run_to_done();
    }
}

/// An error that comes back at once must not have the lane read and produce the same for ever.
#[test]
fn a_lane_that_always_fails_is_paused_and_then_left_to_others() {
    let world = ScriptedWorld::new(clusters(), 2).scripted(|_, command| match command {
        Command::Lane(LaneId(1), _, LaneCommand::Produce { batch, .. }) => {
            let refusal = Refusal::Collateral(Failure::Abort("broken".into()));
            Answer::Instead(vec![LaneEvent::Acked(*batch, Err(Refused { refusal, record: None }))])
        }
        _ => Answer::Obey,
    });
    let stop = verbatim_core::event::Event::Stop(verbatim_core::event::Urgency::Now);
    let mut world = world.at(120_000, stop);
    world.steps_left = 3_000;
    let (exit, world) = Kit::new(world).run();
    assert!(matches!(exit, Exit::Unsettled(_)), "{exit:?}");
    let leaves = positions(&world.log, |it| matches!(it, Command::LeaveGroup)).len();
    assert!((1..=4).contains(&leaves), "left {leaves} times");
}

/// A transaction is refused as a whole: the first batch to hear of it may be one for another topic.
#[test]
fn a_denied_topic_halts_alone_whoever_hears_of_it_first() {
    let mut clusters = Clusters::new();
    for topic in ["orders", "payments"] {
        clusters.source_topic(topic, 1);
        clusters.append(topic, 0, 35);
    }
    let mut asked = false;
    let world = ScriptedWorld::new(clusters, 1).scripted(move |_, command| match command {
        Command::Lane(_, _, LaneCommand::Abort) => {
            asked = false;
            Answer::Obey
        }
        Command::Lane(_, _, LaneCommand::Produce { target, .. }) if target.topic.as_str() == "orders" => {
            asked = true;
            Answer::Instead(Vec::new())
        }
        Command::Lane(_, _, LaneCommand::Produce { batch, .. }) if asked => {
            let (resource, operation) = ("Topic orders".into(), "Write".into());
            let denied = Failure::Fatal(Trouble::NotAuthorized { resource, operation });
            let refused = Refused { refusal: Refusal::Collateral(denied), record: None };
            Answer::Instead(vec![LaneEvent::Acked(*batch, Err(refused))])
        }
        _ => Answer::Obey,
    });
    let (exit, world) = Kit::new(world).with(|flow| flow.lanes = 1).run();
    let Exit::Halted(halted) = exit else { panic!("{exit:?}") };
    let halted: Vec<String> = halted.keys().map(ToString::to_string).collect();
    assert_eq!(halted, ["orders/0"]);
    assert_eq!(Judge::new(&world.clusters).copies("payments", 0).len(), 35);
}

/// The ledger would say that the partition stands before records which it has halted behind.
#[test]
fn a_halt_at_a_place_goes_with_the_run_that_came_to_it() {
    let mut is_over = false;
    let world = ScriptedWorld::new(clusters(), 2).scripted(move |_, command| match command {
        Command::Lane(_, _, LaneCommand::Produce { batch, target, .. }) if !is_over => {
            is_over = true;
            let place = SourcePartition { topic: target.topic.clone(), partition: target.partition };
            let stop = SourceStop::Unsendable { offset: SourceOffset(10), why: "for once".into() };
            let refusal = Refusal::Collateral(Failure::Abort("purged".into()));
            let refused = Refused { refusal, record: None };
            Answer::Instead(vec![LaneEvent::Stopped(place, stop), LaneEvent::Acked(*batch, Err(refused))])
        }
        _ => Answer::Obey,
    });
    Kit::new(world).run_to_done();
}
