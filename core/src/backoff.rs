//! Pauses between tries, as data.

use crate::config::Limits;
use crate::time::Instant;
use std::time::Duration;

/// Doubles each pause from `retry_min` to `retry_max`, until a success resets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backoff {
    tries: u32,
}

impl Backoff {
    /// When to try again after one more failure.
    pub fn after_failure(&mut self, now: Instant, limits: &Limits) -> Instant {
        let factor = 1u32 << self.tries.min(16);
        self.count();
        now + limits.retry_min.saturating_mul(factor).min(limits.retry_max)
    }

    /// One more failure, after which no pause is made.
    pub fn count(&mut self) {
        self.tries = self.tries.saturating_add(1);
    }

    pub fn reset(&mut self) {
        self.tries = 0;
    }

    pub fn tries(&self) -> u32 {
        self.tries
    }
}

/// The earlier of two wake-up times, where either may be absent.
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// The pause before something is looked at again that only time can change.
pub const SOON: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_start_over_after_a_success() {
        let limits = Limits {
            retry_min: Duration::from_millis(100),
            retry_max: Duration::from_secs(5),
            ..Limits::default()
        };
        let mut backoff = Backoff::default();
        let mut pause = || backoff.after_failure(Instant::START, &limits).0.as_millis();
        let pauses: Vec<u128> = (0..8).map(|_| pause()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        backoff.reset();
        assert_eq!(backoff.after_failure(Instant::START, &limits).0.as_millis(), 100);
    }

    proptest! {
        /// Beside the sum that the pauses are meant to be.
        #[test]
        fn pauses_are_powers_of_two(first in 1u64..1_000, most in 1u64..100_000, tries in 0usize..70, counted in 0u32..5) {
            let (retry_min, retry_max) = (Duration::from_millis(first), Duration::from_millis(most));
            let limits = Limits { retry_min, retry_max, ..Limits::default() };
            let mut backoff = Backoff::default();
            (0..counted).for_each(|_| backoff.count());
            for number in 0..tries {
                let pause = backoff.after_failure(Instant::START, &limits).since(Instant::START);
                let doubled = u128::from(first) << (number as u32 + counted).min(16);
                prop_assert_eq!(pause.as_millis(), doubled.min(u128::from(most)));
            }
            prop_assert_eq!(backoff.tries(), counted + tries as u32);
        }
    }
}
