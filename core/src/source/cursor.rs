//! Where the reading of a source partition stands, and what becomes of a record that comes: the one place where a record
//! could get lost between source and mirror. Both Worlds read by it.

use crate::command::Position;
use crate::event::SourceStop;
use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, SourcePartition};
use std::cmp::Ordering;

/// Where the reading of one partition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next offset to hand out.
    next: SourceOffset,
    /// The end of the last record before it, as far as that is known.
    last: Option<OffsetAndEpoch>,
    /// The last record before it, until it was seen.
    last_record: Option<OffsetAndEpoch>,
    /// The last record that was handed out, if it tells its epoch.
    taken: Option<OffsetAndEpoch>,
    /// The last record's epoch: those of a log never fall from one record to the next.
    epoch: Option<LeaderEpoch>,
    /// Neither this record is wanted nor any after it.
    stop_before: Option<OffsetAndEpoch>,
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is handed out.
    Take,
    /// It lies below the position and is none of what was asked for.
    Pass,
    /// The last record is not where it was. Compaction may have taken it, or another leader's log: reading begins anew,
    /// by the log's history alone.
    Again,
    /// Neither it nor anything after it is handed out.
    Stop(SourceStop),
}

/// Where a log ends, seen from a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing but markers and holes lies between, and the cursor has passed them.
    Beyond,
    Here,
    /// As `Judgement::Again`.
    Again,
    /// Below the position: the log was cut back, or its leader does not know yet how far it reaches.
    Below,
}

/// What becomes of a partition whose position is said to be out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// It is not: reading begins there anew.
    Again(Cursor),
    Stop(SourceStop),
}

impl Cursor {
    /// Reading begins at this position.
    pub fn new(position: &Position) -> Cursor {
        Cursor {
            next: position.offset,
            last: position.last,
            last_record: position.last_record,
            taken: None,
            epoch: position.last_record.and_then(|record| record.epoch),
            stop_before: position.stop_before,
        }
    }

    /// The next offset to hand out.
    pub fn next(&self) -> SourceOffset {
        self.next
    }

    /// To go on reading from here. What was handed out vouches for what lies below it, as what was copied does.
    pub fn position(&self, partition: SourcePartition) -> Position {
        let Cursor { next, last, last_record, taken, epoch: _, stop_before } = *self;
        Position { partition, offset: next, last, last_record: last_record.or(taken), stop_before }
    }

    /// What becomes of a record that stands here.
    pub fn judge(&mut self, record: OffsetAndEpoch) -> Judgement {
        let offset = record.offset;
        let last_record = self.last_record.take_if(|last| last.offset <= offset);
        if last_record.is_some_and(|last| last.offset < offset) {
            return Judgement::Again;
        }
        let is_another = last_record.is_some_and(|last| !last.is_of(record));
        // There was none when the position was settled.
        let is_new = self.last.is_some_and(|last| last.offset <= offset);
        let is_older = self.epoch.zip(record.epoch).is_some_and(|(before, here)| here < before);
        let differs = if offset < self.next { is_another || is_new } else { is_older };
        if differs {
            // What stood here was cut off and written anew.
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
    pub fn took(&mut self, record: OffsetAndEpoch) {
        self.next = record.offset.next();
        let last = record.epoch.map(|epoch| OffsetAndEpoch { offset: self.next, epoch: Some(epoch) });
        self.last = last.or(self.last);
        self.taken = record.epoch.map(|_| record);
        self.epoch = record.epoch.or(self.epoch);
    }

    /// The log ends at `end` for now.
    pub fn reach(&mut self, end: SourceOffset) -> End {
        if self.last_record.take_if(|last| last.offset < end).is_some() {
            return End::Again;
        }
        match end.cmp(&self.next) {
            Ordering::Greater => {
                self.next = end;
                End::Beyond
            }
            Ordering::Equal => End::Here,
            Ordering::Less => End::Below,
        }
    }

    /// The reset that librdkafka reports carries no generation, so it may stem from before a rewind: what the leader
    /// says of the log's ends decides.
    pub fn outside(&self, log_start: Option<SourceOffset>, log_end: Option<SourceOffset>) -> Outside {
        let position = self.next;
        let within =
            log_start.is_some_and(|start| start <= position) && log_end.is_some_and(|end| position <= end);
        if !within {
            return Outside::Stop(SourceStop::OutOfRange { position, log_start, log_end });
        }
        // What retention has taken cannot be checked any more.
        let is_there = |place: &OffsetAndEpoch| log_start.is_some_and(|start| start <= place.offset);
        let (last, taken) = (self.last.filter(is_there), self.taken.filter(is_there));
        Outside::Again(Cursor { last, last_record: self.last_record.filter(is_there), taken, ..*self })
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
        Cursor { next: SourceOffset(next), last, last_record: None, taken: None, epoch: None, stop_before }
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
            let mut cursor = cursor;
            assert_eq!(cursor.judge(record), expected, "{name}");
        }
    }

    #[test]
    fn a_record_that_was_taken_is_passed_from_then_on() {
        let mut cursor = cursor(10, None, None);
        cursor.took(at(12, 3));
        let (taken, epoch) = (Some(at(12, 3)), Some(LeaderEpoch(3)));
        assert_eq!(cursor, Cursor { taken, epoch, ..self::cursor(13, Some(at(13, 3)), None) });
        assert_eq!(cursor.judge(at(12, 3)), Judgement::Pass);
        let unknown = OffsetAndEpoch { offset: SourceOffset(13), epoch: None };
        cursor.took(unknown);
        assert_eq!(cursor.last, Some(at(13, 3)), "the last that can be checked");
        let stop = SourceStop::Truncated { position: SourceOffset(14), diverges_at: Some(SourceOffset(14)) };
        assert_eq!(cursor.judge(at(14, 2)), Judgement::Stop(stop), "of an older leader, brought back");
        assert_eq!(cursor.judge(at(14, 3)), Judgement::Take);
    }

    #[test]
    fn the_last_record_vouches_for_what_lies_below_it() {
        let position = Position {
            partition: SourcePartition::new("orders", 3),
            offset: SourceOffset(10),
            last: Some(at(8, 3)),
            last_record: Some(at(7, 3)),
            stop_before: None,
        };
        assert_eq!(position.beginning(), at(7, 3));
        let cursor = || Cursor::new(&position);
        let by_history = Position { last_record: None, ..position.clone() };
        let partition = || position.partition.clone();

        let mut vouched = cursor();
        assert_eq!(vouched.judge(at(6, 1)), Judgement::Pass);
        assert_eq!(vouched.judge(at(7, 3)), Judgement::Pass);
        assert_eq!(vouched.judge(at(10, 3)), Judgement::Take);

        let stop = SourceStop::Truncated { position: SourceOffset(10), diverges_at: Some(SourceOffset(7)) };
        assert_eq!(cursor().judge(at(7, 1)), Judgement::Stop(stop), "of an older leader, brought back");

        let mut missing = cursor();
        assert_eq!(missing.judge(at(12, 4)), Judgement::Again);
        assert_eq!(missing.position(partition()), by_history);
        let mut ended = cursor();
        assert_eq!(ended.reach(SourceOffset(7)), End::Below, "it may still come");
        assert_eq!(ended.reach(SourceOffset(10)), End::Again);
        assert_eq!(ended.position(partition()), by_history);
    }

    /// Out of range for a moment, between two unclean elections: the second brings back an older log that reaches far
    /// enough, of which the log's history says nothing amiss.
    #[test]
    fn what_was_handed_out_vouches_for_what_lies_below_it_too() {
        let mut before = cursor(10, Some(at(10, 2)), None);
        before.took(at(14, 5));
        let Outside::Again(again) = before.outside(Some(SourceOffset(0)), Some(SourceOffset(30))) else {
            panic!("it is in range")
        };
        let position = again.position(SourcePartition::new("orders", 3));
        assert_eq!(position.beginning(), at(14, 5));
        let rebuilt = Cursor::new(&position);
        assert_eq!({ rebuilt }.judge(at(14, 5)), Judgement::Pass);
        assert_eq!({ rebuilt }.judge(at(15, 5)), Judgement::Again, "compaction may have taken it");
        let stop = |offset| {
            let (position, diverges_at) = (SourceOffset(15), Some(SourceOffset(offset)));
            Judgement::Stop(SourceStop::Truncated { position, diverges_at })
        };
        assert_eq!({ rebuilt }.judge(at(14, 4)), stop(14));
        let gone = before.outside(Some(SourceOffset(15)), Some(SourceOffset(30)));
        let Outside::Again(gone) = gone else { panic!("it is in range") };
        assert_eq!(gone.position(SourcePartition::new("orders", 3)).last_record, None);
    }

    #[test]
    fn an_end_only_moves_on() {
        let mut cursor = cursor(10, Some(at(8, 1)), None);
        assert_eq!(cursor.reach(SourceOffset(9)), End::Below);
        assert_eq!(cursor.reach(SourceOffset(10)), End::Here);
        assert_eq!(cursor.reach(SourceOffset(14)), End::Beyond);
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
            last_record: Some(at(7, 1)),
            stop_before: Some(at(12, 3)),
        };
        assert_eq!(Cursor::new(&position).position(partition), position);
    }
}
