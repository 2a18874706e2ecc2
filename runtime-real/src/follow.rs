//! Following the ledger's partition 0, where the topics' pinned starts are written: committed records, from
//! the beginning, for ever.

use crate::ffi::{AssignedConsumer, ClientError, Code, OwnedMessage, StartAt};
use crate::reading::consumer;
use crate::settings::Settings;
use crate::threads::Alarm;
use kafka_types::TargetOffset;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::LaneId;
use verbatim_core::event::{Event, LedgerRecord};
use verbatim_core::failure::Side;

const POLL: Duration = Duration::from_millis(500);
/// Records in one event.
const BURST: usize = 1_000;
/// How long after a failure reading is tried anew.
const RETRY: Duration = Duration::from_secs(1);

/// The thread that follows ends when this is dropped.
pub(crate) struct Follower {
    ended: Arc<AtomicBool>,
}

impl Follower {
    pub(crate) fn start(
        settings: &Arc<Settings>,
        events: &UnboundedSender<Event>,
        alarm: &Alarm,
    ) -> Follower {
        let ended = Arc::<AtomicBool>::default();
        let (settings, events, end) = (Arc::clone(settings), events.clone(), Arc::clone(&ended));
        alarm.start("follow-topics", move || {
            while !end.load(Ordering::Relaxed) {
                if let Err(why) = follow(&settings, &events, &end) {
                    tracing::warn!(why, "following the ledger begins anew");
                    std::thread::sleep(RETRY);
                }
            }
        });
        Follower { ended }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Reads until told to end. A failure that librdkafka does not mend by itself ends it too, and reading then
/// begins anew, from the beginning: records may be reported again, in order, but none is left out.
fn follow(settings: &Settings, events: &UnboundedSender<Event>, end: &AtomicBool) -> Result<(), String> {
    let ledger = settings.flow.ledger();
    let consumer = consumer(settings, Side::Target, "topics").map_err(|trouble| trouble.to_string())?;
    assign(&consumer, ledger.as_str())?;
    while !end.load(Ordering::Relaxed) {
        let mut records = Vec::new();
        for message in consumer.poll(BURST, POLL) {
            match message.error() {
                None => records.push(record(&message)),
                Some(error) if is_final(&error) => return Err(error.to_string()),
                // The end of the partition for now, or librdkafka will try again by itself.
                Some(_) => {}
            }
        }
        if !records.is_empty() && events.send(Event::TopicRecords(records)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn assign(consumer: &AssignedConsumer, ledger: &str) -> Result<(), String> {
    let start = StartAt { topic: ledger, partition: 0, offset: StartAt::BEGINNING, epoch: -1 };
    consumer.assign(std::iter::once(start)).map_err(|error| error.to_string())
}

fn is_final(error: &ClientError) -> bool {
    match error.code {
        // Compaction or a re-created ledger has overtaken the position, or the partition is not there yet:
        // librdkafka then stops fetching it.
        Code::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE
        | Code::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET
        | Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART
        | Code::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
        | Code::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
        | Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED => true,
        _ => error.fatal,
    }
}

fn record(message: &OwnedMessage) -> LedgerRecord {
    LedgerRecord {
        lane: LaneId::FIRST,
        offset: TargetOffset(message.offset()),
        key: message.key().unwrap_or_default().to_vec(),
        value: message.value().unwrap_or_default().to_vec(),
    }
}
