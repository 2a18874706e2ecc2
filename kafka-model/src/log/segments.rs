use crate::{Millis, Offset};
use std::collections::VecDeque;

/// A run of the log that is deleted as a whole. Compaction and retention leave the last one, the active one,
/// alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    pub base_offset: Offset,
    pub size_bytes: u64,
    /// Of its first batch; `segment.ms` counts from it.
    pub first_timestamp: Option<Millis>,
    pub max_timestamp: Millis,
}

impl Segment {
    fn starting_at(base_offset: Offset) -> Segment {
        Segment { base_offset, size_bytes: 0, first_timestamp: None, max_timestamp: -1 }
    }
}

/// In offset order, never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segments {
    segments: VecDeque<Segment>,
}

impl Segments {
    pub fn new() -> Segments {
        Segments::starting_at(0)
    }

    pub fn starting_at(offset: Offset) -> Segments {
        Segments { segments: VecDeque::from([Segment::starting_at(offset)]) }
    }

    pub fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size_bytes).sum()
    }

    pub fn active(&self) -> &Segment {
        self.segments.back().expect("there is always an active segment")
    }

    /// A segment with the base offset of the one after it; none after the active one.
    pub fn oldest(&self) -> (&Segment, Option<Offset>) {
        let oldest = self.segments.front().expect("there is always an active segment");
        (oldest, self.segments.get(1).map(|next| next.base_offset))
    }

    pub fn count(&mut self, size_bytes: usize, max_timestamp: Millis) {
        let active = self.segments.back_mut().expect("there is always an active segment");
        active.size_bytes += size_bytes as u64;
        active.first_timestamp.get_or_insert(max_timestamp);
        active.max_timestamp = active.max_timestamp.max(max_timestamp);
    }

    /// Compaction removed this many bytes from the segment that holds `offset`.
    pub fn shrink(&mut self, offset: Offset, removed_bytes: usize) {
        let after = self.segments.partition_point(|segment| segment.base_offset <= offset);
        if let Some(segment) = after.checked_sub(1).and_then(|index| self.segments.get_mut(index)) {
            segment.size_bytes = segment.size_bytes.saturating_sub(removed_bytes as u64);
        }
    }

    pub fn roll(&mut self, next_offset: Offset) {
        if self.active().base_offset < next_offset {
            self.segments.push_back(Segment::starting_at(next_offset));
        }
    }

    /// Drops the segments that lie wholly below `offset`.
    pub fn advance_to(&mut self, offset: Offset) {
        while self.segments.get(1).is_some_and(|next| next.base_offset <= offset) {
            self.segments.pop_front();
        }
    }

    /// Sizes of the cut segment stay as they were: only retention by size reads them.
    pub fn truncate_to(&mut self, offset: Offset) {
        while 1 < self.segments.len() && offset < self.active().base_offset {
            self.segments.pop_back();
        }
        if offset < self.active().base_offset {
            *self = Segments::starting_at(offset);
        }
    }
}
