use runtime_sim::Random;

/// What plans draw beside whole numbers.
pub trait Draw {
    /// A number from `0.0..1.0`.
    fn fraction(&mut self) -> f64;

    fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// A number from `low..high` whose logarithm is uniform: as often between 1 and 10 as between 10 and 100.
    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.fraction() * (high.ln() - low.ln())).exp()
    }

    /// The time until the next of events that come `per_minute` on average, in milliseconds.
    fn until_next(&mut self, per_minute: f64) -> i64 {
        let minutes = -(1.0 - self.fraction()).ln() / per_minute;
        (minutes * 60_000.0).min(1e12) as i64
    }

    /// One of a list that is not empty.
    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T;
}

impl Draw for Random {
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        self.pick(list).expect("the list is not empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_kept() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            assert!((0.1..10.0).contains(&random.log_uniform(0.1, 10.0)));
            assert!(0 <= random.until_next(30.0));
        }
    }
}
