//! Runs a plan: workload and faults while they last, then the heal phase, then the last questions.

mod clusters;
mod denials;
mod exits;
mod heal;
mod log;
mod scenario;
mod setup;
mod status;

use scenario::scenario;

use crate::oracle::{HaltReason, Violation};
use crate::plan::Plan;
use kafka_model::{BrokerFaults, Millis};
use runtime_sim::{ClientMutants, Record, SimMutants, TraceMode, simulate};
use std::collections::BTreeMap;

/// Bugs to plant. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    pub source: BrokerFaults,
    pub target: BrokerFaults,
    pub mirror: Option<verbatim_core::fault::Mutant>,
    pub client: ClientMutants,
    pub simulator: SimMutants,
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct Findings {
    pub violations: Vec<Violation>,
    /// Virtual time during which the workload was unfinished or faults struck.
    pub live_ms: Millis,
    /// How long the mirror took to catch up afterwards.
    pub healed_after_ms: Option<Millis>,
    pub settlements: u64,
    pub records_settled: u64,
    /// What was done to clusters and instances, by the names of the actions.
    pub actions: BTreeMap<String, u64>,
    /// Why partitions stood halted in the end, one for each.
    pub halted: Vec<HaltReason>,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub seed: u64,
    pub profile: String,
    pub findings: Findings,
    pub record: Record,
}

impl Run {
    pub fn first_violation(&self) -> Option<&Violation> {
        self.findings.violations.first()
    }
}

pub fn run(plan: &Plan, planted: &Planted, trace: TraceMode) -> Run {
    let mut setup = setup::setup(plan, trace);
    setup.mirror_mutant = planted.mirror;
    setup.client_mutants = planted.client;
    setup.sim_mutants = planted.simulator;
    let ((findings, logged), mut record) = simulate(plan.seed, setup, async |handle| {
        let _listening = log::listen(&handle, trace == TraceMode::Text);
        let findings = scenario(handle, plan, planted).await;
        (findings, log::take())
    });
    if trace == TraceMode::Text {
        record.lines = log::merge(record.lines, logged);
    }
    Run { seed: plan.seed, profile: plan.profile.name(), findings, record }
}
