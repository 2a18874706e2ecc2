//! The oracle judged: a copier that is right passes, and each that is wrong is found, by the promise it breaks.

mod clusters;
mod copier;
mod ends;
mod halts;
mod pins;

use clusters::{Clusters, Side, record};
use copier::{Copier, Habit};
use kafka_types::{Header, Record, TopicId, TopicPartition, TransactionResult};
use sim_tests::oracle::{FlowNames, Invariant, Oracle, Over, Violation};

fn tp() -> TopicPartition {
    TopicPartition::new("orders", 0)
}

/// Committed records with an aborted transaction among them.
fn filled() -> Clusters {
    filled_under(Oracle::new(FlowNames::of("sim", "")))
}

fn filled_under(oracle: Oracle) -> Clusters {
    let mut clusters = Clusters::new();
    clusters.oracle = oracle;
    clusters.create(Side::Source, "orders", 2);
    clusters.create(Side::Target, "orders", 2);
    clusters.create(Side::Target, "verbatim.sim.ledger.internal", 1);
    clusters.produce_plain(Side::Source, &tp(), named("a"));
    let mut producer = clusters.init(Side::Source, "shop");
    clusters.send(Side::Source, &mut producer, &tp(), named("aborted"));
    clusters.end(Side::Source, &producer, TransactionResult::Abort);
    clusters.send(Side::Source, &mut producer, &tp(), named("b"));
    clusters.end(Side::Source, &producer, TransactionResult::Commit);
    clusters.produce_plain(Side::Source, &tp(), named("c"));
    clusters
}

fn named(name: &str) -> Vec<Record> {
    let with_header = |number: i32| Record {
        headers: vec![Header { name: "h".into(), value: None }].into(),
        ..record("k", &format!("{name}{number}"))
    };
    (0..3).map(with_header).collect()
}

fn made_again(side: &str, was: TopicId, now: TopicId) -> String {
    format!("{side} topic orders was deleted and made again (topic id {was}, now {now})")
}

fn copied_with(habit: Habit, prepare: impl FnOnce(&mut Clusters)) -> Vec<Violation> {
    let mut clusters = filled();
    prepare(&mut clusters);
    let mut copier = Copier::new(&mut clusters, habit, tp());
    if habit == Habit::FalseHalt {
        copier.halt(&mut clusters, "gap", "the source deleted offsets 0 to 3 uncopied");
    }
    for _ in 0..4 {
        copier.copy(&mut clusters, 3);
    }
    clusters.oracle.violations().to_vec()
}

#[test]
fn a_correct_copier_passes_online_and_in_the_audit() {
    let mut clusters = filled();
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    for _ in 0..4 {
        copier.copy(&mut clusters, 4);
    }
    let now = clusters.now();
    clusters.oracle.audit(now, Over::AtRest);
    assert_eq!(clusters.oracle.violations(), []);
    assert_eq!(clusters.oracle.lag(&clusters.source), []);
    assert_eq!(clusters.oracle.records_settled(), 9);
}

#[test]
fn each_wrong_copier_breaks_its_promise_at_the_first_decision() {
    for (habit, invariant) in [
        (Habit::SkipsARecord, Invariant::NothingLost),
        (Habit::RepeatsARecord, Invariant::NothingDoubled),
        (Habit::SwapsTwoRecords, Invariant::OrderKept),
        (Habit::ChangesAValue, Invariant::EqualBytes),
        (Habit::DropsAKey, Invariant::EqualBytes),
        (Habit::DropsHeaders, Invariant::EqualBytes),
        (Habit::ChangesATimestamp, Invariant::EqualBytes),
        (Habit::CopiesAborted, Invariant::NothingAborted),
        (Habit::WrongPartition, Invariant::PartitionKept),
        (Habit::ForgetsTheEntry, Invariant::LedgerTrue),
        (Habit::PositionAhead, Invariant::NothingLost),
        (Habit::PositionBehind, Invariant::LedgerTrue),
        (Habit::WrongOffsetMap, Invariant::LedgerTrue),
        (Habit::FalseHalt, Invariant::LossReports),
        (Habit::ClaimsNothing, Invariant::OneWriter),
    ] {
        let violations = copied_with(habit, |_| {});
        let first = violations.first().map(|violation| violation.invariant);
        assert_eq!(first, Some(invariant), "{habit:?}: {violations:?}");
    }
}

#[test]
fn what_the_source_deleted_uncopied_must_be_reported_and_may_be() {
    let delete = |clusters: &mut Clusters| {
        let now = clusters.now();
        clusters.source.delete_records_below(now, &tp(), 2);
        clusters.observe();
    };
    let violations = copied_with(Habit::PassesOverAGap, delete);
    assert_eq!(violations[0].invariant, Invariant::NothingLost, "{violations:?}");

    let mut clusters = filled();
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    delete(&mut clusters);
    copier.halt(&mut clusters, "gap", "the source deleted offsets 0 to 1 uncopied");
    assert_eq!(clusters.oracle.violations(), []);
    copier.halt(&mut clusters, "gap", "the source deleted offsets 0 to 7 uncopied");
    assert_eq!(clusters.oracle.violations()[0].invariant, Invariant::LossReports);
}

#[test]
fn a_position_never_passes_an_open_transaction() {
    let violations = copied_with(Habit::PassesAnOpenTransaction, |clusters| {
        let mut producer = clusters.init(Side::Source, "slow");
        clusters.send(Side::Source, &mut producer, &tp(), named("open"));
    });
    assert!(violations.iter().any(|it| it.text.contains("is open")), "{violations:?}");
}

#[test]
fn a_zombie_that_nobody_fences_is_a_second_writer() {
    let mut clusters = filled();
    let mut old = Copier::new(&mut clusters, Habit::Correct, tp());
    old.copy(&mut clusters, 3);
    let _new = Copier::new(&mut clusters, Habit::Correct, tp());
    let faults = kafka_model::BrokerFaults { fencing_is_off: true, ..Default::default() };
    clusters.target.plant(faults);
    old.copy(&mut clusters, 3);
    assert_eq!(clusters.oracle.violations()[0].invariant, Invariant::OneWriter);
}

#[test]
fn records_without_a_marker_are_missed_by_the_audit_alone() {
    let mut clusters = filled();
    let faults = kafka_model::BrokerFaults { commit_marker_skips_a_partition: true, ..Default::default() };
    clusters.target.plant(faults);
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 3);
    assert_eq!(clusters.oracle.violations(), []);
    let now = clusters.now();
    clusters.oracle.audit(now, Over::AtRest);
    assert!(!clusters.oracle.violations().is_empty());
}

/// In the moment before the commit the target topic is made anew, and what the client had sent twice comes to it.
#[test]
fn a_copy_that_goes_with_its_topic_must_be_the_last_and_be_told() {
    let recreated = |next: fn(&mut Copier, &mut Clusters)| {
        let mut clusters = filled();
        let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
        copier.copy(&mut clusters, 2);
        assert_eq!(clusters.oracle.untold().count(), 0);
        copier.copy_and(&mut clusters, 4, |clusters, producer, sent| {
            clusters.recreate(Side::Target, "orders", 2);
            clusters.send_again(Side::Target, producer, &tp(), sent[1..3].to_vec());
        });
        assert_eq!(clusters.oracle.violations(), []);
        assert_eq!(clusters.oracle.untold().count(), 1);
        next(&mut copier, &mut clusters);
        let now = clusters.now();
        clusters.oracle.audit(now, Over::AtRest);
        clusters
    };
    let told = recreated(|copier, clusters| {
        let (was, now) = (copier.target_id, clusters.topic_id(Side::Target, "orders"));
        copier.halt(clusters, "recreated", &made_again("target", was, now));
    });
    assert_eq!(told.oracle.violations(), []);
    assert_eq!(told.oracle.untold().count(), 0);
    let silent = recreated(|copier, clusters| copier.copy(clusters, 1));
    assert_eq!(silent.oracle.violations()[0].invariant, Invariant::LossReports);
    let left = recreated(|_, _| {});
    assert_eq!((left.oracle.violations(), left.oracle.untold().count()), (&[][..], 1));
}

#[test]
fn only_repeats_may_come_to_a_topic_made_anew_before_the_commit() {
    type Late = fn(&[Record]) -> Vec<Record>;
    let late: [Late; 3] = [
        |_| vec![record("k", "foreign")],
        |sent| vec![sent[0].clone(), sent[2].clone()],
        |sent| vec![sent[1].clone(), sent[0].clone()],
    ];
    for late in late {
        let mut clusters = filled();
        let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
        copier.copy_and(&mut clusters, 4, |clusters, producer, sent| {
            clusters.recreate(Side::Target, "orders", 2);
            clusters.send_again(Side::Target, producer, &tp(), late(sent));
        });
        let violations = clusters.oracle.violations();
        assert_eq!(violations[0].invariant, Invariant::LedgerTrue, "{violations:?}");
    }
}

#[test]
fn what_is_left_to_copy_is_told() {
    let mut clusters = filled();
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 3);
    let lags = clusters.oracle.lag(&clusters.source);
    assert_eq!((lags.len(), lags[0].position, lags[0].records), (1, 3, 6));
}
