/// Random numbers that depend on the seed alone (SplitMix64). Each concern of a run has a generator of its own,
/// so that a change in one leaves the others' numbers as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// A generator of its own for `concern`, the same for the same seed.
    pub fn of(seed: u64, concern: &str) -> Random {
        let hash = concern.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut random = Random::new(seed ^ hash);
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `0..limit`, zero for an empty range.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    /// A number from `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high - low).unwrap_or(0) + 1;
        low + i64::try_from(self.below(width)).unwrap_or(0)
    }

    /// A number from `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// A number from `low..high` whose logarithm is uniform: as often between 1 and 10 as between 10 and 100.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.fraction() * (high.ln() - low.ln())).exp()
    }

    /// The time until the next of events that come `per_minute` on average, in milliseconds.
    pub fn until_next(&mut self, per_minute: f64) -> i64 {
        let minutes = -(1.0 - self.fraction()).ln() / per_minute;
        (minutes * 60_000.0).min(1e12) as i64
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[usize::try_from(self.below(list.len() as u64)).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_the_same_numbers_for_ever() {
        let mut random = Random::new(1);
        assert_eq!([random.next(), random.next()], [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67]);
        assert_ne!(Random::of(1, "plan").next(), Random::of(1, "workload").next());
    }

    #[test]
    fn ranges_are_kept() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            assert!((3..=5).contains(&random.between(3, 5)));
            assert!((0.1..10.0).contains(&random.log_uniform(0.1, 10.0)));
            assert!(0 <= random.until_next(30.0));
        }
    }
}
