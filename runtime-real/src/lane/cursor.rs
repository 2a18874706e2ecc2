//! Where the reading of a source partition stands, and what becomes of a record that comes: the one place where a record
//! could get lost between source and mirror.

use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition};
use verbatim_core::command::Position;
use verbatim_core::event::SourceStop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The next offset to hand out.
    next: SourceOffset,
    /// The end of the last record before it, as far as that is known.
    last: Option<OffsetAndEpoch>,
    /// Neither this record is wanted nor any after it.
    stop_before: Option<OffsetAndEpoch>,
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is handed out.
    Take,
    /// It lies below the position and is none of what was asked for.
    Pass,
    /// Neither it nor anything after it is handed out.
    Stop(SourceStop),
}

/// What becomes of a partition whose position is said to be out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// It is not: reading begins there anew.
    Again(Cursor),
    Stop(SourceStop),
}

impl Cursor {
    pub(super) fn new(position: &Position) -> Cursor {
        Cursor { next: position.offset, last: position.last, stop_before: position.stop_before }
    }

    pub(super) fn next(&self) -> SourceOffset {
        self.next
    }

    /// To go on reading from here.
    pub(super) fn position(&self, partition: SourcePartition) -> Position {
        Position { partition, offset: self.next, last: self.last, stop_before: self.stop_before }
    }

    pub(super) fn judge(&self, record: OffsetAndEpoch) -> Judgement {
        let offset = record.offset;
        if offset < self.next && self.last.is_some_and(|last| last.offset <= offset) {
            // There was none when the position was settled: what stood here was cut off and written anew.
            let diverges_at = Some(offset);
            return Judgement::Stop(SourceStop::Truncated { position: self.next, diverges_at });
        }
        if offset < self.next {
            return Judgement::Pass;
        }
        match self.stop_before {
            Some(stop) if stop.is_of(record) => Judgement::Stop(SourceStop::AtRefused { offset }),
            Some(_) | None => Judgement::Take,
        }
    }

    /// A record has been handed out.
    pub(super) fn took(&mut self, record: OffsetAndEpoch) {
        self.next = record.offset.next();
        let last = record.epoch.map(|epoch| OffsetAndEpoch { offset: self.next, epoch: Some(epoch) });
        self.last = last.or(self.last);
    }

    /// Nothing but markers and holes lies before `end`; whether that is news.
    pub(super) fn reach(&mut self, end: SourceOffset) -> bool {
        let is_news = self.next < end;
        self.next = self.next.max(end);
        is_news
    }

    /// The reset that librdkafka reports carries no generation, so it may stem from before a rewind: what the leader
    /// says of the log's ends decides.
    pub(super) fn outside(&self, log_start: Option<SourceOffset>, log_end: Option<SourceOffset>) -> Outside {
        let position = self.next;
        let within =
            log_start.is_some_and(|start| start <= position) && log_end.is_some_and(|end| position <= end);
        if !within {
            return Outside::Stop(SourceStop::OutOfRange { position, log_start, log_end });
        }
        // What retention has taken cannot be checked any more.
        let last = self.last.filter(|last| log_start.is_some_and(|start| start <= last.offset));
        Outside::Again(Cursor { last, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_types::LeaderEpoch;

    const fn at(offset: i64, epoch: i32) -> OffsetAndEpoch {
        OffsetAndEpoch { offset: SourceOffset(offset), epoch: Some(LeaderEpoch(epoch)) }
    }

    fn cursor(next: i64, last: Option<OffsetAndEpoch>, stop_before: Option<OffsetAndEpoch>) -> Cursor {
        Cursor { next: SourceOffset(next), last, stop_before }
    }

    #[test]
    fn what_becomes_of_a_record() {
        let truncated = |position, offset| {
            let (position, diverges_at) = (SourceOffset(position), Some(SourceOffset(offset)));
            Judgement::Stop(SourceStop::Truncated { position, diverges_at })
        };
        let refused = |offset| Judgement::Stop(SourceStop::AtRefused { offset: SourceOffset(offset) });
        for (name, cursor, record, expected) in [
            ("the next", cursor(10, Some(at(10, 1)), None), at(10, 1), Judgement::Take),
            ("after a hole", cursor(10, Some(at(10, 1)), None), at(17, 2), Judgement::Take),
            ("never read before", cursor(10, None, None), at(10, 1), Judgement::Take),
            ("below what was read", cursor(10, Some(at(10, 1)), None), at(9, 1), Judgement::Pass),
            ("below, never read before", cursor(10, None, None), at(9, 1), Judgement::Pass),
            ("where markers were", cursor(10, Some(at(7, 1)), None), at(8, 2), truncated(10, 8)),
            ("at the last one's end", cursor(10, Some(at(7, 1)), None), at(7, 2), truncated(10, 7)),
            ("below the last one's end", cursor(10, Some(at(7, 1)), None), at(6, 1), Judgement::Pass),
            ("the refused one", cursor(10, None, Some(at(12, 3))), at(12, 3), refused(12)),
            ("before the refused one", cursor(10, None, Some(at(12, 3))), at(11, 3), Judgement::Take),
            ("another in its place", cursor(10, None, Some(at(12, 3))), at(12, 4), Judgement::Take),
            ("beyond, it is gone", cursor(10, None, Some(at(12, 3))), at(13, 4), Judgement::Take),
            (
                "truncated before refused",
                cursor(10, Some(at(7, 1)), Some(at(8, 2))),
                at(8, 2),
                truncated(10, 8),
            ),
        ] {
            assert_eq!(cursor.judge(record), expected, "{name}");
        }
    }

    #[test]
    fn a_record_that_was_taken_is_passed_from_then_on() {
        let mut cursor = cursor(10, None, None);
        cursor.took(at(12, 3));
        assert_eq!(cursor, self::cursor(13, Some(at(13, 3)), None));
        assert_eq!(cursor.judge(at(12, 3)), Judgement::Pass);
        let unknown = OffsetAndEpoch { offset: SourceOffset(13), epoch: None };
        cursor.took(unknown);
        assert_eq!(cursor, self::cursor(14, Some(at(13, 3)), None), "the last that can be checked");
    }

    #[test]
    fn an_end_only_moves_on() {
        let mut cursor = cursor(10, Some(at(8, 1)), None);
        assert!(!cursor.reach(SourceOffset(9)));
        assert!(!cursor.reach(SourceOffset(10)));
        assert!(cursor.reach(SourceOffset(14)));
        assert_eq!(cursor, self::cursor(14, Some(at(8, 1)), None));
    }

    #[test]
    fn out_of_range_is_believed_only_if_the_log_s_ends_say_so_too() {
        let cursor = cursor(10, Some(at(8, 1)), Some(at(12, 3)));
        let outside = |start: Option<i64>, end: Option<i64>| {
            cursor.outside(start.map(SourceOffset), end.map(SourceOffset))
        };
        let stop = |start: Option<i64>, end: Option<i64>| {
            let (log_start, log_end) = (start.map(SourceOffset), end.map(SourceOffset));
            Outside::Stop(SourceStop::OutOfRange { position: SourceOffset(10), log_start, log_end })
        };
        assert_eq!(outside(Some(0), Some(10)), Outside::Again(cursor));
        let unchecked = Outside::Again(Cursor { last: None, ..cursor });
        assert_eq!(outside(Some(9), Some(20)), unchecked, "what is gone cannot be checked");
        for (start, end) in
            [(Some(11), Some(20)), (Some(0), Some(9)), (None, Some(20)), (Some(0), None), (None, None)]
        {
            assert_eq!(outside(start, end), stop(start, end));
        }
    }

    #[test]
    fn a_cursor_goes_on_as_the_position_it_came_from() {
        let partition = SourcePartition::new("orders", 3);
        let position = Position {
            partition: partition.clone(),
            offset: SourceOffset(10),
            last: Some(at(8, 1)),
            stop_before: Some(at(12, 3)),
        };
        assert_eq!(Cursor::new(&position).position(partition), position);
    }
}
