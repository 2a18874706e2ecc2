//! Runs a scenario in virtual time, from a seed.

use crate::client::{ClientFaults, ClientMutants, unseeded};
use crate::clock;
use crate::counters::Counters;
use crate::handle::Handle;
use crate::network::NetworkFaults;
use crate::shared::Shared;
use crate::trace::TraceMode;
use crate::universe::Universe;
use kafka_model::ClusterConfig;
use madsim::runtime::Runtime;
use std::hash::RandomState;

/// What a run begins with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub source: ClusterConfig,
    pub target: ClusterConfig,
    /// How far the clock of each cluster is off.
    pub source_clock_ms: kafka_model::Millis,
    pub target_clock_ms: kafka_model::Millis,
    /// Of each cluster; they are numbered from 1 on.
    pub brokers: u8,
    pub network: NetworkFaults,
    pub client: ClientFaults,
    pub trace: TraceMode,
    /// A bug of the mirror. Without one, what runs is the production type.
    pub mirror_mutant: Option<verbatim_core::fault::Mutant>,
    pub client_mutants: ClientMutants,
    pub sim_mutants: SimMutants,
}

impl Default for Setup {
    fn default() -> Setup {
        let cluster = |id: &str| ClusterConfig {
            cluster_id: id.to_owned(),
            auto_create_topics: false,
            ..ClusterConfig::default()
        };
        Setup {
            source: cluster("source"),
            target: cluster("target"),
            source_clock_ms: 0,
            target_clock_ms: 0,
            brokers: 3,
            network: NetworkFaults::default(),
            client: ClientFaults::default(),
            trace: TraceMode::default(),
            mirror_mutant: None,
            client_mutants: ClientMutants::default(),
            sim_mutants: SimMutants::default(),
        }
    }
}

/// Bugs of the simulator itself, planted to see that tests notice. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimMutants {
    /// 55: what a dead client has sent never arrives.
    pub death_cancels_requests: bool,
}

/// What is left of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub seed: u64,
    /// Equal for equal runs.
    pub trace_hash: u64,
    /// How many events were traced.
    pub steps: u64,
    pub virtual_millis: kafka_model::Millis,
    pub counters: Counters,
    /// One line an event, if they were asked for.
    pub lines: Vec<String>,
}

/// With what [`simulate`] panics where the run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    pub message: String,
    /// Of the run so far.
    pub record: Record,
}

/// Runs `scenario` in a world of its own whose every choice follows from `seed`.
///
/// Each run has a thread of its own, since madsim decides the order of hash maps once for each thread.
pub fn simulate<T, S>(seed: u64, setup: Setup, scenario: S) -> (T, Record)
where
    S: AsyncFnOnce(Handle) -> T + Send,
    T: Send,
{
    // Drawn by the operating system: madsim has no say outside of a run.
    let keys = setup.client_mutants.unseeded_order.then(RandomState::new);
    std::thread::scope(|scope| {
        let name = format!("seed {seed}");
        let thread = std::thread::Builder::new().name(name).stack_size(4 << 20);
        let run = thread.spawn_scoped(scope, move || {
            keys.into_iter().for_each(unseeded::use_keys);
            run(seed, setup, scenario)
        });
        match run.expect("threads can be made").join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn run<T>(seed: u64, setup: Setup, scenario: impl AsyncFnOnce(Handle) -> T) -> (T, Record) {
    let runtime = Runtime::with_seed_and_config(seed, madsim::Config::default());
    let shared = Shared::new(seed, Universe::new(seed, &setup), setup);
    let run = std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            clock::start(&shared);
            scenario(Handle::new(&shared)).await
        })
    });
    let ended = std::panic::catch_unwind(run);
    let record = shared.close();
    shared.end_tasks(runtime.handle());
    // The executor drops them in its next round.
    runtime.block_on(async {});
    match ended {
        Ok(value) => (value, record),
        Err(panic) => {
            // What led there is what a failed run is looked at for.
            record.lines.iter().for_each(|line| eprintln!("{line}"));
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
            std::panic::resume_unwind(Box::new(Panicked { message: text.to_owned(), record }))
        }
    }
}
