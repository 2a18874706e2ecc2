//! How much one transaction may take in: little at first, more after each that was quick, less after one that took
//! long. Whatever does not fit its time-out is lost whole, and would be lost again (H9, S6).

use crate::config::Limits;
use std::time::Duration;

/// A lane that was just taken knows nothing of how fast its target is.
const FIRST_RECORDS: u64 = 1_000;
const FIRST_BYTES: u64 = 4 << 20;

/// The size of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    records_max: u64,
    bytes_max: u64,
    interval_max: Duration,
    bounds: Bounds,
}

/// What the flow allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bounds {
    records: u64,
    bytes: u64,
    interval: Duration,
    /// What a transaction should not take longer than.
    long: Duration,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Course {
    pub records: u64,
    pub bytes: u64,
    /// Of these, what the target has acknowledged.
    pub acknowledged_records: u64,
    pub acknowledged_bytes: u64,
    /// Since the first of it was taken in.
    pub age: Duration,
}

impl Pace {
    pub fn new(limits: &Limits, commit_interval: Duration) -> Pace {
        let mut pace = Pace::reckless(limits, commit_interval);
        pace.restart();
        pace
    }

    /// For tests: as much as the flow allows, whatever comes of it.
    pub fn reckless(limits: &Limits, commit_interval: Duration) -> Pace {
        let bounds = Bounds {
            records: limits.transaction_records_max,
            bytes: limits.transaction_bytes_max,
            interval: commit_interval,
            long: limits.unable_max / 6,
        };
        Pace { records_max: bounds.records, bytes_max: bounds.bytes, interval_max: bounds.interval, bounds }
    }

    /// The lane is taken anew. What was learnt of a slow target is kept.
    pub fn restart(&mut self) {
        self.records_max = self.records_max.min(FIRST_RECORDS);
        self.bytes_max = self.bytes_max.min(FIRST_BYTES);
    }

    pub fn records_max(&self) -> u64 {
        self.records_max
    }

    /// Most records of a batch, where the target has shown that it needs small ones: a batch is settled whole or not at
    /// all.
    pub fn batch_max(&self) -> Option<u64> {
        (self.records_max < FIRST_RECORDS).then_some(self.records_max)
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// How long a run may go on taking records in.
    pub fn interval_max(&self) -> Duration {
        self.interval_max
    }

    pub fn settled(&mut self, run: &Course) {
        let Bounds { long, records, bytes, interval } = self.bounds;
        if long < run.age {
            return self.fit(run.records, run.bytes, run.age, long);
        }
        let factor = if run.age <= long / 8 {
            4
        } else if run.age <= long / 2 {
            2
        } else {
            1
        };
        self.records_max = self.records_max.saturating_mul(factor).min(records);
        self.bytes_max = self.bytes_max.saturating_mul(factor).min(bytes);
        self.interval_max = (self.interval_max + self.interval_max / 8).min(interval);
    }

    /// A run that failed at once was not too large; one that failed after long was too large for the target as it is
    /// now.
    pub fn failed(&mut self, run: &Course) {
        if self.bounds.long < run.age {
            self.outlasted(run);
        }
    }

    /// The transaction was over before the run was: the next one is to need no more than half of the time.
    pub fn outlasted(&mut self, run: &Course) {
        let half = |max: u64, run: u64| (max.min(run) / 2).max(1);
        self.records_max = half(self.records_max, run.records);
        self.bytes_max = half(self.bytes_max, run.bytes);
        let time = self.bounds.long.min(run.age / 2);
        self.fit(run.acknowledged_records, run.acknowledged_bytes, run.age, time);
        self.interval_max = (self.interval_max.min(run.age) / 2).max(Duration::from_millis(1));
    }

    /// So much as was done in `age` should take no longer than `time`.
    fn fit(&mut self, records: u64, bytes: u64, age: Duration, time: Duration) {
        let share = |count: u64| {
            let share = u128::from(count) * time.as_millis() / age.as_millis().max(1);
            u64::try_from(share).unwrap_or(u64::MAX).max(1)
        };
        self.records_max = self.records_max.min(share(records));
        self.bytes_max = self.bytes_max.min(share(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn course(records: u64, acknowledged_records: u64, seconds: u64) -> Course {
        Course {
            records,
            bytes: records * 100,
            acknowledged_records,
            acknowledged_bytes: acknowledged_records * 100,
            age: Duration::from_secs(seconds),
        }
    }

    fn pace() -> Pace {
        Pace::new(&Limits::default(), Duration::from_millis(500))
    }

    #[test]
    fn quick_transactions_grow_to_the_limit() {
        let mut pace = pace();
        let sizes: Vec<u64> = std::iter::from_fn(|| {
            let size = pace.records_max();
            pace.settled(&course(size, size, 0));
            Some(size)
        })
        .take(8)
        .collect();
        assert_eq!(sizes, [1_000, 4_000, 16_000, 64_000, 100_000, 100_000, 100_000, 100_000]);
    }

    #[test]
    fn a_slow_transaction_is_followed_by_one_that_fits() {
        let mut pace = pace();
        pace.settled(&course(60, 60, 30));
        assert_eq!(pace.records_max(), 20, "60 in 30 s are 20 in 10 s");
    }

    #[test]
    fn one_that_outlasts_its_time_is_followed_by_what_was_acknowledged_in_ten_seconds() {
        let mut pace = Pace::reckless(&Limits::default(), Duration::from_millis(500));
        pace.outlasted(&course(400, 120, 60));
        assert_eq!(pace.records_max(), 20);
        pace.outlasted(&course(20, 0, 60));
        assert_eq!(pace.records_max(), 1, "never none");
    }

    #[test]
    fn failing_at_once_says_nothing_of_the_size() {
        let mut pace = pace();
        pace.failed(&course(60, 0, 1));
        assert_eq!(pace.records_max(), 1_000);
    }

    #[test]
    fn an_interval_longer_than_the_transaction_lives_is_halved() {
        let mut pace = pace();
        let before = pace.interval_max();
        pace.outlasted(&course(1, 1, 60));
        assert_eq!(pace.interval_max(), before / 2);
    }

    #[test]
    fn what_was_learnt_outlives_the_take() {
        let mut pace = pace();
        pace.settled(&course(60, 60, 30));
        pace.restart();
        assert_eq!(pace.records_max(), 20);
    }

    fn courses() -> impl Strategy<Value = Vec<(u8, Course)>> {
        let course =
            (0u8..4, 1u64..200_000, 0u64..=100, 1u64..200).prop_map(|(end, records, percent, seconds)| {
                (end, course(records, records * percent / 100, seconds))
            });
        prop::collection::vec(course, 0..40)
    }

    proptest! {
        /// Whatever becomes of runs, the next one takes in something, and no more than the flow allows.
        #[test]
        fn sizes_stay_within_bounds(courses in courses()) {
            let (limits, interval) = (Limits::default(), Duration::from_millis(500));
            let mut pace = Pace::new(&limits, interval);
            for (end, run) in courses {
                match end {
                    0 => pace.settled(&run),
                    1 => pace.failed(&run),
                    2 => pace.outlasted(&run),
                    _ => pace.restart(),
                }
                prop_assert!((1..=limits.transaction_records_max).contains(&pace.records_max()));
                prop_assert!((1..=limits.transaction_bytes_max).contains(&pace.bytes_max()));
                prop_assert!((Duration::from_millis(1)..=interval).contains(&pace.interval_max()));
                prop_assert!(pace.batch_max().is_none_or(|most| most == pace.records_max()));
            }
        }

        /// A target that stores so many records a second, and more only over the time-out, is soon given runs that fit:
        /// in as many tries as halving takes.
        #[test]
        fn a_size_that_fits_is_found(per_second in 1u64..2_000, waiting in 1u64..300_000) {
            const TIME_OUT_S: u64 = 60;
            let mut pace = Pace::reckless(&Limits::default(), Duration::from_millis(500));
            for _ in 0..20 {
                let records = waiting.min(pace.records_max());
                let seconds = records.div_ceil(per_second);
                if seconds < TIME_OUT_S {
                    return Ok(());
                }
                pace.failed(&course(records, per_second * TIME_OUT_S, TIME_OUT_S));
            }
            prop_assert!(false, "{:?}", pace);
        }
    }
}
