//! What a halt says is held against what happened: which side, since when, and where.

use super::clusters::{Clusters, Side};
use super::copier::{Copier, Habit};
use super::{filled, made_again, named, tp};
use kafka_types::{TopicId, TransactionResult};
use sim_tests::oracle::Invariant;

/// What is said of a halt with these words, whatever became of the clusters before.
fn judged(reason: &str, detail: &str, mut clusters: Clusters, mut copier: Copier) -> Result<(), String> {
    copier.halt(&mut clusters, reason, detail);
    match clusters.oracle.violations() {
        [] => Ok(()),
        [violation, ..] => {
            assert_eq!(violation.invariant, Invariant::LossReports, "{violation}");
            Err(violation.text.clone())
        }
    }
}

/// Nine records are copied, to position 12, of which an election then takes those from offset 9 on.
fn cut_after_copying() -> (Clusters, Copier) {
    let mut clusters = Clusters::new();
    clusters.create(Side::Source, "orders", 2);
    clusters.create(Side::Target, "orders", 2);
    clusters.create(Side::Target, "verbatim.sim.ledger.internal", 1);
    (0..3).for_each(|run| clusters.produce_plain(Side::Source, &tp(), named(&format!("r{run}-"))));
    let behind = clusters.produce_behind_a_replica(&tp(), named("lost"));
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 12);
    clusters.elect_uncleanly(&tp(), behind);
    (clusters, copier)
}

#[test]
fn a_truncation_is_told_with_its_place() {
    for (is_so, detail) in [
        (true, "the source log ends at 9, below the position 12"),
        (false, "the source log ends at 8, below the position 12"),
        (false, "the source log ends at 12, below the position 12"),
        (false, "the source log ends at 9, below the position 13"),
        (true, "the source log was cut back, and differs from what was read"),
        (true, "the source log was cut back, and differs from what was read from offset 9 on"),
        (false, "the source log was cut back, and differs from what was read from offset 8 on"),
        (false, "the source log was cut back, and differs from what was read from offset 13 on"),
    ] {
        let (clusters, copier) = cut_after_copying();
        let judged = judged("truncated", detail, clusters, copier);
        assert_eq!(judged.is_ok(), is_so, "{detail}: {judged:?}");
    }
}

/// An election takes away the marker that had aborted a transaction, whose records the producer's next one commits: they
/// show where none were, before the place to which the log was cut back.
#[test]
fn a_truncation_that_takes_a_marker_shows_at_the_record_that_it_had_aborted() {
    for (is_so, place) in [(true, 3), (true, 5), (false, 2), (true, 6)] {
        let mut clusters = Clusters::new();
        clusters.create(Side::Source, "orders", 2);
        clusters.create(Side::Target, "orders", 2);
        clusters.create(Side::Target, "verbatim.sim.ledger.internal", 1);
        clusters.produce_plain(Side::Source, &tp(), named("a"));
        let mut producer = clusters.init(Side::Source, "shop");
        clusters.send(Side::Source, &mut producer, &tp(), named("aborted"));
        let view = clusters.source.partition_view(&tp()).expect("it exists");
        let behind = *view.in_sync.iter().find(|it| Some(**it) != view.leader).expect("a follower");
        let now = clusters.now();
        clusters.source.stall_replica(now, &tp(), behind, true);
        clusters.end(Side::Source, &producer, TransactionResult::Abort);
        assert_eq!(clusters.produce_behind_a_replica(&tp(), named("lost")), behind);
        let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
        copier.copy(&mut clusters, 12);
        clusters.elect_uncleanly(&tp(), behind);
        clusters.send(Side::Source, &mut producer, &tp(), named("b"));
        clusters.end(Side::Source, &producer, TransactionResult::Commit);
        let detail =
            format!("the source log was cut back, and differs from what was read from offset {place} on");
        let judged = judged("truncated", &detail, clusters, copier);
        assert_eq!(judged.is_ok(), is_so, "{place}: {judged:?}");
    }
}

/// What was cut off before the first record was read is nobody's loss.
#[test]
fn a_truncation_is_one_only_for_who_had_read_before() {
    let mut clusters = filled();
    let behind = clusters.produce_behind_a_replica(&tp(), named("lost"));
    clusters.elect_uncleanly(&tp(), behind);
    clusters.produce_plain(Side::Source, &tp(), named("after"));
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 12);
    assert_eq!(clusters.oracle.violations(), []);
    let detail = "the source log was cut back, and differs from what was read";
    assert!(judged("truncated", detail, clusters, copier).is_err());
}

#[test]
fn the_topic_that_is_gone_is_named() {
    for gone in [Side::Source, Side::Target] {
        for said in [Side::Source, Side::Target] {
            let mut clusters = filled();
            let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
            copier.copy(&mut clusters, 3);
            clusters.delete(gone, "orders");
            let side = if said == Side::Source { "source" } else { "target" };
            let judged = judged("deleted", &format!("{side} topic orders was deleted"), clusters, copier);
            assert_eq!(judged.is_ok(), gone == said, "{gone:?} {said:?}: {judged:?}");
        }
    }
}

#[test]
fn a_topic_made_anew_is_told_with_both_ids() {
    let recreated = |detail: fn(TopicId, TopicId) -> String| {
        let mut clusters = filled();
        let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
        copier.copy(&mut clusters, 3);
        clusters.recreate(Side::Source, "orders", 2);
        let now = clusters.topic_id(Side::Source, "orders");
        let detail = detail(copier.source_id, now);
        judged("recreated", &detail, clusters, copier)
    };
    assert_eq!(recreated(|was, now| made_again("source", was, now)), Ok(()));
    assert!(recreated(|was, now| made_again("target", was, now)).is_err());
    assert!(recreated(|was, now| made_again("source", now, was)).is_err());
    assert!(recreated(|was, _| made_again("source", was, TopicId(7))).is_err());
}

#[test]
fn a_topic_that_was_only_deleted_was_not_made_again() {
    let mut clusters = filled();
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    copier.copy(&mut clusters, 3);
    clusters.delete(Side::Source, "orders");
    let detail = made_again("source", copier.source_id, TopicId(7));
    assert!(judged("recreated", &detail, clusters, copier).is_err());
}

#[test]
fn a_denial_is_told_only_where_somebody_denied() {
    for is_denied in [true, false] {
        let mut clusters = filled();
        let copier = Copier::new(&mut clusters, Habit::Correct, tp());
        if is_denied {
            let now = clusters.now();
            clusters.oracle.topic_denied(now, "orders".into());
        }
        let detail = "the source cluster refuses Read on Topic orders";
        assert_eq!(judged("not-authorized", detail, clusters, copier).is_ok(), is_denied);
    }
}
