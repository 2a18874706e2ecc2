//! Following the ledger's partition 0: committed records, from the beginning, for ever.

use super::fetcher::{Fetcher, Read, Start};
use super::io::Io;
use super::ledger_records::ledger_record;
use super::library::{Library, Place, SOCKET_TIMEOUT_MS};
use super::offsets::Offsets;
use kafka_model::Millis;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_types::{TopicName, TopicPartition};
use verbatim_core::LaneId;
use verbatim_core::event::Event;

/// How long after a failure reading begins anew.
const RETRY_MS: Millis = 1_000;
const ASK_MAX_MS: Millis = 10_000;

pub(super) struct Follower {
    place: TopicPartition,
    fetcher: Fetcher,
    asking: Option<Offsets>,
    is_reading: bool,
    may_begin_at: Millis,
}

impl Follower {
    pub(super) fn start(io: &mut Io, place: &Place, ledger: &TopicName) -> Follower {
        let fetcher = Fetcher::new(Library::new(io, place, SOCKET_TIMEOUT_MS), 10_000);
        let place = TopicPartition::new(ledger.clone(), 0);
        Follower { place, fetcher, asking: None, is_reading: false, may_begin_at: 0 }
    }

    /// A failure that does not mend itself begins reading anew, from the beginning: records may be reported
    /// again, in order, but none is left out.
    pub(super) fn advance(&mut self, io: &mut Io) -> Option<Event> {
        self.fetcher.advance(io);
        if !self.is_reading {
            self.begin(io)?;
        }
        let mut records = Vec::new();
        while let Some(read) = self.fetcher.poll(1_000) {
            match read {
                Read::Records(_, read) => {
                    records.extend(read.iter().map(|read| ledger_record(LaneId::FIRST, read)));
                }
                Read::End(..) => {}
                Read::OutOfRange(_)
                | Read::Truncated(..)
                | Read::Unreadable(..)
                | Read::NotAuthorized(_)
                | Read::Gone(_) => {
                    self.fetcher.unassign_all();
                    self.is_reading = false;
                    self.may_begin_at = io.now + RETRY_MS;
                    io.wake_at(self.may_begin_at);
                }
            }
        }
        (!records.is_empty()).then_some(Event::TopicRecords(records))
    }

    /// Asks for the beginning; some once reading has begun.
    fn begin(&mut self, io: &mut Io) -> Option<()> {
        if !io.is_due(self.may_begin_at) {
            return None;
        }
        let place = &self.place;
        let library = &mut self.fetcher.library;
        let until = io.now + ASK_MAX_MS;
        let asking = self.asking.get_or_insert_with(|| {
            let isolation = IsolationLevel::ReadUncommitted;
            Offsets::ask(library, [place.clone()], OffsetSpec::Earliest, isolation, until)
        });
        let found = asking.advance(io, library)?;
        self.asking = None;
        let Some(Ok(start)) = found.into_values().next() else {
            self.may_begin_at = io.now + RETRY_MS;
            io.wake_at(self.may_begin_at);
            return None;
        };
        self.fetcher.assign([Start { partition: self.place.clone(), offset: start.offset, epoch: None }]);
        self.is_reading = true;
        self.fetcher.advance(io);
        Some(())
    }
}
