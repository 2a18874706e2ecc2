//! Reading a lane's ledger partition: back to one's own claim, or as far as it goes now.

use super::LanePlace;
use crate::client::fetcher::{Fetcher, Read, Start};
use crate::client::io::Io;
use crate::client::ledger_records::ledger_record;
use crate::client::library::{Library, SOCKET_TIMEOUT_MS};
use crate::client::offsets::{NoOffset, Offsets};
use kafka_model::Millis;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_types::{ErrorCode, Partition, TargetOffset, TopicPartition};
use verbatim_core::event::{LaneEvent, LedgerRecord};
use verbatim_core::failure::{Failure, Trouble};
use verbatim_core::{Attempt, LaneId};

const ASK_MAX_MS: Millis = 10_000;

/// Until when to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadUntil {
    /// The record at this offset. No end of partition ends it (H2).
    Record(TargetOffset),
    PresentEnd,
}

pub(super) struct LedgerReader {
    pub(super) attempt: Attempt,
    pub(super) until: ReadUntil,
    lane: LaneId,
    place: TopicPartition,
    fetcher: Fetcher,
    log_start: Option<TargetOffset>,
    asking: Option<Offsets>,
    records: Vec<LedgerRecord>,
}

impl LedgerReader {
    pub(super) fn start(io: &mut Io, place: &LanePlace, attempt: Attempt, until: ReadUntil) -> LedgerReader {
        let library = Library::new(io, &place.target, SOCKET_TIMEOUT_MS);
        let fetcher = Fetcher::new(library, 10_000);
        let mut fetcher = fetcher.uncommitted_if(io.mutants.ledger_is_read_uncommitted);
        let partition = Partition(place.lane.0.cast_signed());
        let ledger = TopicPartition { topic: place.ledger.clone(), partition };
        let asked = [ledger.clone()];
        let asking = Offsets::ask(
            &mut fetcher.library,
            asked,
            OffsetSpec::Earliest,
            IsolationLevel::ReadUncommitted,
            io.now + ASK_MAX_MS,
        );
        LedgerReader {
            attempt,
            until,
            lane: place.lane,
            place: ledger,
            fetcher,
            log_start: None,
            asking: Some(asking),
            records: Vec::new(),
        }
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.fetcher.close(io);
    }

    /// What comes of it, once it has come.
    pub(super) fn advance(&mut self, io: &mut Io) -> Option<Result<LaneEvent, Failure>> {
        self.fetcher.advance(io);
        if let Some(asking) = &mut self.asking {
            let found = asking.advance(io, &mut self.fetcher.library)?;
            self.asking = None;
            let start = match found.into_values().next() {
                Some(Ok(start)) => start,
                Some(Err(NoOffset::Error(error))) => return Some(Err(self.failure(error))),
                Some(Err(NoOffset::Unanswered)) | None => {
                    return Some(Err(Failure::Retry(format!("no offsets of {}", self.place))));
                }
            };
            self.log_start = Some(TargetOffset(start.offset));
            self.fetcher.assign([Start { partition: self.place.clone(), offset: start.offset, epoch: None }]);
            self.fetcher.advance(io);
        }
        while let Some(read) = self.fetcher.poll(usize::MAX) {
            match read {
                Read::Records(_, records) => {
                    for record in records {
                        let record = ledger_record(self.lane, &record);
                        let offset = record.offset;
                        self.records.push(record);
                        if let ReadUntil::Record(until) = self.until
                            && until <= offset
                        {
                            return Some(self.replayed(until, offset));
                        }
                    }
                }
                Read::End(..) => match self.until {
                    ReadUntil::PresentEnd => {
                        return Some(Ok(LaneEvent::Claims(std::mem::take(&mut self.records))));
                    }
                    ReadUntil::Record(_) if io.mutants.replay_ends_at_end_of_partition => {
                        return Some(Ok(self.as_replayed()));
                    }
                    ReadUntil::Record(_) => {}
                },
                Read::NotAuthorized(_) => {
                    return Some(Err(self.failure(ErrorCode::TopicAuthorizationFailed)));
                }
                Read::OutOfRange(_) | Read::Truncated(..) | Read::Unreadable(..) | Read::Gone(_) => {
                    return Some(Err(Failure::Retry(format!("{} could not be read", self.place))));
                }
            }
        }
        None
    }

    fn replayed(&mut self, until: TargetOffset, last: TargetOffset) -> Result<LaneEvent, Failure> {
        if last == until {
            return Ok(self.as_replayed());
        }
        // Compaction keeps the last record of each key: a later one of the same key has been written.
        Err(Failure::Fenced(format!("{} goes on beyond {until}, which is gone", self.place)))
    }

    fn as_replayed(&mut self) -> LaneEvent {
        let log_start = self.log_start.unwrap_or(TargetOffset::ZERO);
        LaneEvent::Replayed { log_start, records: std::mem::take(&mut self.records) }
    }

    fn failure(&self, error: ErrorCode) -> Failure {
        match error {
            ErrorCode::TopicAuthorizationFailed => Failure::Fatal(Trouble::NotAuthorized {
                resource: format!("Topic {}", self.place.topic),
                operation: "Read".into(),
            }),
            passing => Failure::Retry(format!("broker: {passing}")),
        }
    }
}
