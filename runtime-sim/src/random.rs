//! Numbers drawn from a seed: one generator for each concern, so that drawing more for one changes no other.

/// SplitMix64: small, fast, and every seed is as good as any other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Random(u64);

/// A chance in a million.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Rate(pub u32);

impl Rate {
    pub const NEVER: Rate = Rate(0);
    pub const ALWAYS: Rate = Rate(1_000_000);
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A generator of its own for one concern of the same seed.
    pub fn of(seed: u64, concern: &str) -> Random {
        let mut random = Random(seed);
        for byte in concern.bytes() {
            random.0 = random.next() ^ u64::from(byte);
        }
        random.split()
    }

    /// A generator whose numbers tell nothing of this one's.
    pub fn split(&mut self) -> Random {
        Random(self.next() ^ 0x5851_f42d_4c95_7f2d)
    }

    #[expect(clippy::should_implement_trait, reason = "it has no end, and so is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`; zero when `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// From the first to the second, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.below((most - least).max(0) as u64 + 1) as i64
    }

    pub fn happens(&mut self, rate: Rate) -> bool {
        rate.0 != 0 && self.below(1_000_000) < u64::from(rate.0)
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concerns_of_one_seed_differ_and_stay() {
        let first = |concern| Random::of(7, concern).next();
        assert_ne!(first("network"), first("plan"));
        assert_eq!(first("network"), first("network"));
        assert_ne!(Random::of(8, "network").next(), first("network"));
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((5..=9).contains(&random.between(5, 9)));
        }
        assert_eq!(random.between(4, 4), 4);
        assert!(!random.happens(Rate::NEVER));
        assert!(random.happens(Rate::ALWAYS));
    }
}
