//! What arrives is what was written: odd records, odd topics, transactions, and what cannot be sent at all.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use integration_tests::admin::Admin;
use integration_tests::checker::SeenRecord;
use integration_tests::kafka::{Broker, BrokerOptions, IMAGE_3_9, default_image};
use integration_tests::mirror::{Finished, Mirror, MirrorConfig, finish};
use integration_tests::workload::{self, Record, Writer, nasty_records, nul_header_records, unique_record};
use integration_tests::{batch, checker, require_kafka, unique_name, wait_for};
use rdkafka::message::Timestamp;

const PARTITIONS: i32 = 4;
const LONG: Duration = Duration::from_secs(120);

struct Pair {
    source: Broker,
    target: Broker,
}

/// Both brokers, started at once.
fn pair() -> &'static Pair {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    // Topics are compacted as soon as there is something to gain.
    PAIR.get_or_init(|| Pair::start(&BrokerOptions::default().property("log.cleaner.backoff.ms", "1000")))
}

impl Pair {
    fn start(options: &BrokerOptions) -> Pair {
        std::thread::scope(|scope| {
            let source = scope.spawn(|| Broker::start(options));
            let target = Broker::start(options).expect("the target starts");
            Pair { source: source.join().expect("no panic").expect("the source starts"), target }
        })
    }

    fn config(&self, stem: &str, include: &[&str]) -> MirrorConfig {
        MirrorConfig::new(&unique_name(stem), &self.source.bootstrap(), &self.target.bootstrap(), include)
            .text("topics", "refresh", "2s")
    }

    fn topic(&self, stem: &str, config: &[(&str, &str)]) -> Result<String> {
        let topic = unique_name(stem);
        let partitions = PARTITIONS as usize;
        Admin::connect(&self.source.bootstrap())?.create_topic_with(&topic, partitions, config)?;
        Ok(topic)
    }

    fn write(&self, topic: &str, records: &[Record], client: &[(&str, &str)]) -> Result<()> {
        let writer = Writer::idempotent(&self.source.bootstrap(), client)?;
        for record in records {
            writer.send(topic, record)?;
        }
        writer.flush()
    }

    #[track_caller]
    fn assert_mirrored(&self, config: &MirrorConfig, topic: &str) {
        let run = finish(config, &["run", "--until", "end"], LONG).expect("the mirror ends");
        assert_eq!(run.code, 0, "{}", run.stderr);
        self.assert_equal(config, topic);
    }

    #[track_caller]
    fn assert_equal(&self, config: &MirrorConfig, topic: &str) {
        checker::assert_equal((&self.source.bootstrap(), topic), (&self.target.bootstrap(), topic));
        let verify = finish(config, &["verify"], LONG).expect("verify ends");
        assert_eq!(verify.code, 0, "{}{}", verify.stdout, verify.stderr);
    }
}

fn run(test: impl FnOnce(&Pair) -> Result<()>) {
    require_kafka!();
    test(pair()).expect("the brokers do as they are told");
}

/// The row of `status` that speaks of this partition.
fn status_of(config: &MirrorConfig, topic: &str, partition: i32) -> Result<String> {
    let Finished { stdout, .. } = finish(config, &["status"], LONG)?;
    let is_row = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.get(1) == Some(&topic) && columns.get(2) == Some(&partition.to_string().as_str())
    };
    Ok(stdout.lines().find(is_row).unwrap_or_default().to_owned())
}

#[test]
fn odd_records_arrive_byte_for_byte() {
    run(|pair| {
        let topic = pair.topic("odd", &[])?;
        pair.write(&topic, &nasty_records(PARTITIONS), &[])?;
        batch::produce(&pair.source.bootstrap(), &topic, 0, &nul_header_records())?;
        let config = pair.config("odd", &[&topic]);
        pair.assert_mirrored(&config, &topic);
        let seen = batch::fetch(&pair.target.bootstrap(), &topic, 0, 0)?;
        let names: BTreeSet<Vec<u8>> =
            seen.iter().flat_map(|record| &record.headers).map(|(name, _)| name.clone()).collect();
        assert!(names.contains(b"a\0b".as_slice()), "a NUL in a header's name survives");
        Ok(())
    });
}

#[test]
fn every_compression_arrives_equal() {
    run(|pair| {
        let topic = pair.topic("compressed", &[])?;
        for (number, codec) in ["none", "gzip", "snappy", "lz4", "zstd"].into_iter().enumerate() {
            let first = number as u64 * 1_000;
            let records: Vec<Record> =
                (first..first + 1_000).map(|number| unique_record(number, PARTITIONS, 300)).collect();
            pair.write(&topic, &records, &[("compression.type", codec)])?;
        }
        pair.assert_mirrored(&pair.config("compressed", &[&topic]), &topic);
        Ok(())
    });
}

#[test]
fn aborted_records_are_never_copied_and_markers_are_passed() {
    run(|pair| {
        let topic = pair.topic("transactions", &[])?;
        let writer = Writer::transactional(&pair.source.bootstrap(), &unique_name("writer"), &[])?;
        // The last one is aborted: the log ends with records that nobody may see, and a marker.
        for (round, commits) in [true, false, true, true, false].into_iter().enumerate() {
            writer.begin()?;
            for number in 0..200 {
                writer.send(&topic, &unique_record(round as u64 * 200 + number, PARTITIONS, 100))?;
            }
            writer.flush()?;
            if commits { writer.commit()? } else { writer.abort()? }
        }
        let config = pair.config("transactions", &[&topic]);
        pair.assert_mirrored(&config, &topic);
        assert_eq!(checker::count_records(&pair.target.bootstrap(), &topic)?, 600);
        let row = status_of(&config, &topic, 0)?;
        assert!(row.contains("caught-up"), "the position passes the trailing marker: {row}");
        // The next run begins beyond markers, where no record tells the epoch (H7).
        writer.begin()?;
        for number in 1_000..1_200 {
            writer.send(&topic, &unique_record(number, PARTITIONS, 100))?;
        }
        writer.commit()?;
        pair.assert_mirrored(&config, &topic);
        assert_eq!(checker::count_records(&pair.target.bootstrap(), &topic)?, 800);
        Ok(())
    });
}

/// Compacted at once, but for the segment that is written to.
const COMPACTED: &[(&str, &str)] =
    &[("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01"), ("segment.ms", "500")];

/// One value for each of 40 keys and, every second time, tombstones for half of them.
fn write_round(pair: &Pair, topic: &str, round: u64) -> Result<()> {
    let keyed = |number: u64| {
        let key = number % 40;
        let dead = round % 2 == 1 && key % 8 < 4;
        let record = unique_record(round * 400 + number, PARTITIONS, 100);
        let value = record.value.filter(|_| !dead);
        Record { key: Some(format!("key {key}").into_bytes()), value, ..record }
    };
    let records: Vec<Record> = (0..400).map(keyed).collect();
    pair.write(topic, &records, &[])?;
    // The next record opens a new segment, and this one can be compacted.
    std::thread::sleep(Duration::from_millis(600));
    Ok(())
}

/// Waits until compaction has left no more than this of the topic.
fn wait_for_compaction(pair: &Pair, topic: &str, records_max: usize) {
    wait_for("compaction", LONG, || {
        let left = checker::count_records(&pair.source.bootstrap(), topic).unwrap_or(usize::MAX);
        (left <= records_max).then_some(())
    });
}

#[test]
fn holes_of_compaction_are_passed() {
    run(|pair| {
        let topic = pair.topic("compacted", COMPACTED)?;
        // The copies are not compacted, so that they can be compared with what was there when they were made.
        Admin::connect(&pair.target.bootstrap())?.create_topic(&topic, PARTITIONS as usize)?;
        let config = pair.config("compacted", &[&topic]);
        (0..3).try_for_each(|round| write_round(pair, &topic, round))?;
        wait_for_compaction(pair, &topic, 500);
        // Holes from the very first offset on.
        let first = checker::read_records(&pair.source.bootstrap(), &topic)?;
        assert!(first.iter().all(|partition| partition.first().is_some_and(|record| 0 < record.offset)));
        pair.assert_mirrored(&config, &topic);

        // Holes on both sides of the position: what was copied is gone, and so is what comes right after it.
        (3..6).try_for_each(|round| write_round(pair, &topic, round))?;
        wait_for_compaction(pair, &topic, 500);
        let second = checker::read_records(&pair.source.bootstrap(), &topic)?;
        let run = finish(&config, &["run", "--until", "end"], LONG)?;
        assert_eq!(run.code, 0, "{}", run.stderr);
        let copies = checker::read_records(&pair.target.bootstrap(), &topic)?;
        for (partition, copies) in copies.iter().enumerate() {
            let end = first[partition].last().map_or(0, |record| record.offset + 1);
            let after = second[partition].iter().filter(|record| end <= record.offset);
            let expected: Vec<_> = first[partition].iter().chain(after).map(contents).collect();
            assert!(
                second[partition].iter().all(|record| end < record.offset),
                "a hole follows the position"
            );
            assert_eq!(copies.iter().map(contents).collect::<Vec<_>>(), expected, "partition {partition}");
        }
        Ok(())
    });
}

fn contents(record: &SeenRecord) -> (&Option<Vec<u8>>, &Option<Vec<u8>>, &Timestamp) {
    (&record.key, &record.value, &record.timestamp)
}

#[test]
fn a_topic_is_made_with_its_partitions_and_settings() {
    run(|pair| {
        let topic =
            pair.topic("settings", &[("cleanup.policy", "compact"), ("max.message.bytes", "2000000")])?;
        let records: Vec<Record> = (0..100).map(|number| unique_record(number, PARTITIONS, 100)).collect();
        pair.write(&topic, &records, &[])?;
        pair.assert_mirrored(&pair.config("settings", &[&topic]), &topic);
        let target = Admin::connect(&pair.target.bootstrap())?;
        assert_eq!(target.partition_count(&topic)?, Some(PARTITIONS as usize));
        assert_eq!(target.topic_config(&topic, "cleanup.policy")?.as_deref(), Some("compact"));
        assert_eq!(target.topic_config(&topic, "max.message.bytes")?.as_deref(), Some("2000000"));
        Ok(())
    });
}

#[test]
fn a_timestamp_of_zero_halts_its_partition_by_name() {
    run(|pair| {
        let topic = pair.topic("zero", &[])?;
        let mut records: Vec<Record> = (0..40).map(|number| unique_record(number, PARTITIONS, 50)).collect();
        // The eighth record of partition 1.
        records[29].timestamp = Some(0);
        assert_eq!(records[29].partition, 1);
        for partition in 0..PARTITIONS {
            let own: Vec<Record> =
                records.iter().filter(|record| record.partition == partition).cloned().collect();
            batch::produce(&pair.source.bootstrap(), &topic, partition, &own)?;
        }
        let config = pair.config("zero", &[&topic]);
        let run = finish(&config, &["run", "--until", "end"], LONG)?;
        assert_eq!(run.code, 65, "{}", run.stderr);
        let row = status_of(&config, &topic, 1)?;
        assert!(row.contains("halted") && row.contains("unsendable") && row.contains("offset 7"), "{row}");
        let counts: Vec<usize> =
            checker::read_records(&pair.target.bootstrap(), &topic)?.iter().map(Vec::len).collect();
        assert_eq!(counts, [10, 7, 10, 10], "all before it, and all of the others");
        Ok(())
    });
}

#[test]
fn verify_names_a_record_that_another_writer_left() {
    run(|pair| {
        let topic = pair.topic("foreign", &[])?;
        let records: Vec<Record> = (0..40).map(|number| unique_record(number, PARTITIONS, 50)).collect();
        pair.write(&topic, &records, &[])?;
        let config = pair.config("foreign", &[&topic]);
        pair.assert_mirrored(&config, &topic);
        let foreign = Writer::idempotent(&pair.target.bootstrap(), &[])?;
        foreign.send(&topic, &Record { partition: 2, ..unique_record(1_000, 1, 20) })?;
        foreign.flush()?;
        let verify = finish(&config, &["verify"], LONG)?;
        assert_eq!(verify.code, 65, "{}{}", verify.stdout, verify.stderr);
        let row =
            verify.stdout.lines().find(|line| line.contains(&format!("{topic}  2"))).unwrap_or_default();
        assert!(row.contains("10"), "the place of the foreign record: {}", verify.stdout);
        Ok(())
    });
}

#[test]
fn records_deleted_before_they_were_copied_halt_with_their_range() {
    run(|pair| {
        let topic = pair.topic("gap", &[])?;
        let write = |numbers: std::ops::Range<u64>| {
            workload::fill(&pair.source.bootstrap(), &topic, PARTITIONS, numbers, 50)
        };
        write(0..400)?;
        let config = pair.config("gap", &[&topic]);
        pair.assert_mirrored(&config, &topic);
        write(400..800)?;
        Admin::connect(&pair.source.bootstrap())?.delete_records(&topic, 3, 150)?;
        let run = finish(&config, &["run", "--until", "end"], LONG)?;
        assert_eq!(run.code, 65, "{}", run.stderr);
        let row = status_of(&config, &topic, 3)?;
        assert!(row.contains("halted") && row.contains("gap") && row.contains("100 to 149"), "{row}");
        let counts: Vec<usize> =
            checker::read_records(&pair.target.bootstrap(), &topic)?.iter().map(Vec::len).collect();
        assert_eq!(counts, [200, 200, 200, 100], "nothing is skipped, and the others go on");
        Ok(())
    });
}

#[test]
fn new_topics_and_partitions_are_copied_from_their_first_record_by_one() {
    run(|pair| discovered_by(1, pair));
}

#[test]
fn new_topics_and_partitions_are_copied_from_their_first_record_by_two() {
    run(|pair| discovered_by(2, pair));
}

/// With three instances, and Kafka 3.9 on both sides.
#[test]
fn new_topics_and_partitions_are_copied_from_their_first_record_by_three_on_3_9() {
    require_kafka!(default_image());
    require_kafka!(IMAGE_3_9);
    discovered_by(3, &Pair::start(&BrokerOptions::kafka_3_9())).expect("the brokers do as they are told");
}

fn discovered_by(count: usize, pair: &Pair) -> Result<()> {
    let stem = unique_name("found");
    let (first, later, excluded) = (format!("{stem}-a"), format!("{stem}-b"), format!("{stem}-not"));
    let source = Admin::connect(&pair.source.bootstrap())?;
    source.create_topic(&first, 2)?;
    let config = pair
        .config("found", &[&format!("{stem}-.*")])
        .set("topics", "exclude", &format!("[\"{excluded}\"]"))
        .text("delivery", "start", "latest");
    let mut instances: Vec<Mirror> = (0..count).map(|_| Mirror::run(&config)).collect::<Result<_>>()?;
    let target = Admin::connect(&pair.target.bootstrap())?;
    let partitions = |admin: &Admin| admin.partition_count(&first).ok().flatten();
    wait_for("the first topic on the target", LONG, || partitions(&target).filter(|it| *it == 2));
    source.create_topic(&later, 3)?;
    source.create_topic(&excluded, 1)?;
    workload::fill(&pair.source.bootstrap(), &later, 3, 0..300, 50)?;
    source.grow_topic(&first, 4)?;
    wait_for("the source topic to have grown", LONG, || partitions(&source).filter(|it| *it == 4));
    workload::fill(&pair.source.bootstrap(), &first, 4, 0..400, 50)?;
    let copied = || {
        let count = |topic: &str| checker::count_records(&pair.target.bootstrap(), topic).unwrap_or(0);
        (count(&first) + count(&later) == 700).then_some(())
    };
    wait_for("all records on the target", LONG, copied);
    for topic in [&first, &later] {
        checker::assert_equal((&pair.source.bootstrap(), topic), (&pair.target.bootstrap(), topic));
    }
    assert_eq!(target.partition_count(&excluded)?, None);
    for instance in &mut instances {
        instance.terminate()?;
        assert_eq!(instance.wait(LONG)?, 0, "{}", instance.story());
    }
    Ok(())
}

/// At the default `topics.refresh` of 30 s.
#[test]
fn a_new_topic_is_there_within_the_default_refresh() {
    run(|pair| {
        let stem = unique_name("refresh");
        let config = MirrorConfig::new(
            &unique_name("refresh"),
            &pair.source.bootstrap(),
            &pair.target.bootstrap(),
            &[&format!("{stem}-.*")],
        );
        let source = Admin::connect(&pair.source.bootstrap())?;
        let old = format!("{stem}-old");
        source.create_topic(&old, 1)?;
        workload::fill(&pair.source.bootstrap(), &old, 1, 0..10, 50)?;
        let mut mirror = Mirror::run(&config)?;
        let copied = |topic: &str| checker::count_records(&pair.target.bootstrap(), topic).unwrap_or(0);
        wait_for("the old topic", LONG, || (copied(&old) == 10).then_some(()));
        let new = format!("{stem}-new");
        source.create_topic(&new, 2)?;
        workload::fill(&pair.source.bootstrap(), &new, 2, 0..100, 50)?;
        // The refresh, and then the time it takes to make the topic and to copy it.
        wait_for("the new topic", Duration::from_secs(35), || (copied(&new) == 100).then_some(()));
        mirror.terminate()?;
        assert_eq!(mirror.wait(LONG)?, 0, "{}", mirror.story());
        Ok(())
    });
}
