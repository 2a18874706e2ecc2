//! Where copying starts leaves out nothing that was to be copied.

use super::clusters::{Clusters, Side};
use super::copier::{Copier, Habit};
use super::{filled_under, named, tp};
use sim_tests::oracle::{FlowNames, Invariant, Oracle};

/// What the oracle says of a pin in a flow that is to leave out what was there at first, or not.
fn pinned(
    starts_at_end: bool,
    prepare: impl FnOnce(&mut Clusters),
    pin: impl FnOnce(&mut Copier, &mut Clusters),
) -> Option<Invariant> {
    let names = FlowNames { starts_at_end, ..FlowNames::of("sim", "") };
    let mut clusters = filled_under(Oracle::new(names));
    prepare(&mut clusters);
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    pin(&mut copier, &mut clusters);
    clusters.oracle.violations().first().map(|violation| violation.invariant)
}

const LOST: Option<Invariant> = Some(Invariant::NothingLost);

#[test]
fn only_a_flow_that_is_to_start_at_the_end_does() {
    let at_the_end = |copier: &mut Copier, clusters: &mut Clusters| {
        let end = clusters.last_stable(Side::Source, &tp());
        copier.pin(clusters, &[end, 0], true);
        // Nothing follows: there is no lag, and no entry that could show it.
        assert!(clusters.oracle.lag(&clusters.source).is_empty());
    };
    assert_eq!(pinned(true, |_| {}, at_the_end), None);
    assert_eq!(pinned(false, |_| {}, at_the_end), LOST);
}

#[test]
fn a_topic_that_came_later_starts_at_its_beginning() {
    let later = |copier: &mut Copier, clusters: &mut Clusters| copier.pin(clusters, &[3, 0], false);
    assert_eq!(pinned(true, |_| {}, later), LOST);
    let at_its_beginning =
        |copier: &mut Copier, clusters: &mut Clusters| copier.pin(clusters, &[0, 0], false);
    assert_eq!(pinned(true, |_| {}, at_its_beginning), None);
}

#[test]
fn the_end_is_where_readers_of_committed_records_stand() {
    let open = |clusters: &mut Clusters| {
        let mut producer = clusters.init(Side::Source, "slow");
        clusters.send(Side::Source, &mut producer, &tp(), named("open"));
    };
    let stable = |copier: &mut Copier, clusters: &mut Clusters| {
        let end = clusters.last_stable(Side::Source, &tp());
        copier.pin(clusters, &[end, 0], true);
    };
    assert_eq!(pinned(true, open, stable), None);
    let beyond = |copier: &mut Copier, clusters: &mut Clusters| {
        let end = clusters.last_stable(Side::Source, &tp());
        copier.pin(clusters, &[end + 1, 0], true);
    };
    assert_eq!(pinned(true, open, beyond), LOST);
}

#[test]
fn what_the_source_had_deleted_by_then_is_left_out() {
    for (start, expected) in [(2, None), (3, LOST)] {
        let delete = |clusters: &mut Clusters| {
            let now = clusters.now();
            clusters.source.delete_records_below(now, &tp(), 2);
            clusters.observe();
        };
        let pin = |copier: &mut Copier, clusters: &mut Clusters| copier.pin(clusters, &[start, 0], true);
        assert_eq!(pinned(false, delete, pin), expected, "{start}");
    }
}

#[test]
fn a_flow_starts_once_and_a_start_stays() {
    for (starts, is_flow_start, expected) in [
        (&[3, 0][..], false, None),
        (&[3, 0][..], true, None),
        (&[3][..], false, LOST),
        (&[2, 0][..], false, LOST),
        (&[4, 0][..], false, LOST),
        (&[4, 0][..], true, LOST),
    ] {
        let again = |copier: &mut Copier, clusters: &mut Clusters| {
            copier.pin(clusters, &[3, 0], true);
            copier.pin(clusters, starts, is_flow_start);
        };
        assert_eq!(pinned(true, |_| {}, again), expected, "{starts:?} {is_flow_start}");
    }
}

#[test]
fn a_start_says_nothing_of_a_topic_made_anew() {
    let mut clusters =
        filled_under(Oracle::new(FlowNames { starts_at_end: true, ..FlowNames::of("sim", "") }));
    let mut copier = Copier::new(&mut clusters, Habit::Correct, tp());
    let end = clusters.last_stable(Side::Source, &tp());
    copier.pin(&mut clusters, &[end, 0], true);
    assert_eq!(clusters.oracle.lag(&clusters.source), []);
    clusters.recreate(Side::Source, "orders", 2);
    clusters.produce_plain(Side::Source, &tp(), named("anew"));
    let lags = clusters.oracle.lag(&clusters.source);
    assert_eq!((lags.len(), lags[0].position, lags[0].records), (1, 0, 3));
}
