//! The harness tries itself on real brokers: a judge that misses a planted fault would pass everything.

mod support;

use std::time::Duration;

use anyhow::Result;
use integration_tests::admin::Admin;
use integration_tests::checker;
use integration_tests::kafka::{Broker, BrokerOptions, IMAGE_3_9};
use integration_tests::proxy::{Action, END_TXN, Proxy, Rule};
use integration_tests::report::Report;
use integration_tests::workload::{self, Record, Writer, nasty_records, unique_record};
use integration_tests::{batch, require_kafka, transactions, unique_name, wait_for};
use support::shared_broker;

/// Writes the records to one new topic and what `change` makes of them to another; the checker's verdict.
fn verdict(change: impl FnOnce(&mut Vec<Record>)) -> Result<Report> {
    let broker = shared_broker();
    let bootstrap = broker.bootstrap();
    let admin = Admin::connect(&bootstrap)?;
    let mut records: Vec<Record> = (0..100).map(|number| unique_record(number, 2, 50)).collect();
    records[10].headers = vec![(b"name".to_vec(), Some(vec![]))];
    let topics = (unique_name("original"), unique_name("copy"));
    write(&admin, &bootstrap, &topics.0, &records)?;
    change(&mut records);
    write(&admin, &bootstrap, &topics.1, &records)?;
    checker::compare_topics((&bootstrap, &topics.0), (&bootstrap, &topics.1))
}

fn write(admin: &Admin, bootstrap: &str, topic: &str, records: &[Record]) -> Result<()> {
    admin.create_topic(topic, 2)?;
    let writer = Writer::idempotent(bootstrap, &[])?;
    for record in records {
        writer.send(topic, record)?;
    }
    writer.flush()
}

#[track_caller]
fn check(change: impl FnOnce(&mut Vec<Record>), expected: [usize; 4], words: &str) {
    let report = verdict(change).unwrap();
    let counts = [
        report.total(|found| found.lost),
        report.total(|found| found.duplicated),
        report.total(|found| found.foreign),
        report.total(|found| found.reordered),
    ];
    let text = report.describe();
    assert_eq!(counts, expected, "{text}");
    assert_eq!(report.is_equal(), expected == [0; 4], "{text}");
    assert!(text.contains(words), "{text}");
}

#[test]
fn the_checker_finds_what_is_planted() {
    require_kafka!();
    check(|_| {}, [0; 4], "");
    check(|records| drop(records.remove(40)), [1, 0, 0, 0], "record 20 (source offset 20");
    check(|records| drop(records.pop()), [1, 0, 0, 0], "is missing");
    check(|records| records.insert(42, records[40].clone()), [0, 1, 0, 0], "partition 0: 50 records");
    check(|records| records.push(records[99].clone()), [0, 1, 0, 0], "is too much");
    check(|records| records.swap(40, 42), [0, 0, 0, 1], "key \"key 40\" became \"key 42\"");
    check(|records| records[10].headers[0].1 = None, [1, 0, 1, 0], "\"name\": \"\"] became [\"name\": null]");
    check(|records| records[10].headers.push((b"name".to_vec(), None)), [1, 0, 1, 0], "headers");
    check(|records| records[5].timestamp = None, [1, 0, 1, 0], "became NotAvailable");
    check(|records| records[5].key = None, [1, 0, 1, 0], "key \"key 5\" became null");
    check(|records| records[5].value = Some(vec![]), [1, 0, 1, 0], "became \"\"");
    // Both partitions differ: one lost a record, the other has one of its neighbour's.
    check(|records| records[5].partition = 0, [1, 0, 1, 0], "partition 1");
}

#[test]
fn nasty_records_arrive_as_they_are_in_every_compression() {
    require_kafka!();
    let broker = shared_broker();
    let bootstrap = broker.bootstrap();
    let admin = Admin::connect(&bootstrap).unwrap();
    let records = nasty_records(3);
    for compression in workload::COMPRESSIONS {
        let topic = unique_name(compression);
        admin.create_topic(&topic, 3).unwrap();
        let writer = Writer::idempotent(&bootstrap, &[("compression.type", compression)]).unwrap();
        for record in &records {
            writer.send(&topic, record).unwrap();
        }
        writer.flush().unwrap();
        for (partition, seen) in checker::read_records(&bootstrap, &topic).unwrap().iter().enumerate() {
            let sent: Vec<&Record> = records
                .iter()
                .filter(|record| usize::try_from(record.partition).unwrap() == partition)
                .collect();
            assert_eq!(seen.len(), sent.len());
            for (seen, sent) in seen.iter().zip(sent) {
                assert_eq!(seen.key, sent.key);
                assert_eq!(seen.value, sent.value);
                assert_eq!(seen.headers, sent.headers);
                assert_eq!(seen.timestamp.to_millis(), sent.timestamp);
            }
        }
    }
}

#[test]
fn batches_written_by_hand_hold_what_no_client_sends() {
    require_kafka!();
    let broker = shared_broker();
    let bootstrap = broker.bootstrap();
    let admin = Admin::connect(&bootstrap).unwrap();
    let topic = unique_name("raw");
    admin.create_topic(&topic, 1).unwrap();
    let mut records = workload::nul_header_records();
    records.push(Record { timestamp: Some(0), ..Record::default() });
    records.push(Record::default());
    batch::produce(&bootstrap, &topic, 0, &records).unwrap();
    let logged = batch::fetch(&bootstrap, &topic, 0, 0).unwrap();
    assert_eq!(logged.len(), records.len());
    for (logged, written) in logged.iter().zip(&records) {
        assert_eq!(logged.headers, written.headers);
        assert_eq!(logged.timestamp, written.timestamp.unwrap_or(-1));
        assert_eq!((&logged.key, &logged.value), (&written.key, &written.value));
    }
}

#[test]
fn topics_are_made_grown_changed_and_deleted() {
    require_kafka!();
    let broker = shared_broker();
    let bootstrap = broker.bootstrap();
    let admin = Admin::connect(&bootstrap).unwrap();
    let topic = unique_name("administered");
    admin.create_topic_with(&topic, 1, &[("retention.ms", "123456")]).unwrap();
    assert!(admin.topics().unwrap().contains(&topic));
    admin.set_topic_config(&topic, "max.message.bytes", "20000").unwrap();
    assert_eq!(admin.topic_config(&topic, "max.message.bytes").unwrap().as_deref(), Some("20000"));
    assert_eq!(admin.topic_config(&topic, "retention.ms").unwrap().as_deref(), Some("123456"));
    workload::fill(&bootstrap, &topic, 1, 0..10, 50).unwrap();
    admin.delete_records(&topic, 0, 4).unwrap();
    assert_eq!(admin.watermarks(&topic, 0).unwrap(), (4, 10));
    assert_eq!(checker::count_records(&bootstrap, &topic).unwrap(), 6);
    admin.grow_topic(&topic, 3).unwrap();
    assert_eq!(admin.partition_count(&topic).unwrap(), Some(3));
    admin.delete_topic(&topic).unwrap();
    assert_eq!(admin.partition_count(&topic).unwrap(), None);
}

#[test]
fn the_coordinator_tells_an_open_transaction() {
    require_kafka!();
    let broker = shared_broker();
    let bootstrap = broker.bootstrap();
    let admin = Admin::connect(&bootstrap).unwrap();
    let (topic, id) = (unique_name("transactions"), unique_name("transactional"));
    admin.create_topic(&topic, 1).unwrap();
    assert_eq!(transactions::describe(&bootstrap, &id).unwrap(), None);
    let writer = Writer::transactional(&bootstrap, &id, &[]).unwrap();
    assert!(!transactions::describe(&bootstrap, &id).unwrap().unwrap().is_open());
    writer.begin().unwrap();
    writer.send(&topic, &unique_record(0, 1, 50)).unwrap();
    writer.flush().unwrap();
    let open = transactions::open_with_prefix(&bootstrap, &id).unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].partitions, [(topic.clone(), 0)]);
    writer.abort().unwrap();
    assert!(transactions::open_with_prefix(&bootstrap, &id).unwrap().is_empty());
    writer.begin().unwrap();
    writer.send(&topic, &unique_record(1, 1, 50)).unwrap();
    writer.commit().unwrap();
    let records = checker::read_records(&bootstrap, &topic).unwrap();
    assert_eq!(records[0].len(), 1, "the aborted record is not read");
    assert_eq!(records[0][0].key.as_deref(), Some(&b"key 1"[..]));
}

#[test]
fn a_broker_survives_its_death_on_4_1() {
    require_kafka!();
    survives(&BrokerOptions::default());
}

#[test]
fn a_broker_survives_its_death_on_3_9() {
    require_kafka!(IMAGE_3_9);
    survives(&BrokerOptions::kafka_3_9());
}

/// Killed, stopped or frozen, a broker comes back at its address with its data and its coordinators.
fn survives(options: &BrokerOptions) {
    let broker = Broker::start(options).unwrap();
    let bootstrap = broker.bootstrap();
    let admin = Admin::connect(&bootstrap).unwrap();
    admin.create_topic("survivor", 2).unwrap();
    workload::fill(&bootstrap, "survivor", 2, 0..100, 100).unwrap();
    let writer = Writer::transactional(&bootstrap, "survivor", &[]).unwrap();
    broker.kill().unwrap();
    broker.start_again().unwrap();
    assert_eq!(checker::count_records(&bootstrap, "survivor").unwrap(), 100);
    writer.begin().unwrap();
    writer.send("survivor", &unique_record(100, 2, 100)).unwrap();
    writer.commit().unwrap();
    broker.stop().unwrap();
    broker.start_again().unwrap();
    workload::fill(&bootstrap, "survivor", 2, 101..110, 100).unwrap();
    broker.pause().unwrap();
    broker.unpause().unwrap();
    assert_eq!(checker::count_records(&bootstrap, "survivor").unwrap(), 110);
    assert!(broker.logs().contains(broker.cluster_id()));
    assert!(broker.tool("kafka-topics.sh", &["--list"]).unwrap().contains("survivor"));
}

#[test]
fn a_delayed_end_of_transaction_tears_the_next_one_on_4_1() {
    require_kafka!();
    tears(&BrokerOptions::default());
}

#[test]
fn a_delayed_end_of_transaction_tears_the_next_one_on_3_9() {
    require_kafka!(IMAGE_3_9);
    tears(&BrokerOptions::kafka_3_9());
}

/// The hazard that the proxy is for: the client gives up an EndTxn, sends another and calls the commit clean;
/// then the first one arrives, and commits the half of the next transaction that was written so far.
fn tears(options: &BrokerOptions) {
    let broker = Broker::start(&options.clone().with_proxied_listener()).unwrap();
    let proxy = Proxy::start(&broker).unwrap();
    let admin = Admin::connect(&broker.bootstrap()).unwrap();
    admin.create_topic("torn", 1).unwrap();
    let writer = Writer::transactional(proxy.bootstrap(), "torn", &[]).unwrap();
    proxy.add_rule(Rule::once(END_TXN, Action::Hold).containing("torn"));
    writer.begin().unwrap();
    writer.send("torn", &unique_record(0, 1, 50)).unwrap();
    writer.commit().unwrap();
    assert_eq!(proxy.held(), 1, "the first EndTxn never reached the broker");
    assert_eq!(proxy.seen(END_TXN), 2, "the client sent it again by itself");

    writer.begin().unwrap();
    writer.send("torn", &unique_record(1, 1, 50)).unwrap();
    writer.flush().unwrap();
    let answer = proxy.deliver_held().unwrap().unwrap();
    // Correlation id, throttle time, error code.
    assert_eq!(answer[8..10], [0, 0], "the broker takes the late EndTxn: {answer:?}");
    let count = || checker::count_records(&broker.bootstrap(), "torn").ok();
    wait_for("the half transaction to be visible", Duration::from_secs(10), || (count()? == 2).then_some(()));
    assert!(proxy.deliver_held().unwrap().is_none());
}

#[test]
fn the_proxy_delays_cuts_and_refuses() {
    require_kafka!();
    let broker = Broker::start(&BrokerOptions::default().with_proxied_listener()).unwrap();
    let proxy = Proxy::start(&broker).unwrap();
    let admin = Admin::connect(&broker.bootstrap()).unwrap();
    admin.create_topic("proxied", 1).unwrap();
    let writer = Writer::transactional(proxy.bootstrap(), "proxied", &[]).unwrap();
    for (number, action) in
        [Action::Delay(Duration::from_secs(2)), Action::CutBefore, Action::CutAfter].into_iter().enumerate()
    {
        proxy.add_rule(Rule::once(END_TXN, action));
        let start = std::time::Instant::now();
        writer.begin().unwrap();
        writer.send("proxied", &unique_record(number as u64, 1, 50)).unwrap();
        writer.commit().unwrap();
        if let Action::Delay(delay) = action {
            assert!(delay <= start.elapsed());
        }
    }
    assert_eq!(proxy.seen(END_TXN), 5, "two were sent again");
    proxy.refuse(true);
    assert!(Admin::connect(proxy.bootstrap()).unwrap().watermarks("proxied", 0).is_err());
    proxy.refuse(false);
    assert_eq!(checker::count_records(proxy.bootstrap(), "proxied").unwrap(), 3);
}

#[test]
fn users_may_do_what_an_acl_allows() {
    require_kafka!();
    let broker = Broker::start(&BrokerOptions::default().with_sasl(&[("mirror", "secret")])).unwrap();
    let admin = Admin::connect(&broker.bootstrap()).unwrap();
    admin.create_topic("guarded", 1).unwrap();
    let sasl = [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.username", "mirror"),
        ("sasl.password", "secret"),
    ];
    let write = || {
        let writer = Writer::plain(&broker.sasl_bootstrap(), &sasl)?;
        writer.send("guarded", &unique_record(0, 1, 50))?;
        writer.flush()
    };
    assert!(write().unwrap_err().to_string().contains("authorization"));
    admin.allow("mirror", 2, "guarded", 4).unwrap();
    admin.allow("mirror", 2, "guarded", 8).unwrap();
    write().unwrap();
    assert_eq!(checker::count_records(&broker.bootstrap(), "guarded").unwrap(), 1);
}
