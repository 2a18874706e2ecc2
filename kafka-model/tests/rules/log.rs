use crate::support::*;
use bytes::Bytes;
use kafka_model::api::delete_records::DeleteRecordsRequest;
use kafka_model::api::delete_topics::{DeleteTopicsRequest, TopicToDelete};
use kafka_model::api::fetch::IsolationLevel::{ReadCommitted, ReadUncommitted};
use kafka_model::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, OffsetSpec};
use kafka_model::{ClusterConfig, LogEvent, Response};
use kafka_types::ErrorCode::{
    InconsistentTopicId, InvalidRecord, InvalidTimestamp, KafkaStorageError, MessageTooLarge,
    OffsetOutOfRange, PolicyViolation, RecordListTooLarge, TopicAuthorizationFailed, UnknownTopicId,
    UnknownTopicOrPartition,
};
use kafka_types::{ErrorCode, Record, RecordBatch, TimestampType};

fn keyed(key: &str, value: Option<&str>) -> Record {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    Record::new(1_000, Some(bytes(key)), value.map(bytes))
}

fn put(bench: &mut Bench, records: Vec<Record>) {
    assert_eq!(bench.append(RecordBatch::new(records)).0, NoError);
}

fn compact(bench: &mut Bench) {
    // The active segment is never compacted: one more record closes the batch of interest off.
    let replies = bench.cluster.compact_partition(bench.now, &tp("t", 0));
    bench.take(replies);
}

fn compacted() -> Bench {
    Bench::with(ClusterConfig::default(), &[("cleanup.policy", "compact"), ("delete.retention.ms", "1000")])
}

/// Offsets and values that the log still holds, tombstones as `-`.
fn contents(bench: &Bench) -> Vec<(i64, String)> {
    let batches = bench.cluster.fates(&tp("t", 0), 0);
    let all = batches.iter().flat_map(|(batch, _)| {
        batch.records.iter().map(|it| (batch.offset_of(it), it.value.as_ref().map_or("-".into(), text)))
    });
    all.collect()
}

#[track_caller]
fn holds(bench: &Bench, expected: &[(i64, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(at, value)| (*at, (*value).to_owned())).collect();
    assert_eq!(contents(bench), expected);
}

#[test]
fn rule_4_5_compaction_keeps_the_last_of_each_key_and_leaves_holes() {
    let mut bench = compacted();
    put(&mut bench, vec![keyed("a", Some("1")), keyed("b", Some("2")), keyed("a", Some("3"))]);
    put(&mut bench, vec![keyed("a", Some("4"))]);
    compact(&mut bench);
    holds(&bench, &[(1, "2"), (3, "4")]);
    // A position may point into a hole; reading goes on behind it.
    assert_eq!(bench.fetch(&tp("t", 0), 2, ReadUncommitted).error_code, NoError);
    assert_eq!(bench.cluster.log_events(&tp("t", 0)).last(), Some(&LogEvent::Compacted));
}

#[test]
fn rule_4_5_tombstones_go_after_their_time() {
    let mut bench = compacted();
    put(&mut bench, vec![keyed("a", Some("1"))]);
    put(&mut bench, vec![keyed("a", None)]);
    put(&mut bench, vec![keyed("b", Some("2"))]);
    compact(&mut bench);
    holds(&bench, &[(1, "-"), (2, "2")]);
    bench.wait(1_000);
    compact(&mut bench);
    holds(&bench, &[(2, "2")]);
}

#[test]
fn rule_4_5_a_producers_last_batch_stays_although_empty() {
    let mut bench = compacted();
    let last = RecordBatch::new(vec![keyed("a", Some("1"))]).from_producer(7, 0, 0);
    assert_eq!(bench.append(last), (NoError, 0));
    put(&mut bench, vec![keyed("a", Some("2"))]);
    compact(&mut bench);
    let batches = bench.cluster.fates(&tp("t", 0), 0);
    assert!(batches[0].0.records.is_empty() && batches[0].0.producer_id == 7);
    holds(&bench, &[(1, "2")]);
    let again = RecordBatch::new(vec![keyed("a", Some("1"))]).from_producer(7, 0, 0);
    assert_eq!(bench.append(again), (NoError, 0), "still known as a duplicate");
}

#[test]
fn rule_4_5_compaction_drops_aborted_records_and_later_the_marker() {
    let mut bench = compacted();
    let t = tp("t", 0);
    put(&mut bench, vec![keyed("key", Some("before"))]);
    let identity = bench.init();
    bench.write(identity, &t, 0, "aborted");
    assert_eq!(bench.end(identity, Abort), NoError);
    bench.write(identity, &t, 1, "committed");
    assert_eq!(bench.end(identity, Commit), NoError);
    put(&mut bench, vec![keyed("other", Some("after"))]);
    compact(&mut bench);
    holds(&bench, &[(3, "committed"), (5, "after")]);
    assert_eq!(bench.read_committed(&t, 0), ["committed", "after"]);
    bench.wait(1_000);
    compact(&mut bench);
    bench.wait(1_000);
    compact(&mut bench);
    let markers = bench.cluster.fates(&t, 0).iter().filter(|(it, _)| it.is_control()).count();
    assert_eq!(markers, 1, "that of the aborted transaction is gone");
    assert_eq!(bench.read_committed(&t, 0), ["committed", "after"]);
}

#[test]
fn rule_4_5_nothing_above_an_open_transaction_is_compacted() {
    let mut bench = compacted();
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "open");
    put(&mut bench, vec![keyed("a", Some("1"))]);
    put(&mut bench, vec![keyed("a", Some("2"))]);
    compact(&mut bench);
    holds(&bench, &[(0, "open"), (1, "1"), (2, "2")]);
}

#[test]
fn rule_4_5_the_cleaner_runs_by_itself() {
    let settings =
        [("cleanup.policy", "compact"), ("segment.bytes", "200"), ("min.cleanable.dirty.ratio", "0.1")];
    let mut bench = Bench::with(ClusterConfig::default(), &settings);
    for value in 0..20 {
        put(&mut bench, vec![keyed("a", Some(&value.to_string()))]);
    }
    bench.wait(15_000);
    assert!(contents(&bench).len() < 5, "{:?}", contents(&bench));
}

#[test]
fn rule_4_5_retention_by_time_moves_the_log_start() {
    let settings = [("retention.ms", "5000"), ("segment.bytes", "100")];
    let mut bench = Bench::with(ClusterConfig::default(), &settings);
    let t = tp("t", 0);
    for offset in 0..3 {
        let time = bench.now + offset * 4_000;
        let record = Record::new(time, None, Some(Bytes::from_static(b"v")));
        put(&mut bench, vec![record]);
    }
    bench.wait(10_000);
    let replies = bench.cluster.apply_retention(bench.now, &t);
    bench.take(replies);
    assert_eq!(bench.cluster.partition_view(&t).expect("t").log_start_offset, 2);
    assert_eq!(bench.fetch(&t, 1, ReadUncommitted).error_code, OffsetOutOfRange);
    assert_eq!(bench.cluster.log_events(&t).last(), Some(&LogEvent::StartMoved { to: 2 }));
    // In the end the active segment goes too, and the log is empty at its end.
    bench.wait(3_600_000);
    let view = bench.cluster.partition_view(&t).expect("t");
    assert_eq!((view.log_start_offset, view.log_end_offset), (3, 3));
}

#[test]
fn rule_4_5_retention_by_size_leaves_the_active_segment() {
    let settings = [("retention.bytes", "100"), ("retention.ms", "-1"), ("segment.bytes", "100")];
    let mut bench = Bench::with(ClusterConfig::default(), &settings);
    for _ in 0..5 {
        bench.append(batch(&["v"]));
    }
    bench.wait(300_000);
    let view = bench.cluster.partition_view(&tp("t", 0)).expect("t");
    assert_eq!((view.log_start_offset, view.log_end_offset), (3, 5));
}

#[test]
fn rule_4_5_delete_records_moves_the_log_start() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["a", "b", "c"]));
    for (offset, expected) in
        [(2, (NoError, 2)), (1, (NoError, 2)), (4, (OffsetOutOfRange, -1)), (-1, (NoError, 3))]
    {
        let request = DeleteRecordsRequest { timeout_ms: 100, partitions: vec![(t.clone(), offset)] };
        let Response::DeleteRecords(response) = bench.ask(bench.leader(&t), request) else { panic!() };
        let answer = &response.partitions[0];
        assert_eq!((answer.error_code, answer.low_watermark), expected, "offset {offset}");
    }
    let mut bench = compacted();
    let request = DeleteRecordsRequest { timeout_ms: 100, partitions: vec![(t.clone(), -1)] };
    let Response::DeleteRecords(response) = bench.ask(bench.leader(&t), request) else { panic!() };
    assert_eq!(response.partitions[0].error_code, PolicyViolation);
}

#[test]
fn rule_4_5_a_batch_may_begin_below_the_offset_asked_for() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["a", "b", "c"]));
    let replies = bench.cluster.delete_records_below(bench.now, &t, 1);
    bench.take(replies);
    let answer = bench.fetch(&t, 2, ReadUncommitted);
    assert_eq!((answer.records[0].base_offset, answer.log_start_offset), (0, 1));
    assert_eq!(bench.committed(&t), ["b", "c"]);
    assert_eq!(bench.read_committed(&t, 2), ["c"]);
}

#[test]
fn rule_4_5_a_topic_made_anew_is_another_topic() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["a", "b"]));
    let old = bench.cluster.topic_id(&t.topic).expect("t");
    let request = DeleteTopicsRequest { topics: vec![TopicToDelete::Named("t".into())] };
    bench.ask(kafka_model::BrokerId(1), request);
    let request = bench.fetch_request(&t, 0, ReadUncommitted);
    let Response::Fetch(response) = bench.ask(kafka_model::BrokerId(1), request) else { panic!() };
    assert_eq!(response.partitions[0].error_code, UnknownTopicOrPartition);
    bench.create("t", 1, 3, &[]);
    let new = bench.cluster.topic_id(&t.topic).expect("t");
    assert!(old != new);
    // By name nothing is amiss: offsets start over, and an old position is out of range until they pass it.
    assert_eq!(bench.fetch(&t, 2, ReadUncommitted).error_code, OffsetOutOfRange);
    bench.append(batch(&["x", "y", "z"]));
    assert_eq!(bench.fetch(&t, 2, ReadUncommitted).error_code, NoError);
    bench.create("other", 1, 3, &[]);
    let other = bench.cluster.topic_id(&"other".into()).expect("other");
    for (id, error) in [(old, UnknownTopicId), (new, NoError), (other, InconsistentTopicId)] {
        let mut request = bench.fetch_request(&t, 0, ReadUncommitted);
        request.partitions[0].topic_id = Some(id);
        assert_eq!(bench.fetch_with(request).error_code, error);
    }
}

#[test]
fn rule_4_5_a_deleted_topic_answers_whoever_waits_for_it() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let mut request = bench.fetch_request(&t, 0, ReadUncommitted);
    request.max_wait_ms = 10_000;
    let waiting = bench.send(bench.leader(&t), request);
    assert_eq!(bench.outcome(waiting), None);
    bench.ask(
        kafka_model::BrokerId(1),
        DeleteTopicsRequest { topics: vec![TopicToDelete::Named("t".into())] },
    );
    let Response::Fetch(response) = bench.response(waiting) else { panic!() };
    assert_eq!(response.partitions[0].error_code, UnknownTopicOrPartition);
}

#[test]
fn rule_4_5_a_transaction_ends_without_its_deleted_topic() {
    let mut bench = Bench::with(ClusterConfig { marker_delay_ms: 50, ..ClusterConfig::default() }, &[]);
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "a");
    bench.ask(
        kafka_model::BrokerId(1),
        DeleteTopicsRequest { topics: vec![TopicToDelete::Named("t".into())] },
    );
    assert_eq!(bench.end(identity, Commit), NoError);
    bench.wait(50);
    assert_eq!(bench.try_init(None), Ok((identity.0, 1)));
}

#[test]
fn rule_4_5_limits_are_per_batch() {
    let t = tp("t", 0);
    let mut bench = Bench::with(ClusterConfig::default(), &[("max.message.bytes", "1000")]);
    let value = "x".repeat(300);
    let three = batch(&[&value, &value, &value]);
    let four = batch(&[&value, &value, &value, &value]);
    assert_eq!(bench.produce(&t, three).error_code, NoError);
    assert_eq!(bench.produce(&t, four).error_code, MessageTooLarge, "no record of it is too large");
    let mut bench = Bench::with(ClusterConfig::default(), &[("segment.bytes", "1000")]);
    let long = batch(&[&"x".repeat(2_000)]);
    assert_eq!(bench.produce(&t, long).error_code, RecordListTooLarge);
}

#[test]
fn rule_4_5_timestamps_have_limits_of_their_own() {
    let settings = [("message.timestamp.before.max.ms", "5000"), ("message.timestamp.after.max.ms", "1000")];
    let mut bench = Bench::with(ClusterConfig::default(), &settings);
    let now = bench.now;
    for (timestamp, error) in [
        (now, NoError),
        (now - 5_000, NoError),
        (now - 5_001, InvalidTimestamp),
        (now + 1_000, NoError),
        (now + 1_001, InvalidTimestamp),
        (-1, NoError),
    ] {
        let records = vec![Record::new(now, None, None), Record::new(timestamp, None, None)];
        let answer = bench.produce(&tp("t", 0), RecordBatch::new(records));
        assert_eq!(answer.error_code, error, "timestamp {timestamp}");
        assert_eq!(answer.record_errors, if error == NoError { vec![] } else { vec![1] });
    }
}

#[test]
fn rule_4_5_log_append_time_is_the_brokers() {
    let mut bench = Bench::with(ClusterConfig::default(), &[("message.timestamp.type", "LogAppendTime")]);
    let answer = bench.produce(&tp("t", 0), batch(&["a"]));
    assert_eq!(answer.log_append_time, Some(bench.now));
    let stored = bench.fetch(&tp("t", 0), 0, ReadUncommitted).records.remove(0);
    assert_eq!(stored.timestamp_type, TimestampType::LogAppendTime);
    assert_eq!(stored.timestamp_of(&stored.records[0]), bench.now);
}

#[test]
fn rule_4_5_compacted_topics_want_keys() {
    let mut bench = compacted();
    let records = vec![keyed("a", Some("1")), Record::new(0, None, None)];
    let answer = bench.produce(&tp("t", 0), RecordBatch::new(records));
    assert_eq!((answer.error_code, answer.record_errors), (InvalidRecord, vec![1]));
}

#[test]
fn rule_4_5_refusals_that_have_nothing_to_do_with_the_batch() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let check = |bench: &mut Bench, error: ErrorCode| {
        assert_eq!(bench.append(batch(&["a"])).0, error);
    };
    let replies = bench.cluster.deny_topic(bench.now, &t.topic, true);
    bench.take(replies);
    check(&mut bench, TopicAuthorizationFailed);
    let replies = bench.cluster.deny_topic(bench.now, &t.topic, false);
    bench.take(replies);
    let leader = bench.leader(&t);
    let replies = bench.cluster.fill_disk(bench.now, leader, true);
    bench.take(replies);
    check(&mut bench, KafkaStorageError);
    let replies = bench.cluster.fill_disk(bench.now, leader, false);
    bench.take(replies);
    check(&mut bench, NoError);
}

#[test]
fn rule_4_5_offsets_by_time() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let timed = |time| Record::new(time, None, Some(Bytes::from_static(b"v")));
    put(&mut bench, vec![timed(100), timed(300)]);
    put(&mut bench, vec![timed(200), timed(50)]);
    for (position, expected) in [
        (OffsetSpec::Earliest, (-1, 0)),
        (OffsetSpec::Latest, (-1, 4)),
        (OffsetSpec::MaxTimestamp, (300, 1)),
        (OffsetSpec::At(0), (100, 0)),
        (OffsetSpec::At(101), (300, 1)),
        (OffsetSpec::At(301), (-1, -1)),
    ] {
        let partition =
            ListOffsetsPartition { topic_partition: t.clone(), current_leader_epoch: None, position };
        let request = ListOffsetsRequest { isolation_level: ReadCommitted, partitions: vec![partition] };
        let Response::ListOffsets(response) = bench.ask(bench.leader(&t), request) else { panic!() };
        let answer = &response.partitions[0];
        assert_eq!((answer.timestamp, answer.offset), expected, "{position:?}");
    }
}
