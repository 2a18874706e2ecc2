//! Runs seeds on several threads, and goes on whatever one of them shows.

use crate::plan::Plan;
use crate::run::{Planted, Run, run};
use runtime_sim::{Panicked, Record, TraceMode};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The end of one seed.
pub enum Ended {
    Ran(Box<Run>),
    /// It ran twice, and the two runs were not the same.
    Diverged {
        first: Box<Run>,
        second: Box<Run>,
    },
    Panicked {
        seed: u64,
        profile: String,
        message: String,
        /// Of the run until then; none where it had not begun, or was over.
        record: Option<Box<Record>>,
    },
}

pub struct Pool {
    pub jobs: usize,
    pub time_limit: Option<Duration>,
    /// Every so many seeds one runs twice, and both runs must be the same.
    pub twice_every: Option<u64>,
    pub trace: TraceMode,
}

impl Pool {
    /// Hands each plan's end to `take`, in any order, until all have run, time is over, or `take` says so.
    pub fn run(
        &self,
        plans: impl Iterator<Item = Plan> + Send,
        planted: &Planted,
        take: impl FnMut(&Plan, Ended) -> bool + Send,
    ) {
        let began = Instant::now();
        let plans = Mutex::new(plans);
        let take = Mutex::new(take);
        let number = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        let work = || {
            loop {
                let late = self.time_limit.is_some_and(|limit| limit < began.elapsed());
                if late || is_over.load(Ordering::Relaxed) {
                    break;
                }
                let Some(plan) = plans.lock().expect("no thread panics").next() else { break };
                let number = number.fetch_add(1, Ordering::Relaxed);
                let twice = self.twice_every.is_some_and(|every| number % every == every / 2);
                let ended = self.run_one(&plan, planted, twice);
                if !take.lock().expect("no thread panics")(&plan, ended) {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(work);
            }
        });
    }

    pub fn run_one(&self, plan: &Plan, planted: &Planted, twice: bool) -> Ended {
        let once = || catch_unwind(AssertUnwindSafe(|| run(plan, planted, self.trace)));
        let first = match once() {
            Ok(run) => run,
            Err(panic) => return panicked(plan, panic),
        };
        if twice {
            match once() {
                Ok(second) if second.record.trace_hash != first.record.trace_hash => {
                    return Ended::Diverged { first: Box::new(first), second: Box::new(second) };
                }
                Ok(_) => {}
                Err(panic) => return panicked(plan, panic),
            }
        }
        Ended::Ran(Box::new(first))
    }
}

fn panicked(plan: &Plan, panic: Box<dyn Any + Send>) -> Ended {
    let (seed, profile) = (plan.seed, plan.profile.name());
    let (message, record) = match panic.downcast::<Panicked>() {
        Ok(panicked) => (panicked.message, Some(Box::new(panicked.record))),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            (text.unwrap_or("a panic without words").to_owned(), None)
        }
    };
    Ended::Panicked { seed, profile, message, record }
}
