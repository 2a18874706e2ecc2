//! A cursor beside a log that is a list: whoever reads it takes each record from the position on, once and in order,
//! or is told that the log is not the one that was read.

use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, SourcePartition};
use proptest::prelude::*;
use verbatim_core::command::Position;
use verbatim_core::event::SourceStop;
use verbatim_core::source::{Cursor, End, Judgement};

/// Records by offset, with the epoch that each was written under. Between them lie markers and holes.
#[derive(Clone, Debug)]
struct Log {
    records: Vec<(i64, i32)>,
    end: i64,
}

impl Log {
    /// Each step leaves so many holes, and may come under a later leader.
    fn grown(mut self, steps: &[(i64, bool)], mut epoch: i32) -> Log {
        for (holes, is_later) in steps {
            epoch += i32::from(*is_later);
            self.records.push((self.end + holes, epoch));
            self.end += holes + 1;
        }
        self
    }

    fn epoch(&self) -> i32 {
        self.records.last().map_or(0, |record| record.1)
    }

    fn cut(mut self, at: i64) -> Log {
        self.records.retain(|record| record.0 < at);
        self.end = self.end.min(at);
        self
    }
}

fn steps() -> impl Strategy<Value = Vec<(i64, bool)>> {
    prop::collection::vec((0i64..3, any::<bool>()), 0..12)
}

fn place((offset, epoch): (i64, i32)) -> OffsetAndEpoch {
    OffsetAndEpoch { offset: SourceOffset(offset), epoch: Some(LeaderEpoch(epoch)) }
}

/// The position of somebody who has copied the first `copied` records, and passed `passed` offsets without any since.
fn position(log: &Log, copied: usize, passed: i64, stop_before: Option<OffsetAndEpoch>) -> Position {
    let last = copied.checked_sub(1).map(|last| log.records[last]);
    let after = last.map_or(0, |(offset, _)| offset + 1);
    let until = log.records.get(copied).map_or(log.end, |record| record.0);
    Position {
        partition: SourcePartition::new("orders", 0),
        offset: SourceOffset((after + passed).min(until)),
        last: last.map(|(offset, epoch)| place((offset + 1, epoch))),
        last_record: last.map(place),
        stop_before,
    }
}

/// What a cursor hands out of a log, up to its end or to where it will not go on.
fn read(log: &Log, position: &Position) -> (Vec<i64>, Option<Judgement>) {
    let mut cursor = Cursor::new(position);
    let (mut taken, from) = (Vec::new(), position.beginning().offset.0);
    for record in log.records.iter().filter(|record| from <= record.0) {
        match cursor.judge(place(*record)) {
            Judgement::Take => {
                cursor.took(place(*record));
                taken.push(record.0);
            }
            Judgement::Pass => {}
            judgement => return (taken, Some(judgement)),
        }
    }
    let again = cursor.reach(SourceOffset(log.end)) == End::Again;
    (taken, again.then_some(Judgement::Again))
}

proptest! {
    /// In a log that only grew, all that lies at the position or beyond is taken once, in order, and nothing else.
    #[test]
    fn all_that_is_left_is_taken_in_order(
        before in steps(), after in steps(), copied in 0usize..12, passed in 0i64..4,
    ) {
        let log = Log { records: Vec::new(), end: 0 }.grown(&before, 0);
        let position = position(&log, copied.min(log.records.len()), passed, None);
        let epoch = log.epoch();
        let log = log.grown(&after, epoch);
        let left: Vec<i64> =
            log.records.iter().map(|record| record.0).filter(|offset| position.offset.0 <= *offset).collect();
        prop_assert_eq!(read(&log, &position), (left, None));
    }

    /// What another leader put in the place of what was copied is never taken for what comes next: before anything is
    /// taken, the cursor says that the log has changed, or that only its history can tell.
    #[test]
    fn a_log_that_was_cut_below_the_position_is_not_read_on(
        before in steps(), after in steps(), copied in 1usize..12, passed in 0i64..4, cut in 0i64..40,
    ) {
        let log = Log { records: Vec::new(), end: 0 }.grown(&before, 0);
        prop_assume!(!log.records.is_empty());
        let position = position(&log, copied.min(log.records.len()), passed, None);
        let last = position.last_record.map_or(0, |record| record.offset.0);
        let epoch = log.epoch() + 1;
        let log = log.cut(cut.min(last)).grown(&after, epoch);
        let (taken, judgement) = read(&log, &position);
        prop_assert_eq!(&taken, &Vec::<i64>::new());
        // A log that has not grown up to the position again says nothing yet.
        prop_assert!(judgement.is_some() || log.end <= last, "{:?}", log);
    }

    /// The record that the target refused is where reading stops, and any other record in its place is not.
    #[test]
    fn reading_stops_before_the_refused_record_only(
        before in steps(), copied in 0usize..12, refused in 0usize..12, is_another: bool,
    ) {
        let log = Log { records: Vec::new(), end: 0 }.grown(&before, 0);
        prop_assume!(!log.records.is_empty());
        let copied = copied.min(log.records.len() - 1);
        let (offset, epoch) = log.records[refused.clamp(copied, log.records.len() - 1)];
        let stop = place((offset, if is_another { epoch + 100 } else { epoch }));
        let (taken, judgement) = read(&log, &position(&log, copied, 0, Some(stop)));
        let below = |record: &&(i64, i32)| is_another || record.0 < offset;
        let wanted: Vec<i64> = log.records[copied..].iter().filter(below).map(|record| record.0).collect();
        prop_assert_eq!(taken, wanted);
        let at_refused = Judgement::Stop(SourceStop::AtRefused { offset: SourceOffset(offset) });
        prop_assert_eq!(judgement, (!is_another).then_some(at_refused));
    }
}
