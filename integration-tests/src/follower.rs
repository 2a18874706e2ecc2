//! Watches a topic grow: a read_committed consumer that counts what becomes visible, partition by partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use rdkafka::ClientConfig;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::wait_for;

/// Reads on until it is dropped, also over the death of its broker.
pub struct Follower {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

struct Seen {
    stop: AtomicBool,
    count: AtomicU64,
    /// By partition, the timestamp of the last record.
    timestamps: Vec<AtomicI64>,
}

impl Follower {
    /// Follows a topic from its beginning; it may not exist yet.
    pub fn start(bootstrap: &str, topic: &str, partitions: i32) -> Result<Follower> {
        let reader: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "verbatim-follower")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("allow.auto.create.topics", "false")
            .set("auto.offset.reset", "earliest")
            .set("topic.metadata.refresh.interval.ms", "1000")
            .set("reconnect.backoff.max.ms", "200")
            .set("fetch.queue.backoff.ms", "10")
            .set("queued.max.messages.kbytes", "16384")
            .set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg)
            .create()?;
        let mut assignment = TopicPartitionList::new();
        for partition in 0..partitions {
            assignment.add_partition_offset(topic, partition, Offset::Beginning)?;
        }
        let timestamps = (0..partitions).map(|_| AtomicI64::new(i64::MIN)).collect();
        let seen = Arc::new(Seen { stop: AtomicBool::new(false), count: AtomicU64::new(0), timestamps });
        let (bootstrap, topic, seeing) = (bootstrap.to_owned(), topic.to_owned(), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            // Assigned too early, a partition is looked for again only now and then.
            let exists = || {
                let admin = crate::admin::Admin::connect(&bootstrap).ok()?;
                admin.partition_count(&topic).ok()?
            };
            while !seeing.stop.load(Ordering::Relaxed) && exists().is_none() {
                std::thread::sleep(Duration::from_millis(100));
            }
            reader.assign(&assignment).expect("partitions can be assigned");
            while !seeing.stop.load(Ordering::Relaxed) {
                // Errors are of a broker that is away: the client comes back by itself.
                if let Some(Ok(message)) = reader.poll(Duration::from_millis(100)) {
                    let partition = usize::try_from(message.partition()).expect("a partition");
                    let timestamp = message.timestamp().to_millis().unwrap_or(i64::MIN);
                    seeing.timestamps[partition].store(timestamp, Ordering::Relaxed);
                    seeing.count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Follower { seen, thread: Some(thread) })
    }

    /// How many records were visible so far.
    pub fn count(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }

    /// Waits until that many records are visible.
    ///
    /// # Panics
    /// When the time is up.
    #[track_caller]
    pub fn wait_for_count(&self, count: u64, timeout: Duration) {
        wait_for(&format!("{count} records"), timeout, || (count <= self.count()).then_some(()));
    }

    /// Waits until each of these partitions shows a record made after that time, in milliseconds since 1970: so
    /// it was copied after it, too. How long it took from the call.
    ///
    /// # Panics
    /// When the time is up, naming the partitions that stand still.
    #[track_caller]
    pub fn wait_for_newer(&self, partitions: &[i32], than: i64, timeout: Duration) -> Duration {
        let start = Instant::now();
        loop {
            let is_old = |partition: &&i32| {
                let place = usize::try_from(**partition).expect("a partition");
                self.seen.timestamps[place].load(Ordering::Relaxed) <= than
            };
            let standing: Vec<&i32> = partitions.iter().filter(is_old).collect();
            if standing.is_empty() {
                return start.elapsed();
            }
            assert!(start.elapsed() < timeout, "{timeout:?} later, partitions {standing:?} stand still");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
