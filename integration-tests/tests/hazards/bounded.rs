//! S1 and S2: where a bounded run ends, and what it says.

use std::time::{Duration, SystemTime};

use integration_tests::mirror::finish;
use integration_tests::workload::{Writer, now_ms, unique_record};
use integration_tests::{checker, require_kafka, transactions, unique_name};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::flow::{Flow, PATIENCE};

#[test]
fn s01_an_open_source_transaction_is_named_once_everything_readable_is_copied() {
    require_kafka!();
    let flow = Flow::new("s01");
    let topic = flow.make("t", 2, 100);
    let id = unique_name("s01-open");
    let writer = Writer::transactional(flow.source(), &id, &[("transaction.timeout.ms", "600000")]).unwrap();
    writer.begin().unwrap();
    writer.send(&topic, &unique_record(100, 2, 50)).unwrap();
    writer.flush().unwrap();
    let producer_id = transactions::describe(flow.source(), &id).unwrap().unwrap().producer_id;
    // Behind it in the same partition, and in one that it does not hold.
    flow.fill(&topic, 2, 200..300);
    let finished = flow.finish_with(&["--until", "end", "--wait-open", "5s"]);
    assert_eq!(finished.code, 75, "{}", finished.stderr);
    let named = format!("{topic}/0: a transaction of producer id {producer_id} is open since offset 50");
    assert!(finished.stderr.contains(&named), "no {named:?} in {}", finished.stderr);
    assert!(!finished.stderr.contains(&format!("{topic}/1: a transaction")), "{}", finished.stderr);
    assert_eq!(flow.copied(&topic), 50 + 100, "everything readable");
    // Committed while a run waits for it.
    let waiting = std::thread::scope(|scope| {
        let run = scope.spawn(|| flow.finish());
        std::thread::sleep(Duration::from_secs(3));
        writer.commit().unwrap();
        run.join().expect("no panic")
    });
    assert_eq!(waiting.code, 0, "{}", waiting.stderr);
    assert_eq!(flow.assert_equal(&topic), 201);
}

#[test]
fn s01_two_bounded_runs_end_only_when_the_whole_flow_is_done() {
    require_kafka!();
    let flow = Flow::new("s01-two").set("delivery", "lanes", "4");
    let topic = flow.make("t", 4, 20_000);
    let config = flow.config.clone();
    std::thread::scope(|scope| {
        let run = || {
            let finished = finish(&config, &["run", "-v", "--until", "end"], PATIENCE).unwrap();
            assert_eq!(finished.code, 0, "{}", finished.stderr);
            // At this very moment, whoever did the work, and with no waiting: S2.
            assert_eq!(visible(&flow, &topic), 20_000, "{}", finished.stderr);
        };
        let runs = [scope.spawn(run), scope.spawn(run)];
        for run in runs {
            run.join().expect("no panic");
        }
    });
    assert_eq!(flow.assert_equal(&topic), 20_000);
}

/// One of two dies: the other inherits its lanes and exits 0 only when all is done.
#[test]
fn s01_a_bounded_run_inherits_the_lanes_of_one_that_dies() {
    require_kafka!();
    let flow = Flow::new("s01-heir").set("delivery", "lanes", "4");
    let topic = flow.make("t", 4, 20_000);
    let config = flow.config.to_toml();
    let start =
        || integration_tests::mirror::Mirror::start(&config, &["run", "-v", "--until", "end"]).unwrap();
    let (mut heir, mut dying) = (start(), start());
    dying.wait_for_log("lane taken", PATIENCE).unwrap();
    dying.kill().unwrap();
    assert_eq!(heir.wait(PATIENCE).unwrap(), 0, "{}", heir.story());
    assert_eq!(visible(&flow, &topic), 20_000);
    flow.assert_equal(&topic);
}

/// Committed records, of a topic in which nothing is hidden from a read_committed reader right now. The checker
/// alone would wait until that is so.
fn visible(flow: &Flow, topic: &str) -> usize {
    let reader: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", flow.target())
        .set("isolation.level", "read_committed")
        .create()
        .unwrap();
    let partitions = flow.target_admin.partition_count(topic).unwrap().expect("the topic");
    for partition in 0..i32::try_from(partitions).expect("a count") {
        let (_, stable) = reader.fetch_watermarks(topic, partition, PATIENCE).unwrap();
        let (_, end) = flow.target_admin.watermarks(topic, partition).unwrap();
        assert_eq!(stable, end, "{topic} {partition} shows all that it holds");
    }
    checker::count_records(flow.target(), topic).unwrap()
}

#[test]
fn s01_a_run_until_a_time_copies_what_is_older() {
    require_kafka!();
    let flow = Flow::new("s01-time");
    let topic = flow.make("t", 2, 0);
    // Whole seconds, as RFC 3339 text here has them.
    let cut_seconds = now_ms() / 1000 - 100;
    let writer = Writer::idempotent(flow.source(), &[]).unwrap();
    for number in 0..200_u64 {
        let mut record = unique_record(number, 2, 50);
        // Both partitions cross the cut at their 60th record.
        let step = i64::try_from(number / 2).unwrap() - 60;
        record.timestamp = Some(cut_seconds * 1000 + step * 1000);
        writer.send(&topic, &record).unwrap();
    }
    writer.flush().unwrap();
    let finished = flow.finish_with(&["--until", &rfc3339(cut_seconds)]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let copied = checker::read_records(flow.target(), &topic).unwrap();
    for records in &copied {
        // All that is older is there. A run ends between transactions, so a few newer ones may be too.
        assert!(60 <= records.len(), "only {}", records.len());
    }
    assert_eq!(flow.finish().code, 0);
    assert_eq!(flow.assert_equal(&topic), 200);
}

fn rfc3339(seconds: i64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).expect("after 1970"));
    let days = time.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs() / 86_400;
    // Howard Hinnant's civil_from_days.
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let of_day = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[test]
fn s01_empty_topics_and_what_trails_without_records_end_a_run() {
    require_kafka!();
    let flow = Flow::new("s01-empty");
    let empty = flow.make("empty", 3, 0);
    flow.ends_with(0, "done");
    assert_eq!(flow.target_admin.partition_count(&empty).unwrap(), Some(3));

    let topic = flow.make("t", 2, 20);
    let writer = Writer::transactional(flow.source(), &unique_name("s01-trailing"), &[]).unwrap();
    for (numbers, commit) in [(20..40, true), (40..60, false), (60..80, false)] {
        writer.begin().unwrap();
        for number in numbers {
            writer.send(&topic, &unique_record(number, 2, 50)).unwrap();
        }
        if commit {
            writer.commit().unwrap();
        } else {
            writer.flush().unwrap();
            writer.abort().unwrap();
        }
    }
    flow.ends_with(0, "done");
    assert_eq!(flow.assert_equal(&topic), 40);
    for partition in 0..2 {
        let row = flow.row(&topic, partition);
        assert_eq!((row.position.as_str(), row.lag.as_str()), (row.source_end.as_str(), "0"), "{row:?}");
        assert_eq!(row.state, "caught-up");
    }
}
