//! An order that no seed decides: for the mutant that a test of determinism must catch.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, RandomState};

thread_local! {
    /// A run has a thread of its own, in which madsim makes all keys follow from the seed. These come from outside.
    static KEYS: RefCell<RandomState> = RefCell::default();
}

/// Hash maps of this run will have these keys.
pub(crate) fn use_keys(keys: RandomState) {
    KEYS.set(keys);
}

/// What somebody gets who keeps `items` in a hash map and goes through it.
pub(super) fn out_of_a_hash_map<T: Hash + Eq>(items: Vec<T>) -> Vec<T> {
    let mut map = HashMap::with_hasher(KEYS.with_borrow(RandomState::clone));
    map.extend(items.into_iter().map(|item| (item, ())));
    map.into_keys().collect()
}
