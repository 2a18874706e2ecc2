//! Reading the whole ledger, each partition to its present end, with a client of its own.

use super::fetcher::{Fetcher, Read, Start};
use super::io::Io;
use super::ledger_records::ledger_record;
use super::library::{Library, Place, SOCKET_TIMEOUT_MS};
use super::offsets::{NoOffset, Offsets};
use super::trouble::{trouble, unreachable};
use kafka_model::Millis;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_types::{ErrorCode, TopicName, TopicPartition};
use std::collections::BTreeSet;
use verbatim_core::LaneId;
use verbatim_core::event::{Ask, Event, LedgerRecord};
use verbatim_core::failure::Trouble;

const SURVEY_MAX_MS: Millis = 60_000;
const ASK_MAX_MS: Millis = 10_000;

pub(super) struct Survey {
    ask: Ask,
    ledger: TopicName,
    fetcher: Fetcher,
    asking: Option<Offsets>,
    open: Option<BTreeSet<TopicPartition>>,
    records: Vec<LedgerRecord>,
    until: Millis,
}

impl Survey {
    pub(super) fn start(io: &mut Io, place: &Place, ledger: &TopicName, ask: Ask) -> Survey {
        let mut fetcher = Fetcher::new(Library::new(io, place, SOCKET_TIMEOUT_MS), 10_000);
        fetcher.library.metadata.want(ledger);
        Survey {
            ask,
            ledger: ledger.clone(),
            fetcher,
            asking: None,
            open: None,
            records: Vec::new(),
            until: io.now + SURVEY_MAX_MS,
        }
    }

    pub(super) fn close(&self, io: &mut Io) {
        self.fetcher.close(io);
    }

    pub(super) fn advance(&mut self, io: &mut Io) -> Option<Event> {
        self.fetcher.advance(io);
        let answer = self.read(io)?;
        Some(Event::Surveyed { ask: self.ask, answer })
    }

    fn read(&mut self, io: &mut Io) -> Option<Result<Vec<LedgerRecord>, Trouble>> {
        if io.is_due(self.until) {
            return Some(Err(unreachable()));
        }
        if self.open.is_none() {
            if let Err(trouble) = self.begin(io)? {
                return Some(Err(trouble));
            }
            self.fetcher.advance(io);
        }
        let open = self.open.as_mut()?;
        while let Some(read) = self.fetcher.poll(usize::MAX) {
            match read {
                Read::Records(place, records) => {
                    let lane = LaneId(place.partition.0.cast_unsigned());
                    self.records.extend(records.iter().map(|read| ledger_record(lane, read)));
                }
                Read::End(place, _) => drop(open.remove(&place)),
                Read::NotAuthorized(_) => {
                    let denied = ErrorCode::TopicAuthorizationFailed;
                    return Some(Err(trouble(denied, "Read", self.ledger.as_str())));
                }
                Read::OutOfRange(place)
                | Read::Truncated(place, _)
                | Read::Unreadable(place, _)
                | Read::Gone(place) => {
                    return Some(Err(Trouble::Passing(format!("{place} could not be read"))));
                }
            }
        }
        open.is_empty().then(|| Ok(std::mem::take(&mut self.records)))
    }

    /// Asks for each partition's beginning; some once reading has begun, or never will.
    fn begin(&mut self, io: &mut Io) -> Option<Result<(), Trouble>> {
        if self.asking.is_none() {
            let count = self.fetcher.library.metadata.partitions(&self.ledger);
            if count == 0 {
                return None;
            }
            let places = (0..count as i32).map(|number| TopicPartition::new(self.ledger.clone(), number));
            let until = io.now + ASK_MAX_MS;
            let (spec, isolation) = (OffsetSpec::Earliest, IsolationLevel::ReadUncommitted);
            self.asking = Some(Offsets::ask(&mut self.fetcher.library, places, spec, isolation, until));
        }
        let found = self.asking.as_mut()?.advance(io, &mut self.fetcher.library)?;
        let mut starts = Vec::new();
        for (partition, offset) in found {
            match offset {
                Ok(told) => starts.push(Start { partition, offset: told.offset, epoch: None }),
                Err(NoOffset::Error(error)) => {
                    return Some(Err(trouble(error, "Describe", self.ledger.as_str())));
                }
                Err(NoOffset::Unanswered) => return Some(Err(unreachable())),
            }
        }
        self.open = Some(starts.iter().map(|start| start.partition.clone()).collect());
        self.fetcher.assign(starts);
        Some(Ok(()))
    }
}
