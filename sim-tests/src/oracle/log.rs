//! What was ever in one partition's log, and what became of it.

use super::content::Content;
use kafka_model::{LogEvent, Offset};
use kafka_types::{ProducerEpoch, ProducerId, RecordBatch, TransactionResult};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Outside any transaction.
    Plain,
    /// Its transaction has not ended.
    Open,
    Committed,
    Aborted,
}

/// One offset of a log.
#[derive(Clone, Debug)]
pub enum Slot {
    Record(Box<Held>),
    /// A marker, or nothing: compaction had been there before a new leader brought the batch back.
    Empty,
}

#[derive(Clone, Debug)]
pub struct Held {
    pub content: Content,
    pub producer: (ProducerId, ProducerEpoch),
    pub fate: Fate,
    /// The marker that ended its transaction, where one is in the log.
    marker: Option<Offset>,
}

/// A new leader lacked everything from `at` on.
#[derive(Clone, Debug)]
pub struct Cut {
    pub at: Offset,
    removed: Vec<Slot>,
    /// Fates, before the cut, of records below it whose marker it took away.
    reopened: BTreeMap<Offset, Fate>,
    /// Of the offsets removed, those whose records compaction had taken away.
    compacted: BTreeSet<Offset>,
    /// Readers of committed records had been able to read below this offset.
    readable_below: Offset,
}

impl Cut {
    /// Whether records below `offset` went, or lost the marker that had decided about them: whatever ends their
    /// producer's next transaction decides about them anew.
    pub fn changes_below(&self, offset: Offset) -> bool {
        self.at < offset || self.reopened.range(..offset).next().is_some()
    }

    /// Whether readers see something else at `offset` since: it went, or it was aborted until the cut took the marker,
    /// and was committed by another one after it.
    pub fn shows_anew(&self, log: &Log, offset: Offset) -> bool {
        let was_aborted = self.reopened.get(&offset) == Some(&Fate::Aborted);
        let is_committed = log.held(offset).is_some_and(|held| held.fate == Fate::Committed);
        self.at <= offset || (was_aborted && is_committed)
    }
}

/// All that a partition of one topic id ever held.
#[derive(Clone, Debug, Default)]
pub struct Log {
    slots: Vec<Slot>,
    cuts: Vec<Cut>,
    open: BTreeMap<ProducerId, Vec<Offset>>,
    pub start: Offset,
    /// Where it began at its furthest: an election can bring back what was deleted.
    pub furthest_start: Offset,
    /// Offsets whose records compaction took away.
    compacted: BTreeSet<Offset>,
    /// Offsets of batches in which no reader can make out a record, whether or not they are there still.
    damaged: BTreeSet<Offset>,
    /// What readers could see before an election that may take away what is committed.
    readable_below: Offset,
}

/// A state of the log between two cuts, by the number of cuts before it. A reader's position belongs to one.
pub type Lineage = usize;

impl Log {
    pub fn apply(&mut self, event: &LogEvent) {
        match event {
            LogEvent::Appended(batch) => self.append(batch),
            LogEvent::Truncated { to } => self.cut(*to),
            LogEvent::StartMoved { to } => {
                self.start = self.start.max(*to);
                self.furthest_start = self.furthest_start.max(self.start);
            }
            // Only the cluster itself knows what is left: see `keep_only`.
            LogEvent::Compacted => {}
            // Of the whole topic, not of one partition.
            LogEvent::Deleted => {}
        }
    }

    pub fn end(&self) -> Offset {
        Offset::try_from(self.slots.len()).unwrap_or(Offset::MAX)
    }

    /// The furthest that the log ever reached.
    pub fn longest(&self) -> Offset {
        let before = self.cuts.iter().map(|cut| cut.at + cut.removed.len() as Offset);
        before.fold(self.end(), Offset::max)
    }

    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The furthest that readers of committed records can have come by now.
    pub fn readable(&self) -> Offset {
        let first_open = self.open.values().filter_map(|offsets| offsets.first()).min();
        let now = first_open.copied().unwrap_or(self.end());
        self.cuts.iter().map(|cut| cut.readable_below).fold(now, Offset::max)
    }

    pub fn lineage(&self) -> Lineage {
        self.cuts.len()
    }

    /// The earliest state of the log, not before `from`, that is the same as `lineage` below `position`: what was
    /// read up to there may have been read then.
    pub fn earliest_like(&self, lineage: Lineage, from: Lineage, position: Offset) -> Lineage {
        let differs = self.cuts[..lineage].iter().rposition(|cut| cut.at < position);
        differs.map_or(0, |place| place + 1).max(from)
    }

    pub fn cuts_since(&self, lineage: Lineage) -> &[Cut] {
        &self.cuts[lineage.min(self.cuts.len())..]
    }

    /// Compaction left these of the offsets from `from` on.
    pub fn keep_only(&mut self, from: Offset, left: &BTreeSet<Offset>) {
        self.compacted.extend((from..self.end()).filter(|offset| !left.contains(offset)));
    }

    /// Whether compaction took the record at an offset in a state of the log before later cuts. One that was written in
    /// its place since is another.
    pub fn is_compacted_away(&self, lineage: Lineage, offset: Offset) -> bool {
        let cut = self.cuts_since(lineage).iter().find(|cut| cut.at <= offset);
        cut.map_or(&self.compacted, |cut| &cut.compacted).contains(&offset)
    }

    /// Whether a batch that nobody can read ever began there.
    pub fn was_damaged(&self, offset: Offset) -> bool {
        self.damaged.contains(&offset)
    }

    /// The first of what nobody can read between two offsets of the log as it is now.
    pub fn damaged_between(&self, from: Offset, to: Offset) -> Option<Offset> {
        let is_there =
            |offset: &&Offset| self.start <= **offset && self.cuts.iter().all(|cut| **offset < cut.at);
        self.damaged.range(from..to.max(from)).find(is_there).copied()
    }

    /// An election is about to take away what readers could see below `offset`.
    pub fn readable_before_cut(&mut self, offset: Offset) {
        self.readable_below = self.readable_below.max(offset);
    }

    fn append(&mut self, batch: &RecordBatch) {
        while self.end() < batch.base_offset {
            self.slots.push(Slot::Empty);
        }
        if batch.is_damaged() {
            self.damaged.insert(batch.base_offset);
        }
        if let Some(marker) = batch.marker {
            self.end_transaction(batch.producer_id, marker.result, Some(batch.base_offset));
        }
        for record in batch.records.iter() {
            let offset = batch.offset_of(record);
            while self.end() < offset {
                self.slots.push(Slot::Empty);
            }
            let fate = if batch.is_transactional { Fate::Open } else { Fate::Plain };
            if fate == Fate::Open {
                self.open.entry(batch.producer_id).or_default().push(offset);
            }
            self.slots.push(Slot::Record(Box::new(Held {
                content: Content::of(batch, record),
                producer: (batch.producer_id, batch.producer_epoch),
                fate,
                marker: None,
            })));
        }
        while self.end() < batch.next_offset() {
            self.slots.push(Slot::Empty);
        }
    }

    /// The producer's open transaction has ended here; answers the offsets of its records.
    pub fn end_transaction(
        &mut self,
        producer: ProducerId,
        result: TransactionResult,
        marker: Option<Offset>,
    ) -> Vec<Offset> {
        let ended = self.open.remove(&producer).unwrap_or_default();
        for offset in &ended {
            if let Some(Slot::Record(held)) = self.slots.get_mut(index(*offset)) {
                held.fate = match result {
                    TransactionResult::Commit => Fate::Committed,
                    TransactionResult::Abort => Fate::Aborted,
                };
                held.marker = marker;
            }
        }
        ended
    }

    fn cut(&mut self, at: Offset) {
        let removed = self.slots.split_off(index(at).min(self.slots.len()));
        let mut reopened = BTreeMap::new();
        for offsets in self.open.values_mut() {
            offsets.retain(|offset| *offset < at);
        }
        for (offset, slot) in (0..).zip(&mut self.slots) {
            if let Slot::Record(held) = slot
                && held.marker.is_some_and(|marker| at <= marker)
            {
                reopened.insert(offset, held.fate);
                (held.fate, held.marker) = (Fate::Open, None);
                self.open.entry(held.producer.0).or_default().push(offset);
            }
        }
        for offsets in self.open.values_mut() {
            offsets.sort_unstable();
        }
        self.open.retain(|_, offsets| !offsets.is_empty());
        let readable_below = std::mem::take(&mut self.readable_below);
        let compacted = self.compacted.split_off(&at);
        self.cuts.push(Cut { at, removed, reopened, compacted, readable_below });
        self.start = self.start.min(at);
    }

    /// The record at an offset as it is now.
    pub fn held(&self, offset: Offset) -> Option<&Held> {
        match self.slots.get(index(offset))? {
            Slot::Record(held) => Some(held),
            Slot::Empty => None,
        }
    }

    /// Every record that ever stood at an offset.
    pub fn ever_held(&self, offset: Offset) -> impl Iterator<Item = &Held> {
        let removed = self.cuts.iter().filter(move |cut| cut.at <= offset);
        let removed = removed.filter_map(move |cut| match cut.removed.get(index(offset - cut.at))? {
            Slot::Record(held) => Some(held.as_ref()),
            Slot::Empty => None,
        });
        self.held(offset).into_iter().chain(removed)
    }

    /// The record at an offset, and its fate, in a state of the log before later cuts; none where readers
    /// never could see it.
    pub fn held_in(&self, lineage: Lineage, offset: Offset) -> Option<(&Held, Fate)> {
        let later = self.cuts_since(lineage);
        let reopened = later.iter().find_map(|cut| cut.reopened.get(&offset)).copied();
        match later.iter().find(|cut| cut.at <= offset) {
            None => self.held(offset).map(|held| (held, reopened.unwrap_or(held.fate))),
            Some(cut) if offset < cut.readable_below => match cut.removed.get(index(offset - cut.at))? {
                Slot::Record(held) => Some((held, reopened.unwrap_or(held.fate))),
                Slot::Empty => None,
            },
            Some(_) => None,
        }
    }

    /// Records from `from` up to `to` in a state of the log, markers and aborted ones left out, and the first
    /// of them whose transaction is open.
    pub fn committed(&self, lineage: Lineage, from: Offset, to: Offset) -> Stretch<'_> {
        let mut stretch = Stretch { records: Vec::new(), first_open: None };
        let end = self.cuts_since(lineage).iter().map(|cut| cut.readable_below).fold(self.end(), Offset::max);
        for offset in from.max(0)..to.min(end) {
            let Some((held, fate)) = self.held_in(lineage, offset) else { continue };
            match fate {
                Fate::Plain | Fate::Committed => stretch.records.push((offset, &held.content)),
                Fate::Open => stretch.first_open = stretch.first_open.or(Some(offset)),
                Fate::Aborted => {}
            }
        }
        stretch
    }

    /// Every record that was ever here and has this content, with its offset and fate; cut ones have none.
    pub fn find(&self, content: &Content) -> Vec<(Offset, Option<Fate>)> {
        let mut found = Vec::new();
        for (offset, slot) in (0..).zip(&self.slots) {
            if let Slot::Record(held) = slot
                && held.content.is_same(content)
            {
                found.push((offset, Some(held.fate)));
            }
        }
        for cut in &self.cuts {
            for (offset, slot) in (cut.at..).zip(&cut.removed) {
                if let Slot::Record(held) = slot
                    && held.content.is_same(content)
                {
                    found.push((offset, None));
                }
            }
        }
        found
    }

    /// Whether a cut took away records whose transaction was decided to be committed.
    pub fn lost_decided(&self) -> Option<Offset> {
        self.cuts.iter().find_map(|cut| {
            let decided = |slot: &Slot| match slot {
                Slot::Record(held) => held.fate == Fate::Committed,
                Slot::Empty => false,
            };
            cut.removed.iter().position(decided).map(|place| cut.at + place as Offset)
        })
    }
}

/// A stretch of a log as readers of committed records see it.
pub struct Stretch<'a> {
    pub records: Vec<(Offset, &'a Content)>,
    pub first_open: Option<Offset>,
}

fn index(offset: Offset) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_types::Record;
    use std::sync::Arc;

    fn appended(base_offset: Offset, value: &'static str) -> LogEvent {
        let record = Record::new(1, None, Some(value.into()));
        LogEvent::Appended(Arc::new(RecordBatch { base_offset, ..RecordBatch::new(vec![record]) }))
    }

    fn transactional(base_offset: Offset, value: &'static str) -> LogEvent {
        let record = Record::new(1, None, Some(value.into()));
        let batch = RecordBatch::new(vec![record]).from_producer(7, 0, 0);
        LogEvent::Appended(Arc::new(RecordBatch { base_offset, ..batch.transactional() }))
    }

    #[test]
    fn a_cut_that_takes_the_marker_of_an_abort_can_show_what_was_aborted() {
        let mut log = Log::default();
        log.apply(&transactional(0, "a"));
        log.apply(&appended(1, "b"));
        log.end_transaction(7, TransactionResult::Abort, Some(2));
        log.apply(&LogEvent::Truncated { to: 2 });
        assert!(!log.cuts_since(0)[0].shows_anew(&log, 0), "nobody has decided about it anew yet");
        log.end_transaction(7, TransactionResult::Commit, Some(2));
        let cut = &log.cuts_since(0)[0];
        assert!(cut.shows_anew(&log, 0));
        assert!(!cut.shows_anew(&log, 1), "it was never in doubt");
        assert!(cut.shows_anew(&log, 2), "it went");
    }

    #[test]
    fn what_compaction_took_excuses_only_what_stood_there_then() {
        let mut log = Log::default();
        for event in [appended(0, "a"), appended(1, "before"), LogEvent::Truncated { to: 1 }] {
            log.apply(&event);
        }
        log.apply(&appended(1, "after"));
        log.keep_only(0, &BTreeSet::from([0]));
        assert!(log.is_compacted_away(1, 1));
        assert!(!log.is_compacted_away(0, 1), "it was cut away, not compacted");

        log.apply(&LogEvent::Truncated { to: 1 });
        log.apply(&appended(1, "again"));
        assert!(log.is_compacted_away(1, 1));
        assert!(!log.is_compacted_away(2, 1), "another record in its place");
    }
}
