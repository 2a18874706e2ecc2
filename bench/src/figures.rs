//! What a run cost, and what the runs of a peer come to.

use crate::arguments::Arguments;
use crate::peers::Peer;
use crate::watch::Arrival;

/// One copy of the topic by one peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub peer: Peer,
    pub round: usize,
    pub arrival: Arrival,
    pub peak_memory_kib: u64,
}

/// One of the things that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Megabytes a second, from the first record on the target until all are visible.
    Throughput,
    Records,
    /// Seconds of processor time for each GB, from the start of the process.
    Cpu,
    /// The same from the first record on the target.
    CpuCopying,
    /// Megabytes, at the highest.
    Memory,
    /// Seconds from the start of the process to the first record on the target.
    Startup,
}

impl Measure {
    pub fn of(self, run: &Run, arguments: &Arguments) -> f64 {
        let Arrival { first, visible, .. } = run.arrival;
        let (seconds, gigabytes) = (visible.seconds - first.seconds, arguments.volume() / 1e9);
        match self {
            Measure::Throughput => gigabytes * 1000.0 / seconds,
            Measure::Records => arguments.records as f64 / seconds,
            Measure::Cpu => visible.cpu / gigabytes,
            Measure::CpuCopying => (visible.cpu - first.cpu) / gigabytes,
            Measure::Memory => run.peak_memory_kib as f64 * 1024.0 / 1e6,
            Measure::Startup => first.seconds,
        }
    }
}

/// Of the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// `None` of nothing.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Spread { least, median, most })
    }
}

/// A measure over all rounds of a peer; `None` if it did not race.
pub fn spread(runs: &[Run], peer: Peer, measure: Measure, arguments: &Arguments) -> Option<Spread> {
    let own = runs.iter().filter(|run| run.peer == peer);
    Spread::of(own.map(|run| measure.of(run, arguments)).collect())
}

/// Verbatim's median of a measure for one of this peer's.
pub fn ratio(runs: &[Run], peer: Peer, measure: Measure, arguments: &Arguments) -> Option<f64> {
    let median = |peer| spread(runs, peer, measure, arguments).map(|spread| spread.median);
    Some(median(Peer::Verbatim)? / median(peer)?)
}

/// Something that issue 3 asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    pub what: String,
    pub found: f64,
    pub holds: bool,
}

/// The goals that those who raced can tell about.
pub fn goals(runs: &[Run], arguments: &Arguments) -> Vec<Goal> {
    const RATIOS: [(Peer, f64, f64); 2] =
        [(Peer::MirrorMaker1, 2.0, 0.40), (Peer::MirrorMaker2ExactlyOnce, 3.0, 0.18)];
    const MEMORY_MAX: f64 = 450.0;
    let mut goals = Vec::new();
    for (peer, throughput, cpu) in RATIOS {
        if let Some(found) = ratio(runs, peer, Measure::Throughput, arguments) {
            let what = format!("at least {throughput:.1} times the throughput of {}", peer.title());
            goals.push(Goal { what, found, holds: throughput <= found });
        }
        if let Some(found) = ratio(runs, peer, Measure::Cpu, arguments) {
            let what = format!("at most {cpu:.2} of the CPU of {}", peer.title());
            goals.push(Goal { what, found, holds: found <= cpu });
        }
    }
    if let Some(memory) = spread(runs, Peer::Verbatim, Measure::Memory, arguments) {
        let what = format!("less than {MEMORY_MAX:.0} MB of memory in every round");
        goals.push(Goal { what, found: memory.most, holds: memory.most < MEMORY_MAX });
    }
    goals
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::watch::Moment;

    pub fn run(peer: Peer, round: usize, seconds: f64, cpu: f64, peak_memory_kib: u64) -> Run {
        let first = Moment { seconds: 2.0, cpu: 1.0 };
        let end = Moment { seconds: 2.0 + seconds, cpu };
        Run { peer, round, arrival: Arrival { first, written: end, visible: end }, peak_memory_kib }
    }

    #[test]
    fn medians() {
        assert_eq!(Spread::of(vec![]), None);
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Some(Spread { least: 1.0, median: 2.0, most: 3.0 }));
        assert_eq!(Spread::of(vec![4.0, 1.0]), Some(Spread { least: 1.0, median: 2.5, most: 4.0 }));
    }

    #[test]
    fn measures_are_of_the_window() {
        let arguments = Arguments::default();
        let run = run(Peer::Verbatim, 0, 20.0, 11.0, 100_000);
        assert_eq!(Measure::Throughput.of(&run, &arguments), 100.0);
        assert_eq!(Measure::Records.of(&run, &arguments), 100_000.0);
        assert_eq!(Measure::Cpu.of(&run, &arguments), 5.5);
        assert_eq!(Measure::CpuCopying.of(&run, &arguments), 5.0);
        assert_eq!(Measure::Memory.of(&run, &arguments), 102.4);
        assert_eq!(Measure::Startup.of(&run, &arguments), 2.0);
    }

    #[test]
    fn goals_are_judged_by_medians_of_those_who_raced() {
        let arguments = Arguments::default();
        let runs = [
            run(Peer::Verbatim, 0, 20.0, 10.0, 100_000),
            run(Peer::MirrorMaker1, 0, 39.0, 30.0, 100_000),
            run(Peer::Verbatim, 1, 20.0, 10.0, 500_000),
        ];
        let found: Vec<(f64, bool)> =
            goals(&runs, &arguments).iter().map(|goal| (goal.found, goal.holds)).collect();
        assert_eq!(found, [(1.95, false), (1.0 / 3.0, true), (512.0, false)]);
    }
}
