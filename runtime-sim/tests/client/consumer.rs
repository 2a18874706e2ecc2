use crate::bench::Bench;
use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, SourcePartition, TopicPartition};

use verbatim_core::command::{LaneCommand, Position};
use verbatim_core::event::{LaneEvent, SourceStop};

fn place() -> SourcePartition {
    SourcePartition::new("t", 0)
}

fn open(bench: &mut Bench) {
    bench.lane(LaneCommand::Open);
    assert_eq!(bench.lane_event(), LaneEvent::Opened);
}

fn assign(bench: &mut Bench, offset: i64, epoch: Option<i32>, stop_before: Option<OffsetAndEpoch>) {
    let position = Position {
        partition: place(),
        offset: SourceOffset(offset),
        last: epoch
            .map(|epoch| OffsetAndEpoch { offset: SourceOffset(offset), epoch: Some(LeaderEpoch(epoch)) }),
        last_record: None,
        stop_before,
    };
    bench.lane(LaneCommand::Assign { positions: vec![position] });
    bench.lane(LaneCommand::Credit { bytes: 1 << 20, batch_max: 1_000 });
}

#[test]
fn a_position_beyond_the_log_is_out_of_range_with_both_ends() {
    let mut bench = Bench::new();
    bench.source_records(&["a", "b"]);
    open(&mut bench);
    assign(&mut bench, 7, None, None);
    let expected = SourceStop::OutOfRange {
        position: SourceOffset(7),
        log_start: Some(SourceOffset(0)),
        log_end: Some(SourceOffset(2)),
    };
    assert_eq!(bench.lane_event(), LaneEvent::Stopped(place(), expected));
}

#[test]
fn a_position_whose_epoch_ended_below_it_is_truncated() {
    let mut bench = Bench::new();
    let partition = TopicPartition::new("t", 0);
    bench.source_records(&["a", "b"]);
    let epoch = bench.source.partition_view(&partition).unwrap().leader_epoch;
    bench.move_source_leader(&partition);
    bench.source_records(&["c", "d", "e"]);
    open(&mut bench);
    // Read under the first epoch up to offset 4, where that epoch has ended at 2.
    assign(&mut bench, 4, Some(epoch.0), None);
    let expected = SourceStop::Truncated { position: SourceOffset(4), diverges_at: Some(SourceOffset(2)) };
    assert_eq!(bench.lane_event(), LaneEvent::Stopped(place(), expected));
}

#[test]
fn nothing_comes_without_credit() {
    let mut bench = Bench::new();
    bench.source_records(&["a"]);
    open(&mut bench);
    let position = Position {
        partition: place(),
        offset: SourceOffset(0),
        last: None,
        last_record: None,
        stop_before: None,
    };
    bench.lane(LaneCommand::Assign { positions: vec![position] });
    assert_eq!(bench.event_within(5_000), None);
    bench.lane(LaneCommand::Credit { bytes: 1, batch_max: 1_000 });
    assert!(matches!(bench.lane_event(), LaneEvent::Fetched(_)));
}

#[test]
fn reading_stops_before_the_record_it_was_given() {
    let mut bench = Bench::new();
    bench.source_records(&["a", "b", "c"]);
    open(&mut bench);
    let epoch = bench.source.partition_view(&TopicPartition::new("t", 0)).unwrap().leader_epoch;
    assign(&mut bench, 0, None, Some(OffsetAndEpoch { offset: SourceOffset(2), epoch: Some(epoch) }));
    let LaneEvent::Fetched(batch) = bench.lane_event() else { panic!() };
    assert_eq!((batch.first, batch.next, batch.records), (SourceOffset(0), SourceOffset(2), 2));
    let expected = SourceStop::AtRefused { offset: SourceOffset(2) };
    assert_eq!(bench.lane_event(), LaneEvent::Stopped(place(), expected));
    assert_eq!(bench.event_within(5_000), None);
}

#[test]
fn another_record_in_that_place_does_not_stop_reading() {
    let mut bench = Bench::new();
    bench.source_records(&["a", "b", "c"]);
    open(&mut bench);
    let before = OffsetAndEpoch { offset: SourceOffset(2), epoch: Some(LeaderEpoch(-7)) };
    assign(&mut bench, 0, None, Some(before));
    let LaneEvent::Fetched(batch) = bench.lane_event() else { panic!() };
    assert_eq!((batch.first, batch.next, batch.records), (SourceOffset(0), SourceOffset(3), 3));
}

#[test]
fn a_rewind_drops_what_was_read_and_all_credit() {
    let mut bench = Bench::new();
    bench.source_records(&["a", "b"]);
    open(&mut bench);
    assign(&mut bench, 0, None, None);
    assert!(matches!(bench.lane_event(), LaneEvent::Fetched(_)));
    let position = Position {
        partition: place(),
        offset: SourceOffset(1),
        last: None,
        last_record: None,
        stop_before: None,
    };
    bench.lane(LaneCommand::Rewind { positions: vec![position] });
    assert_eq!(bench.event_within(2_000), None, "there is no credit");
    bench.lane(LaneCommand::Credit { bytes: 1 << 20, batch_max: 1_000 });
    let LaneEvent::Fetched(batch) = bench.lane_event() else { panic!() };
    assert_eq!(batch.first, SourceOffset(1));
}

#[test]
fn a_leader_that_moved_is_found_and_order_is_kept() {
    let mut bench = Bench::new();
    let partition = TopicPartition::new("t", 0);
    bench.source_records(&["a"]);
    open(&mut bench);
    assign(&mut bench, 0, None, None);
    assert!(matches!(bench.lane_event(), LaneEvent::Fetched(_)));
    bench.move_source_leader(&partition);
    bench.source_records(&["b"]);
    let LaneEvent::Fetched(batch) = bench.lane_event() else { panic!() };
    assert_eq!((batch.first, batch.next), (SourceOffset(1), SourceOffset(2)));
}
