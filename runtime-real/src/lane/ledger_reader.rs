//! Reading a lane's ledger partition: back to one's own claim, or as far as it goes now.

use super::LaneSettings;
use super::emitter::Emitter;
use super::target_reader::{Seen, TargetReader};
use crate::ffi::admin::Spec;
use crate::ffi::{OwnedMessage, StartAt};
use kafka_types::{Partition, TargetOffset, TargetPartition};
use std::sync::Arc;
use verbatim_core::event::{LaneEvent, LedgerRecord, Step};
use verbatim_core::failure::Failure;
use verbatim_core::{Attempt, LaneId};

/// `Replay`: all records up to the one at `until`. No end of partition ends it (H2); the core's deadline does.
pub(super) fn replay(emitter: &Emitter, attempt: Attempt, settings: &Arc<LaneSettings>, until: TargetOffset) {
    start(emitter, attempt, settings, Step::Replay, move |reader, lane, emitter| {
        let place = &lane.place;
        let log_start = reader.ends(std::slice::from_ref(place), Spec::Earliest);
        let log_start = log_start.into_values().next().expect("as many as asked for")?;
        let read = read(reader, lane, emitter, |seen| match seen {
            Next::Record(offset) => until <= offset,
            Next::End => false,
        })?;
        match read.last() {
            Some(last) if last.offset == until => Ok(LaneEvent::Replayed { log_start, records: read }),
            // Compaction keeps the last record of each key: a later one of the same key has been written.
            _ => Err(Failure::Fenced(format!("{place} goes on beyond {until}, which is gone"))),
        }
    });
}

/// `ReadClaims`: all records up to the present end.
pub(super) fn read_claims(emitter: &Emitter, attempt: Attempt, settings: &Arc<LaneSettings>) {
    start(emitter, attempt, settings, Step::ReadClaims, move |reader, lane, emitter| {
        let read = read(reader, lane, emitter, |seen| matches!(seen, Next::End))?;
        Ok(LaneEvent::Claims(read))
    });
}

struct LanePartition {
    lane: LaneId,
    place: TargetPartition,
}

enum Next {
    Record(TargetOffset),
    End,
}

/// Runs `read` on a thread of its own and emits what comes of it.
fn start(
    emitter: &Emitter,
    attempt: Attempt,
    settings: &Arc<LaneSettings>,
    step: Step,
    read: impl FnOnce(&TargetReader, &LanePartition, &Emitter) -> Result<LaneEvent, Failure> + Send + 'static,
) {
    let (emits, settings) = (emitter.clone(), Arc::clone(settings));
    emitter.spawn(attempt, step, "ledger-reader", move || {
        let lane = emits.lane();
        let partition = Partition(lane.0.cast_signed());
        let place = TargetPartition { topic: settings.ledger.clone(), partition };
        let reader = TargetReader::new(&settings.target_reader, &emits);
        match reader.and_then(|reader| read(&reader, &LanePartition { lane, place }, &emits)) {
            Ok(event) => emits.emit(attempt, event),
            Err(failure) => emits.failed(attempt, step, failure),
        }
    });
}

/// Reads from the beginning until `enough`, or until the lane is abandoned.
fn read(
    reader: &TargetReader,
    lane: &LanePartition,
    emitter: &Emitter,
    enough: impl Fn(Next) -> bool,
) -> Result<Vec<LedgerRecord>, Failure> {
    reader.start([(&lane.place, StartAt::BEGINNING)].into_iter())?;
    let mut records = Vec::new();
    while !emitter.is_abandoned() {
        for seen in reader.poll()? {
            let next = match seen {
                Seen::Record(_, message) => {
                    let record = ledger_record(lane.lane, &message);
                    let offset = record.offset;
                    records.push(record);
                    Next::Record(offset)
                }
                Seen::End(_) => Next::End,
            };
            if enough(next) {
                return Ok(records);
            }
        }
    }
    Err(Failure::Retry("abandoned".into()))
}

fn ledger_record(lane: LaneId, message: &OwnedMessage) -> LedgerRecord {
    let owned = |part: Option<&[u8]>| part.unwrap_or_default().to_vec();
    let offset = TargetOffset(message.offset());
    LedgerRecord { lane, offset, key: owned(message.key()), value: owned(message.value()) }
}
