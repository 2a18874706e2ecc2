use crate::oracle::Invariant;
use crate::plan::generate;
use crate::run::{Planted, run};
use crate::sweep::{Ended, Pool};
use runtime_sim::TraceMode;
use std::collections::BTreeMap;

/// So many seeds a mutant may survive.
pub const BUDGET: u64 = 150;

/// A run in which a promise was seen to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    pub seed: u64,
    pub invariant: Invariant,
    /// How many seeds it took, this one included.
    pub after: u64,
}

/// What became of a mutant under seeds in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunt {
    pub caught: Option<Caught>,
    pub seeds: u64,
}

/// Runs seeds from `first` on until a promise is broken that is kept without the mutant. Panics and runs that
/// differ are no catch.
pub fn hunt(planted: &Planted, first: u64, budget: u64, jobs: usize) -> Hunt {
    let pool = Pool { jobs, time_limit: None, twice_every: None, trace: TraceMode::Hash };
    let mut broken: BTreeMap<u64, Invariant> = BTreeMap::new();
    let mut seeds = 0;
    pool.run(first..first + budget, planted, |ended| {
        seeds += 1;
        if let Ended::Ran(ran) = ended
            && let Some(violation) = ran.first_violation()
            && keeps_all_promises(ran.seed)
        {
            broken.insert(ran.seed, violation.invariant);
        }
        broken.is_empty()
    });
    let caught = broken.first_key_value().map(|(seed, invariant)| Caught {
        seed: *seed,
        invariant: *invariant,
        after: seed - first + 1,
    });
    Hunt { caught, seeds }
}

fn keeps_all_promises(seed: u64) -> bool {
    run(&generate(seed), &Planted::default(), TraceMode::Hash).findings.violations.is_empty()
}
