//! An order that no seed decides: for the mutant that a test of determinism must catch.

use std::sync::atomic::{AtomicU64, Ordering};

/// Puts `items` into an order that differs from run to run and from process to process, as iterating a hash map
/// with random keys would. madsim makes those keys follow from the seed, hence this.
pub(super) fn shuffle<T>(items: &mut [T]) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // Where the process was loaded is random too.
    let place = std::ptr::from_ref(&CALLS).addr() as u64;
    let mut random = crate::random::Random::new(place ^ CALLS.fetch_add(1, Ordering::Relaxed));
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}
