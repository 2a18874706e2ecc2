//! What is said of an end, of one process or of all, is held against what is so.

use super::clusters::{Clusters, Side};
use super::copier::{Copier, Habit};
use super::{filled, named, tp};
use kafka_types::{SourcePartition, TransactionResult};
use sim_tests::oracle::{Circumstances, Ended, Invariant, Lag, Over, Standstill, exits_true, unhealed};

fn place() -> SourcePartition {
    SourcePartition::new("orders", 0)
}

fn is_true(ended: Ended, circumstances: &Circumstances) -> bool {
    exits_true::check(0, 1, ended, "so", circumstances).is_none()
}

#[test]
fn how_a_process_ends_is_so() {
    let bounded = Circumstances { is_bounded: true, ..Circumstances::default() };
    let stopped = Circumstances { was_told_to_stop: true, ..Circumstances::default() };
    let at_rest = Circumstances { had_all_settled: true, ..stopped.clone() };
    for (ended, passes, caught) in [
        (Ended::Done, &bounded, &Circumstances { short_of: Some("p".into()), ..bounded.clone() }),
        (Ended::Done, &bounded, &Circumstances { untold: Some(place()), ..bounded.clone() }),
        (Ended::Done, &stopped, &Circumstances::default()),
        (Ended::Halted, &bounded, &Circumstances { never_halted: vec![place()], ..bounded.clone() }),
        (Ended::Halted, &bounded, &Circumstances { short_of: Some("p".into()), ..bounded.clone() }),
        (Ended::OpenTransactions, &bounded, &Circumstances { never_open: vec![place()], ..bounded.clone() }),
        (Ended::Unsettled, &stopped, &at_rest),
        (
            Ended::Unreachable,
            &Circumstances { was_troubled: true, ..Circumstances::default() },
            &Circumstances::default(),
        ),
        (
            Ended::Configuration,
            &Circumstances { ledger_is_grown: true, ..Circumstances::default() },
            &bounded,
        ),
        (
            Ended::Replaced,
            &Circumstances { was_fenced_by_instance: true, ..Circumstances::default() },
            &bounded,
        ),
    ] {
        assert!(is_true(ended, passes), "{ended:?} {passes:?}");
        assert!(!is_true(ended, caught), "{ended:?} {caught:?}");
    }
    assert!(!is_true(Ended::Internal, &bounded) && !is_true(Ended::NotAuthorized, &bounded));
}

#[test]
fn open_transactions_are_known_with_their_time() {
    let mut clusters = filled();
    let before = clusters.now() + 1;
    assert!(!clusters.oracle.was_open_since(&place(), before));
    let mut producer = clusters.init(Side::Source, "slow");
    clusters.send(Side::Source, &mut producer, &tp(), named("open"));
    assert!(clusters.oracle.was_open_since(&place(), clusters.now() + 1_000));
    clusters.end(Side::Source, &producer, TransactionResult::Commit);
    assert!(clusters.oracle.was_open_since(&place(), before));
    assert!(!clusters.oracle.was_open_since(&place(), clusters.now() + 1));
    assert!(!clusters.oracle.was_open_since(&SourcePartition::new("orders", 1), 0));
}

#[test]
fn halts_are_known_with_their_time() {
    let mut clusters = filled();
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 3);
    assert!(!clusters.oracle.was_halted_since(&place(), 0));
    let now = clusters.now();
    clusters.source.delete_records_below(now, &tp(), 6);
    clusters.observe();
    copier.halt(&mut clusters, "gap", "the source deleted offsets 3 to 5 uncopied");
    assert_eq!(clusters.oracle.violations(), []);
    assert!(clusters.oracle.was_halted_since(&place(), clusters.now() + 1_000), "it stands");
    copier.settle_nothing(&mut clusters);
    let lifted = clusters.now();
    assert!(clusters.oracle.was_halted_since(&place(), now));
    assert!(!clusters.oracle.was_halted_since(&place(), lifted + 1));
}

fn standstill() -> Standstill {
    let lag = Lag { partition: place(), position: 3, end: 9, records: 6 };
    let scene = "instance 1 owns 0 lanes".to_owned();
    Standstill { at: 7, lags: vec![lag], untold: None, going_on: None, scene }
}

#[test]
fn what_does_not_heal_is_stuck_or_goes_round_or_says_nothing() {
    let named = |standstill: &Standstill| -> Vec<Invariant> {
        unhealed(standstill).into_iter().map(|violation| violation.invariant).collect()
    };
    assert_eq!(named(&standstill()), [Invariant::Stuck]);
    let rejoining = Standstill { going_on: Some("rebalances"), ..standstill() };
    assert_eq!(named(&rejoining), [Invariant::Livelock]);
    assert!(unhealed(&rejoining)[0].text.contains("rebalances go on"));
    let silent = Standstill { lags: Vec::new(), untold: Some(place()), ..standstill() };
    assert_eq!(named(&silent), [Invariant::LossReports]);
}

fn audited(prepare: impl FnOnce(&mut Clusters, &mut Copier)) -> Vec<Invariant> {
    let mut clusters = filled();
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 3);
    prepare(&mut clusters, &mut copier);
    assert_eq!(clusters.oracle.violations(), []);
    let now = clusters.now();
    clusters.oracle.audit(now, Over::AtRest);
    clusters.oracle.violations().iter().map(|violation| violation.invariant).collect()
}

#[test]
fn what_nobody_settled_shows_in_the_audit() {
    assert_eq!(audited(|_, _| {}), []);
    let again = audited(|clusters, _| {
        let (_, first) = clusters.committed(Side::Source, &tp(), 0).remove(0);
        clusters.produce_plain(Side::Target, &tp(), vec![first]);
    });
    assert!(again.contains(&Invariant::NothingDoubled), "{again:?}");
    let foreign = audited(|clusters, _| clusters.produce_plain(Side::Target, &tp(), named("foreign")));
    assert!(foreign.contains(&Invariant::EqualBytes), "{foreign:?}");
    let other = audited(|clusters, _| {
        clusters.create(Side::Target, "payments", 1);
        let payments = kafka_types::TopicPartition::new("payments", 0);
        clusters.produce_plain(Side::Target, &payments, named("foreign"));
    });
    assert!(other.contains(&Invariant::LedgerTrue), "{other:?}");
}

/// What an election cuts away after a bounded run has begun need not have been there when it looked where the log ends;
/// what is left below must be reached all the same.
#[test]
fn a_bounded_run_need_not_reach_what_was_cut_away_since() {
    let mut clusters = filled();
    let behind = clusters.produce_behind_a_replica(&tp(), named("lost"));
    let ends = clusters.oracle.ends(&clusters.source);
    clusters.elect_uncleanly(&tp(), behind);
    clusters.produce_plain(Side::Source, &tp(), named("after"));
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 8);
    let short = clusters.oracle.short_of(&ends, &clusters.source, &clusters.target, |_| false);
    assert!(short.is_some_and(|why| why.contains("1 records below")));
    copier.copy(&mut clusters, 1);
    assert_eq!(clusters.oracle.short_of(&ends, &clusters.source, &clusters.target, |_| false), None);
}
