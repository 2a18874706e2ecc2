use super::draw::Draw;
use runtime_sim::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! fault_classes {
    ($($(#[$doc:meta])* $class:ident = $letter:literal from $low:literal to $high:literal,)*) => {
        /// A kind of fault. Rates are events a minute, or the probability that a message is hit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum FaultClass {
            $($(#[$doc])* $class,)*
        }

        impl FaultClass {
            pub const ALL: &[FaultClass] = &[$(FaultClass::$class,)*];

            /// On or off, with a rate of its own if it is on.
            fn draw(self, random: &mut Random) -> Option<(FaultClass, f64)> {
                let (low, high) = self.range();
                let rate = random.log_uniform(low, high);
                random.chance(0.5).then_some((self, rate))
            }

            fn range(self) -> (f64, f64) {
                match self {
                    $(FaultClass::$class => ($low, $high),)*
                }
            }

            /// By which a profile is named.
            fn letter(self) -> char {
                match self {
                    $(FaultClass::$class => $letter,)*
                }
            }
        }
    };
}

fault_classes! {
    /// An instance dies at any moment.
    Crash = 'c' from 0.5 to 8.0,
    /// An instance dies in the middle of something that matters.
    CrashAtMoment = 'm' from 0.5 to 8.0,
    /// An instance stands still for longer or shorter than its time-outs, and goes on.
    Pause = 'p' from 1.0 to 8.0,
    /// An instance is asked to end, and starts again.
    Stop = 's' from 0.5 to 4.0,
    BrokerCrash = 'b' from 0.3 to 3.0,
    LeaderMove = 'l' from 1.0 to 20.0,
    CoordinatorMove = 'k' from 0.5 to 10.0,
    ReplicaStall = 'f' from 0.3 to 3.0,
    /// Only on the source: what the target acknowledged it must keep.
    UncleanElection = 'u' from 0.3 to 3.0,
    /// The source deletes records that may not be copied yet.
    Retention = 'r' from 0.2 to 4.0,
    Compaction = 'z' from 0.5 to 4.0,
    TopicsCreated = 'n' from 0.3 to 2.0,
    TopicsGrown = 'g' from 0.3 to 2.0,
    TopicsDeleted = 'd' from 0.1 to 1.0,
    TopicsRecreated = 'a' from 0.1 to 1.0,
    /// Somebody deletes a copy on the target, or makes it anew.
    TargetTopics = 'A' from 0.1 to 0.6,
    /// The wall clock of an instance's machine jumps.
    ClockSkew = 'w' from 0.3 to 3.0,
    DiskFull = 'x' from 0.3 to 3.0,
    Throttling = 'q' from 0.3 to 3.0,
    /// Members of the group are thrown out.
    RebalanceStorm = 'o' from 1.0 to 15.0,
    /// Somebody's tool removes members of the group, takes lanes over, or commits offsets into the group.
    AdminTool = 't' from 0.2 to 2.0,
    IdExpiry = 'i' from 0.2 to 2.0,
    MarkerDelay = 'y' from 0.5 to 6.0,
    RequestLost = 'L' from 0.000_2 to 0.02,
    ResponseLost = 'R' from 0.000_2 to 0.02,
    /// Messages that take up to seconds.
    SlowMessages = 'S' from 0.000_5 to 0.05,
    /// A broker answers with an error that it may answer with.
    ErrorAnswers = 'E' from 0.000_2 to 0.02,
    /// A step of a process takes up to seconds.
    SlowSteps = 'W' from 0.000_1 to 0.01,
    /// Only a part of what a client sends at once arrives.
    PartialSend = 'P' from 0.001 to 0.1,
    /// What ends a transaction is lost, late, answered with an error, or done and not answered; what adds to it is
    /// answered with an error.
    TransactionTrouble = 'e' from 0.04 to 0.3,
    /// What is under way when its client dies or gives up arrives late: after others have taken over.
    LateRequests = 'Z' from 0.2 to 1.0,
    /// A target broker dies in the middle of something that matters to an instance.
    BrokerCrashAtMoment = 'B' from 0.5 to 6.0,
    /// An instance does not reach one of the clusters, or one of its brokers, for a while.
    CutOff = 'C' from 0.3 to 3.0,
    /// Clients lose their right to a topic, and get it back.
    TopicsDenied = 'N' from 0.2 to 1.5,
    /// The mirror of an instance hears of nothing for a while, though its clients go on and keep its seat.
    WorkerStall = 'h' from 0.5 to 4.0,
    /// An instance dies while it gives its lanes to others.
    CrashInRelease = 'v' from 0.5 to 6.0,
    /// The ledger is compacted as far as it can be.
    LedgerCompaction = 'j' from 0.5 to 8.0,
    /// The same of the group, a transactional id, or the right to be an idempotent producer.
    RightsDenied = 'D' from 0.3 to 1.5,
    /// Somebody else writes to a copy.
    ForeignWrites = 'F' from 0.3 to 2.0,
    /// A batch of the source cannot be read by any client.
    DamagedBatches = 'X' from 0.3 to 2.0,
}

/// Those that came when seeds had shown bugs already: drawn apart, so that older seeds keep their plans in all else.
pub const LATER: &[FaultClass] = &[
    FaultClass::TransactionTrouble,
    FaultClass::LateRequests,
    FaultClass::BrokerCrashAtMoment,
    FaultClass::CutOff,
    FaultClass::TopicsDenied,
];

/// Those that came after these, and are drawn apart for the same reason.
pub const LATEST: &[FaultClass] =
    &[FaultClass::WorkerStall, FaultClass::CrashInRelease, FaultClass::LedgerCompaction];

/// What ends an instance or a partition until somebody acts: in few seeds, or little else would be seen in any.
pub const RARE: &[FaultClass] =
    &[FaultClass::RightsDenied, FaultClass::ForeignWrites, FaultClass::DamagedBatches];

/// Of a hundred seeds, how many have each of these.
const RARE_PERCENT: u64 = 10;

/// Which classes of faults a seed has, and how often each strikes.
///
/// Every class is off with a probability of one half and has a rate of its own otherwise: one rate for all
/// would give neither long quiet stretches nor storms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub rates: BTreeMap<FaultClass, f64>,
}

/// So many seeds in a hundred have no faults at all: what fails there is no matter of bad luck.
const QUIET_PERCENT: u64 = 8;

impl Profile {
    pub fn draw(random: &mut Random) -> Profile {
        if random.below(100) < QUIET_PERCENT {
            return Profile::default();
        }
        let mut rates = BTreeMap::new();
        let mut classes = 0;
        let is_apart = |class: &&FaultClass| [LATER, LATEST, RARE].iter().any(|of| of.contains(class));
        for class in FaultClass::ALL.iter().filter(|class| !is_apart(class)) {
            classes += 1;
            rates.extend(class.draw(random));
        }
        if rates.len() == classes {
            rates.pop_last();
        }
        Profile { rates }
    }

    /// The classes that came later, for a profile that has faults at all.
    pub fn draw_later(random: &mut Random) -> Profile {
        Profile { rates: LATER.iter().filter_map(|class| class.draw(random)).collect() }
    }

    /// The rare classes, for a profile that has faults at all.
    pub fn draw_rare(random: &mut Random) -> Profile {
        let mut rates = BTreeMap::new();
        for class in RARE {
            let (low, high) = class.range();
            let (rate, is_on) = (random.log_uniform(low, high), random.below(100) < RARE_PERCENT);
            rates.extend(is_on.then_some((*class, rate)));
        }
        Profile { rates }
    }

    /// Turns classes on, at one of their higher rates, that are in neither profile.
    pub fn turn_on(&mut self, classes: &[FaultClass], other: &Profile, random: &mut Random) {
        for class in classes {
            let (low, high) = class.range();
            let rate = random.log_uniform((low * high).sqrt(), high);
            if other.rate(*class).is_none() {
                self.rates.entry(*class).or_insert(rate);
            }
        }
    }

    /// The classes that came last, for a profile that has faults at all.
    pub fn draw_latest(random: &mut Random) -> Profile {
        Profile { rates: LATEST.iter().filter_map(|class| class.draw(random)).collect() }
    }

    pub fn rate(&self, class: FaultClass) -> Option<f64> {
        self.rates.get(&class).copied()
    }

    /// The rate of a class that strikes messages, zero where it is off.
    pub fn probability(&self, class: FaultClass) -> f64 {
        self.rate(class).unwrap_or(0.0)
    }

    pub fn is_quiet(&self) -> bool {
        self.rates.is_empty()
    }

    /// One letter a class, `-` for none.
    pub fn name(&self) -> String {
        if self.is_quiet() { "-".to_owned() } else { self.rates.keys().map(|class| class.letter()).collect() }
    }
}
