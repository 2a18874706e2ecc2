use super::table::Mutant;
use crate::oracle::Invariant;
use crate::plan::{Plan, generate_with};
use crate::run::{Planted, run};
use crate::sweep::{Ended, Pool};
use runtime_sim::TraceMode;
use std::collections::BTreeMap;

/// So many seeds a mutant may survive.
pub const BUDGET: u64 = 60;

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

/// Runs seeds from `first` on until a promise is broken that is kept without the mutant.
pub fn hunt(mutant: &Mutant, first: u64, budget: u64, jobs: usize) -> Hunt {
    hunt_in(&mutant.planted(), (first..first + budget).map(|seed| generate_with(seed, mutant.on)), jobs)
}

/// The same in plans of whatever origin, with seeds in a row. Panics and runs that differ are no catch.
pub fn hunt_in(planted: &Planted, plans: impl Iterator<Item = Plan> + Send, jobs: usize) -> Hunt {
    let pool = Pool { jobs, time_limit: None, twice_every: None, trace: TraceMode::Hash };
    let mut broken: BTreeMap<u64, Invariant> = BTreeMap::new();
    let (mut seeds, mut first) = (0, u64::MAX);
    pool.run(plans, planted, |plan, ended| {
        seeds += 1;
        first = first.min(plan.seed);
        if let Ended::Ran(ran) = ended
            && let Some(violation) = ran.first_violation()
            && keeps_all_promises(plan)
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

fn keeps_all_promises(plan: &Plan) -> bool {
    run(plan, &Planted::default(), TraceMode::Hash).findings.violations.is_empty()
}
