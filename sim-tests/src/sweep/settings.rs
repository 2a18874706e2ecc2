use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the environment asks of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub base_seed: u64,
    pub seeds: u64,
    pub jobs: usize,
    /// No seed is begun after this much of wall time.
    pub time_limit: Option<Duration>,
    /// A plan to run in place of seeds.
    pub plan: Option<PathBuf>,
    /// One seed was asked for by name, with its output: the run itself is to be shown.
    pub shows_run: bool,
    /// Whether enough seeds run for the least counts to mean something.
    pub is_whole: bool,
}

impl Settings {
    /// Whether certain seeds or a plan are asked for, and nothing else is to be run.
    pub fn is_asked_for() -> bool {
        ["SIM_SEED", "SIM_NUM", "SIM_PLAN"].iter().any(|name| std::env::var_os(name).is_some())
    }

    /// The same seeds each time, from `start` on, unless others are asked for.
    #[must_use]
    pub fn known_from(self, start: u64) -> Settings {
        if Settings::is_asked_for() { self } else { Settings { base_seed: start, ..self } }
    }

    /// `SIM_SEED` (alone: that seed only), `SIM_NUM`, `SIM_JOBS`, `SIM_TIME_LIMIT` in seconds, `SIM_PLAN`.
    pub fn from_environment(default_seeds: u64) -> Settings {
        let number = |name: &str| std::env::var(name).ok().map(|text| parse(name, &text));
        let seed = number("SIM_SEED");
        let count = number("SIM_NUM");
        let seeds = count.unwrap_or(if seed.is_some() { 1 } else { default_seeds });
        let plan = std::env::var_os("SIM_PLAN").map(PathBuf::from);
        let time_limit = number("SIM_TIME_LIMIT").map(Duration::from_secs);
        Settings {
            base_seed: seed.unwrap_or_else(fresh_seed),
            seeds,
            jobs: number("SIM_JOBS").map_or_else(cores, |jobs| usize::try_from(jobs).unwrap_or(1)).max(1),
            time_limit,
            shows_run: (seeds == 1 || plan.is_some())
                && std::env::args().any(|argument| argument == "--nocapture"),
            is_whole: default_seeds <= seeds && time_limit.is_none() && plan.is_none(),
            plan,
        }
    }
}

fn parse(name: &str, text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// From the clock, so that no two sweeps are one, and short enough to be read out.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64 % 1_000_000_000 * 1_000
}
