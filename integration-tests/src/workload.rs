//! Test data, and the producers that write it. What a test wrote is known by what the broker acknowledged.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, Message};

use crate::headers::{self, RawHeader};

pub const COMPRESSIONS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
const TIMEOUT: Duration = Duration::from_secs(60);

/// A record to write. No timestamp means none in the log either (-1), not "now".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    pub partition: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<RawHeader>,
    pub timestamp: Option<i64>,
}

#[derive(Default)]
struct Deliveries {
    acknowledged: AtomicUsize,
    refused: Mutex<Vec<String>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, message)) => {
                let refusal = format!("{} {}: {error}", message.topic(), message.partition());
                self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
            }
        }
    }
}

/// A producer that knows what became of its records.
pub struct Writer {
    producer: BaseProducer<Deliveries>,
}

impl Writer {
    pub fn plain(bootstrap: &str, overrides: &[(&str, &str)]) -> Result<Writer> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", bootstrap)
            .set("allow.auto.create.topics", "false")
            .set("message.max.bytes", "10000000")
            .set("queue.buffering.max.kbytes", "65536")
            .set("linger.ms", "5")
            // A broker that was restarted is to be written to at once.
            .set("reconnect.backoff.max.ms", "200");
        for (name, value) in overrides {
            config.set(*name, *value);
        }
        let producer = config.create_with_context(Deliveries::default())?;
        Ok(Writer { producer })
    }

    pub fn idempotent(bootstrap: &str, overrides: &[(&str, &str)]) -> Result<Writer> {
        Writer::plain(bootstrap, &[overrides, &[("enable.idempotence", "true")]].concat())
    }

    /// A transactional producer, ready to `begin`.
    pub fn transactional(bootstrap: &str, id: &str, overrides: &[(&str, &str)]) -> Result<Writer> {
        let writer = Writer::plain(bootstrap, &[overrides, &[("transactional.id", id)]].concat())?;
        writer.producer.init_transactions(TIMEOUT)?;
        Ok(writer)
    }

    /// Hands one record over, waiting while the producer's queue is full.
    pub fn send(&self, topic: &str, record: &Record) -> Result<()> {
        // librdkafka takes 0 for "now".
        ensure!(record.timestamp != Some(0), "a timestamp of 0 needs batch::produce");
        let mut base: BaseRecord<'_, [u8], [u8]> =
            BaseRecord::to(topic).partition(record.partition).timestamp(record.timestamp.unwrap_or(-1));
        if !record.headers.is_empty() {
            base = base.headers(headers::to_native(&record.headers));
        }
        base.key = record.key.as_deref();
        base.payload = record.value.as_deref();
        loop {
            match self.producer.send(base) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    base = back;
                    self.producer.poll(Duration::from_millis(50));
                }
                Err((error, _)) => return Err(error).context("the record was not accepted"),
            }
        }
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// Waits until every record is acknowledged, and fails when one was refused.
    pub fn flush(&self) -> Result<()> {
        self.producer.flush(TIMEOUT)?;
        let refused = self.refused();
        ensure!(refused.is_empty(), "{} records were refused, the first: {}", refused.len(), refused[0]);
        Ok(())
    }

    pub fn begin(&self) -> Result<()> {
        Ok(self.producer.begin_transaction()?)
    }

    pub fn commit(&self) -> Result<()> {
        self.flush()?;
        Ok(self.producer.commit_transaction(TIMEOUT)?)
    }

    pub fn abort(&self) -> Result<()> {
        Ok(self.producer.abort_transaction(TIMEOUT)?)
    }

    pub fn acknowledged(&self) -> usize {
        self.producer.context().acknowledged.load(Ordering::Relaxed)
    }

    pub fn refused(&self) -> Vec<String> {
        self.producer.context().refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The rdkafka producer itself, for what is not offered here.
    pub fn inner(&self) -> &BaseProducer<impl ProducerContext> {
        &self.producer
    }

    fn wait_briefly(&self) {
        self.producer.poll(Timeout::After(Duration::from_millis(1)));
    }
}

/// A record whose value occurs nowhere else: its number, then filler that does not compress to nothing.
pub fn unique_record(number: u64, partitions: i32, bytes: usize) -> Record {
    let mut value = format!("record {number} ").into_bytes();
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while value.len() < bytes {
        // xorshift: cheap, and the same number gives the same bytes again.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value.extend_from_slice(&state.to_le_bytes());
    }
    value.truncate(bytes.max(24));
    Record {
        partition: i32::try_from(number % u64::from(partitions.unsigned_abs())).expect("a partition"),
        key: Some(format!("key {number}").into_bytes()),
        value: Some(value),
        headers: Vec::new(),
        timestamp: Some(now_ms()),
    }
}

/// Writes records `numbers` over the partitions in turn, and waits for the acknowledgements.
pub fn fill(
    bootstrap: &str,
    topic: &str,
    partitions: i32,
    numbers: std::ops::Range<u64>,
    bytes: usize,
) -> Result<()> {
    let writer = Writer::idempotent(bootstrap, &[])?;
    for number in numbers {
        writer.send(topic, &unique_record(number, partitions, bytes))?;
    }
    writer.flush()
}

/// Everything a record may be that a careless copy changes. Explicit partitions; no hash would give these.
pub fn nasty_records(partitions: i32) -> Vec<Record> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let text = |words: &str| Some(words.as_bytes().to_vec());
    let header = |name: &[u8], value: Option<&[u8]>| (name.to_vec(), value.map(<[u8]>::to_vec));
    let now = now_ms();
    let contents = [
        (None, None),
        (None, text("null key")),
        (Some(vec![]), text("empty key")),
        (text("null value, a tombstone"), None),
        (text("empty value"), Some(vec![])),
        (Some(vec![]), Some(vec![])),
        (Some(vec![0, 0xff, 0xfe, b'\n', 0]), Some((0..=255).collect())),
    ];
    let header_sets = [
        vec![],
        vec![header(b"null", None), header(b"empty", Some(b"")), header(b"text", Some(b"value"))],
        vec![
            header(b"again", Some(b"1")),
            header(b"other", None),
            header(b"again", Some(b"1")),
            header(b"again", None),
        ],
        vec![header(b"", Some(b"empty name")), header(b"\xff\xfe not UTF-8", Some(b"\0\xff\0"))],
        vec![header(b"z", Some(b"order")), header(b"a", Some(b"is kept"))],
    ];
    // One hour ahead is the furthest that a broker takes by default. Two neighbours have equal times.
    let timestamps =
        [None, Some(1), Some(now - 3650 * DAY_MS), Some(now), Some(now), Some(now + 50 * 60 * 1000)];
    let mut records = Vec::new();
    for (key, value) in &contents {
        for headers in &header_sets {
            for timestamp in timestamps {
                records.push((key.clone(), value.clone(), headers.clone(), timestamp));
            }
        }
    }
    for bytes in [1, 1000, 16_383, 16_384, 100_000, 900 * 1024] {
        records.push((
            text("size"),
            unique_record(bytes, 1, 0).value.map(|mut value| {
                value.resize(usize::try_from(bytes).expect("a size"), b'.');
                value
            }),
            vec![],
            Some(now),
        ));
    }
    let place = |(index, (key, value, headers, timestamp))| Record {
        partition: i32::try_from(index).expect("few records") * 7 % partitions,
        key,
        value,
        headers,
        timestamp,
    };
    records.into_iter().enumerate().map(place).collect()
}

/// Records with what only `batch::produce` can write: names of headers that hold a NUL.
pub fn nul_header_records() -> Vec<Record> {
    let names: [&[u8]; 4] = [b"a\0b", b"\0", b"a\0", b"a"];
    let headers = names.iter().map(|name| (name.to_vec(), Some(b"value".to_vec()))).collect();
    vec![Record {
        partition: 0,
        key: None,
        value: Some(b"NUL in header names".to_vec()),
        headers,
        timestamp: Some(now_ms()),
    }]
}

/// A producer that keeps writing unique records until it is stopped.
pub struct LiveLoad {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64>>>,
}

impl LiveLoad {
    /// `rate` is in records a second.
    pub fn start(bootstrap: &str, topic: &str, partitions: i32, first: u64, rate: u64) -> Result<LiveLoad> {
        let writer = Writer::idempotent(bootstrap, &[])?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, topic) = (Arc::clone(&stop), topic.to_owned());
        let thread = std::thread::spawn(move || {
            let start = std::time::Instant::now();
            let mut sent = 0;
            while !stopping.load(Ordering::Relaxed) {
                let due = start.elapsed().as_millis() * u128::from(rate) / 1000;
                while u128::from(sent) < due {
                    writer.send(&topic, &unique_record(first + sent, partitions, 200))?;
                    sent += 1;
                }
                writer.wait_briefly();
            }
            writer.flush()?;
            Ok(sent)
        });
        Ok(LiveLoad { stop, thread: Some(thread) })
    }

    /// Stops, waits for the acknowledgements, and says how many records were written.
    pub fn stop(mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("already stopped")?;
        thread.join().map_err(|_| anyhow::anyhow!("the load's thread panicked"))?
    }
}

impl Drop for LiveLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
