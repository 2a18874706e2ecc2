use crate::bench::{Bench, Fate};
use kafka_model::{Fate as RecordFate, Request};
use kafka_types::{SourceOffset, SourcePartition, TargetPartition, TopicPartition};
use runtime_sim::ClientFaults;
use std::cell::Cell;
use std::rc::Rc;
use verbatim_core::batch::{Batch, BatchId};
use verbatim_core::command::{LaneCommand, NewLedgerRecord, Position, PrepareFrom};
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::{Failure, Refusal, Side};

fn target() -> TargetPartition {
    TargetPartition::new("t", 0)
}

/// A lane that is open and has read what the source holds.
fn lane_with(bench: &mut Bench, values: &[&str]) -> Vec<Batch> {
    bench.source_records(values);
    bench.lane(LaneCommand::Open);
    assert_eq!(bench.lane_event(), LaneEvent::Opened);
    bench.lane(LaneCommand::Prepare { targets: [(target(), PrepareFrom::Nowhere)].into() });
    assert!(matches!(bench.lane_event(), LaneEvent::Prepared(_)));
    let partition = SourcePartition::new("t", 0);
    let position =
        Position { partition, offset: SourceOffset(0), last: None, last_record: None, stop_before: None };
    bench.lane(LaneCommand::Assign { positions: vec![position] });
    bench.lane(LaneCommand::Credit { bytes: 1 << 20, batch_max: 1_000 });
    let (mut batches, mut records) = (Vec::new(), 0);
    while records < values.len() as u64 {
        if let LaneEvent::Fetched(batch) = bench.lane_event() {
            records += batch.records;
            batches.push(batch);
        }
    }
    batches
}

fn produce(bench: &mut Bench, batch: BatchId) {
    bench.lane(LaneCommand::Produce { batch, target: target(), alone: false });
}

fn settle(bench: &mut Bench) -> LaneEvent {
    let record = NewLedgerRecord { key: b"k".to_vec(), value: b"v".to_vec() };
    bench.lane(LaneCommand::Settle { records: vec![record] });
    bench.lane_event()
}

/// Committed values in the target's topic.
fn copied(bench: &Bench) -> Vec<String> {
    let place = TopicPartition::new("t", 0);
    let value =
        |it: kafka_model::CommittedRecord| String::from_utf8(it.record.value.unwrap().to_vec()).unwrap();
    bench.target.committed(&place, 0).into_iter().map(value).collect()
}

/// Breaks the first requests of an API, so many of them.
fn breaking(name: &'static str, times: u32, fate: Fate) -> impl FnMut(Side, &Request) -> Fate {
    let left = Rc::new(Cell::new(times));
    move |_, request| {
        if request.name() == name && 0 < left.get() {
            left.set(left.get() - 1);
            return fate;
        }
        Fate::Answered
    }
}

#[test]
fn a_transaction_commits_records_and_ledger_together() {
    let mut bench = Bench::new();
    let batches = lane_with(&mut bench, &["a", "b", "c"]);
    produce(&mut bench, batches[0].id);
    let LaneEvent::Acked(_, Ok(acknowledged)) = bench.lane_event() else { panic!() };
    assert_eq!((acknowledged.accepted, acknowledged.acknowledged), (3, 3));
    assert!(copied(&bench).is_empty());
    assert!(matches!(settle(&mut bench), LaneEvent::Settled { last: Some(_) }));
    assert_eq!(copied(&bench), ["a", "b", "c"]);
    let of_transaction = |name: &&&str| ["AddPartitionsToTxn", "Produce", "EndTxn"].contains(*name);
    let sent: Vec<_> = bench.sent.iter().filter(of_transaction).copied().collect();
    assert_eq!(sent, ["AddPartitionsToTxn", "Produce", "AddPartitionsToTxn", "Produce", "EndTxn"]);
}

#[test]
fn small_batches_are_several_requests_of_one_transaction() {
    let mut bench = Bench::with_faults(ClientFaults { batch_records_max: 1, ..ClientFaults::default() });
    let batches = lane_with(&mut bench, &["a", "b", "c"]);
    produce(&mut bench, batches[0].id);
    assert!(matches!(bench.lane_event(), LaneEvent::Acked(_, Ok(_))));
    assert_eq!(bench.sent.iter().filter(|name| **name == "Produce").count(), 3);
    assert!(matches!(settle(&mut bench), LaneEvent::Settled { .. }));
    assert_eq!(copied(&bench), ["a", "b", "c"]);
}

#[test]
fn a_produce_that_was_stored_and_not_answered_is_sent_again_and_stored_once() {
    let mut bench = Bench::new();
    let batches = lane_with(&mut bench, &["a", "b"]);
    bench.script(breaking("Produce", 1, Fate::Unanswered));
    produce(&mut bench, batches[0].id);
    assert!(matches!(bench.lane_event(), LaneEvent::Acked(_, Ok(_))));
    assert!(matches!(settle(&mut bench), LaneEvent::Settled { .. }));
    assert_eq!(copied(&bench), ["a", "b"]);
}

#[test]
fn an_end_txn_that_was_not_answered_is_sent_again_and_the_commit_is_of_unknown_outcome() {
    for fate in [Fate::Unanswered, Fate::Lost] {
        let mut bench = Bench::new();
        let batches = lane_with(&mut bench, &["a"]);
        produce(&mut bench, batches[0].id);
        assert!(matches!(bench.lane_event(), LaneEvent::Acked(_, Ok(_))));
        bench.script(breaking("EndTxn", 1, fate));
        let LaneEvent::Failed(Step::Settle, Failure::Unknown(_)) = settle(&mut bench) else {
            panic!("{fate:?}")
        };
        assert_eq!(bench.sent.iter().filter(|name| **name == "EndTxn").count(), 2);
        assert_eq!(copied(&bench), ["a"], "and yet it is committed");
    }
}

#[test]
fn a_commit_that_is_never_answered_ends_as_unknown_in_time() {
    let mut bench = Bench::new();
    let batches = lane_with(&mut bench, &["a"]);
    produce(&mut bench, batches[0].id);
    assert!(matches!(bench.lane_event(), LaneEvent::Acked(_, Ok(_))));
    bench.script(breaking("EndTxn", u32::MAX, Fate::Lost));
    let began = bench.now;
    assert!(matches!(settle(&mut bench), LaneEvent::Failed(Step::Settle, Failure::Unknown(_))));
    assert!(bench.now - began <= 16_000, "{} ms", bench.now - began);
}

#[test]
fn a_producer_that_another_fenced_says_so() {
    let mut bench = Bench::new();
    let batches = lane_with(&mut bench, &["a"]);
    produce(&mut bench, batches[0].id);
    assert!(matches!(bench.lane_event(), LaneEvent::Acked(_, Ok(_))));
    let coordinator = bench.target.broker_ids().find(|(broker, _)| {
        let mut other = bench.target.clone();
        let header = kafka_model::RequestHeader {
            broker: *broker,
            token: kafka_model::RequestToken(u64::MAX),
            client_id: "other".into(),
            api_version: 4,
        };
        let request = kafka_model::api::init_producer_id::InitProducerIdRequest {
            transactional_id: Some("verbatim-f-0".into()),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
        };
        let before = other.clone();
        other.handle(bench.now, header, request.into());
        other.decisions().next_number() != before.decisions().next_number()
    });
    let (coordinator, _) = coordinator.expect("one of them coordinates");
    bench.ask(
        Side::Target,
        coordinator,
        kafka_model::api::init_producer_id::InitProducerIdRequest {
            transactional_id: Some("verbatim-f-0".into()),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
        },
    );
    assert!(matches!(settle(&mut bench), LaneEvent::Failed(Step::Settle, Failure::Fenced(_))));
    assert!(copied(&bench).is_empty());
}

/// docs/librdkafka.md: a refused record poisons the producer, so an abort after it is not clean.
#[test]
fn a_batch_that_is_too_large_is_refused_whole_and_the_abort_after_it_is_not_clean() {
    let mut bench = Bench::new();
    bench.create_topic(Side::Target, "small", &[("max.message.bytes", "200")]);
    let large = "x".repeat(300);
    let batches = lane_with(&mut bench, &["a", &large]);
    let small = TargetPartition::new("small", 0);
    bench.lane(LaneCommand::Produce { batch: batches[0].id, target: small, alone: false });
    let LaneEvent::Acked(_, Err(refused)) = bench.lane_event() else { panic!() };
    assert!(matches!(refused.refusal, Refusal::TooLarge(_)));
    assert_eq!(refused.record, None, "it speaks of the whole batch");
    bench.lane(LaneCommand::Abort);
    assert!(matches!(bench.lane_event(), LaneEvent::Failed(Step::Abort, Failure::Unknown(_))));
}

#[test]
fn a_record_that_goes_alone_and_is_too_large_is_named() {
    let mut bench = Bench::new();
    bench.create_topic(Side::Target, "small", &[("max.message.bytes", "200")]);
    let large = "x".repeat(300);
    let batches = lane_with(&mut bench, &[&large]);
    let small = TargetPartition::new("small", 0);
    bench.lane(LaneCommand::Produce { batch: batches[0].id, target: small, alone: true });
    let LaneEvent::Acked(_, Err(refused)) = bench.lane_event() else { panic!() };
    assert!(matches!(refused.refusal, Refusal::TooLarge(_)));
    assert_eq!(refused.record.map(|record| record.offset), Some(SourceOffset(0)));
}

#[test]
fn of_several_that_go_alone_together_none_is_named() {
    let mut bench = Bench::new();
    bench.create_topic(Side::Target, "small", &[("max.message.bytes", "200")]);
    let large = "x".repeat(300);
    let batches = lane_with(&mut bench, &["a", &large, "c"]);
    let small = TargetPartition::new("small", 0);
    bench.lane(LaneCommand::Produce { batch: batches[0].id, target: small, alone: true });
    let LaneEvent::Acked(_, Err(refused)) = bench.lane_event() else { panic!() };
    assert!(matches!(refused.refusal, Refusal::TooLarge(_)));
    assert_eq!(refused.record, None);
}

#[test]
fn an_abort_leaves_a_sound_producer() {
    let mut bench = Bench::new();
    let batches = lane_with(&mut bench, &["a"]);
    produce(&mut bench, batches[0].id);
    assert!(matches!(bench.lane_event(), LaneEvent::Acked(_, Ok(_))));
    bench.lane(LaneCommand::Abort);
    assert_eq!(bench.lane_event(), LaneEvent::Aborted);
    assert!(matches!(settle(&mut bench), LaneEvent::Settled { .. }), "the next transaction works");
    assert!(copied(&bench).is_empty());
    let place = TopicPartition::new("t", 0);
    assert!(bench.target.fates(&place, 0).iter().any(|(_, fate)| *fate == RecordFate::Aborted));
}
