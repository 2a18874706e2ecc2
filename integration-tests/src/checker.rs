//! Judges whether a target topic holds what a source topic holds: keys, values, headers, timestamps, partitions
//! and order, at read_committed. It shares nothing with the mirror but the Kafka client.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message, Timestamp};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::differences::{Digest, compare};
use crate::headers::{self, RawHeader};
use crate::report::{PartitionReport, Report, describe_pair};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Without a single record for so long, a reader gives up.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Longer than the default transaction time-out: whatever is open is over by then.
const OPEN_TRANSACTION_MAX: Duration = Duration::from_secs(90);

/// One record as a consumer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRecord {
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<RawHeader>,
    pub timestamp: Timestamp,
}

/// The records of one partition: offsets and digests, so that gigabytes can be compared in little memory.
#[derive(Debug, Clone, Default)]
pub struct PartitionContents {
    pub offsets: Vec<i64>,
    pub digests: Vec<Digest>,
}

/// Fails the test unless the two topics hold the same, and gives the number of records.
///
/// # Panics
/// When they differ or cannot be read.
#[track_caller]
pub fn assert_equal(source: (&str, &str), target: (&str, &str)) -> usize {
    let report = compare_topics(source, target).expect("both topics can be read");
    assert!(report.is_equal(), "{} is not what {} is:\n{}", target.1, source.1, report.describe());
    report.total(|differences| differences.source_records)
}

/// Compares two topics, each given as bootstrap address and name.
pub fn compare_topics(source: (&str, &str), target: (&str, &str)) -> Result<Report> {
    let (source_contents, target_contents) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| read_topic(source.0, source.1));
        let target_contents = read_topic(target.0, target.1);
        (reading.join(), target_contents)
    });
    let source_contents = source_contents.map_err(|_| anyhow::anyhow!("the source's reader panicked"))??;
    let target_contents = target_contents?;
    ensure!(
        source_contents.len() == target_contents.len(),
        "{} partitions in the source, {} in the target",
        source_contents.len(),
        target_contents.len()
    );
    let mut partitions = Vec::new();
    for (partition, (wanted, found)) in source_contents.iter().zip(&target_contents).enumerate() {
        let partition = i32::try_from(partition)?;
        let differences = compare(&wanted.digests, &found.digests);
        let first = match differences.first {
            None => String::new(),
            Some(place) => {
                let wanted = record_at(source, partition, wanted.offsets.get(place))?;
                let found = record_at(target, partition, found.offsets.get(place))?;
                describe_pair(place, wanted.as_ref(), found.as_ref())
            }
        };
        partitions.push(PartitionReport { partition, differences, first });
    }
    Ok(Report { partitions })
}

/// Reads every partition of a topic from its beginning to its end, as digests.
pub fn read_topic(bootstrap: &str, topic: &str) -> Result<Vec<PartitionContents>> {
    let mut contents = Vec::new();
    for_each_record(bootstrap, topic, |partition, record| {
        let place = usize::try_from(partition).expect("a partition");
        if contents.len() <= place {
            contents.resize_with(place + 1, PartitionContents::default);
        }
        let contents: &mut PartitionContents = &mut contents[place];
        contents.offsets.push(record.offset);
        contents.digests.push(digest(&record));
    })
    .map(|partitions| {
        contents.resize_with(partitions, PartitionContents::default);
        contents
    })
}

/// Reads every record of a topic, partition by partition in the order of the log. For small topics.
pub fn read_records(bootstrap: &str, topic: &str) -> Result<Vec<Vec<SeenRecord>>> {
    let mut records: Vec<Vec<SeenRecord>> = Vec::new();
    let partitions = for_each_record(bootstrap, topic, |partition, record| {
        let place = usize::try_from(partition).expect("a partition");
        if records.len() <= place {
            records.resize_with(place + 1, Vec::new);
        }
        records[place].push(record);
    })?;
    records.resize_with(partitions, Vec::new);
    Ok(records)
}

/// How many committed records a topic holds.
pub fn count_records(bootstrap: &str, topic: &str) -> Result<usize> {
    let mut count = 0;
    for_each_record(bootstrap, topic, |_, _| count += 1)?;
    Ok(count)
}

/// Hands over every committed record up to the ends found at the start; the number of partitions.
/// Waits for transactions that are open then: what they hold belongs to the answer.
fn for_each_record(bootstrap: &str, topic: &str, mut take: impl FnMut(i32, SeenRecord)) -> Result<usize> {
    let reader = connect(bootstrap, "read_committed")?;
    let metadata = reader.fetch_metadata(Some(topic), REQUEST_TIMEOUT)?;
    let found = metadata.topics().first().context("no answer about the topic")?;
    ensure!(found.error().is_none(), "topic {topic}: {:?}", found.error());
    let partitions = found.partitions().len();

    let uncommitted = connect(bootstrap, "read_uncommitted")?;
    let mut assignment = TopicPartitionList::new();
    let mut unfinished = 0;
    let mut finished = vec![true; partitions];
    for partition in found.partitions() {
        let (first, end) = settled_watermarks(&uncommitted, &reader, topic, partition.id())?;
        if first < end {
            assignment.add_partition_offset(topic, partition.id(), Offset::Offset(first))?;
            finished[usize::try_from(partition.id())?] = false;
            unfinished += 1;
        }
    }
    reader.assign(&assignment)?;
    let mut last_sign = Instant::now();
    while 0 < unfinished {
        match reader.poll(Duration::from_millis(200)) {
            None => {}
            Some(Ok(message)) => {
                last_sign = Instant::now();
                take(message.partition(), seen(&message));
            }
            // The end is the last stable offset, which a moment ago was the very end of the log.
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                let finished = &mut finished[usize::try_from(partition)?];
                unfinished -= usize::from(!*finished);
                *finished = true;
            }
            Some(Err(error)) if is_passing(&error) => {}
            Some(Err(error)) => return Err(error).with_context(|| format!("reading {topic}")),
        }
        if SILENCE_MAX < last_sign.elapsed() {
            bail!("{topic} cannot be read to its end: nothing came for {SILENCE_MAX:?}");
        }
    }
    Ok(partitions)
}

/// First offset and end, once no transaction is open below the end.
fn settled_watermarks(
    uncommitted: &BaseConsumer,
    committed: &BaseConsumer,
    topic: &str,
    partition: i32,
) -> Result<(i64, i64)> {
    let deadline = Instant::now() + OPEN_TRANSACTION_MAX;
    let (_, end) = uncommitted.fetch_watermarks(topic, partition, REQUEST_TIMEOUT)?;
    loop {
        let (first, stable) = committed.fetch_watermarks(topic, partition, REQUEST_TIMEOUT)?;
        if end <= stable {
            return Ok((first, end));
        }
        ensure!(
            Instant::now() < deadline,
            "{topic} {partition}: a transaction is open at {stable}, below the end {end}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn connect(bootstrap: &str, isolation: &str) -> Result<BaseConsumer> {
    Ok(ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "verbatim-checker")
        .set("isolation.level", isolation)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("allow.auto.create.topics", "false")
        .set("auto.offset.reset", "error")
        .set("check.crcs", "true")
        .set("queued.max.messages.kbytes", "16384")
        .set("fetch.queue.backoff.ms", "10")
        .create()?)
}

/// What the client repairs by itself, such as a connection that broke with its broker.
fn is_passing(error: &KafkaError) -> bool {
    use rdkafka::error::RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, OperationTimedOut};
    matches!(error.rdkafka_error_code(), Some(AllBrokersDown | BrokerTransportFailure | OperationTimedOut))
}

fn seen(message: &BorrowedMessage<'_>) -> SeenRecord {
    SeenRecord {
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers::from_message(message),
        timestamp: message.timestamp(),
    }
}

/// Everything but the offset. The standard hasher writes lengths and variants, so that no two
/// different records run together; two of them with different beginnings make accidents impossible in practice.
fn digest(record: &SeenRecord) -> Digest {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        (&record.key, &record.value, &record.headers).hash(&mut hasher);
        match record.timestamp {
            Timestamp::NotAvailable => 0.hash(&mut hasher),
            Timestamp::CreateTime(time) => (1, time).hash(&mut hasher),
            Timestamp::LogAppendTime(time) => (2, time).hash(&mut hasher),
        }
        Digest::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

/// Reads one record again, to show it.
fn record_at(topic: (&str, &str), partition: i32, offset: Option<&i64>) -> Result<Option<SeenRecord>> {
    let Some(&offset) = offset else {
        return Ok(None);
    };
    let reader = connect(topic.0, "read_committed")?;
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(topic.1, partition, Offset::Offset(offset))?;
    reader.assign(&assignment)?;
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(Ok(message)) = reader.poll(Duration::from_millis(200)) {
            return Ok(Some(seen(&message)));
        }
    }
    bail!("{} {partition}: the record at {offset} cannot be read again", topic.1)
}
