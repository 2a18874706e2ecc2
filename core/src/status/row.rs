use kafka_types::{Partition, SourceOffset, TopicName};
use serde::Serialize;

/// One row, with raw numbers; the JSON form of it is relied on by users' scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub flow: String,
    pub topic: TopicName,
    pub partition: Partition,
    pub lane: u32,
    pub owner: Option<String>,
    pub position: Option<SourceOffset>,
    pub source_end: Option<SourceOffset>,
    pub lag: Option<u64>,
    pub lag_time_ms: Option<u64>,
    pub state: State,
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// There is something to copy.
    Copying,
    CaughtUp,
    /// It stands still until somebody acts.
    Halted,
    /// Something must happen first that the mirror does by itself.
    Waiting,
    /// The source deleted records before they were copied, and no instance has noticed yet.
    Gap,
}

impl State {
    /// As people and scripts read it.
    pub fn name(self) -> &'static str {
        match self {
            State::Copying => "copying",
            State::CaughtUp => "caught-up",
            State::Halted => "halted",
            State::Waiting => "waiting",
            State::Gap => "gap",
        }
    }
}

/// Whole seconds are enough for an age, milliseconds for a very young one.
pub fn age(millis: u64) -> String {
    if millis == 0 {
        return "0s".to_owned();
    }
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let seconds = millis / 1_000;
    let parts =
        [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    parts.into_iter().filter(|(count, _)| *count != 0).map(|(count, unit)| format!("{count}{unit}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_as_long_as_they_need_to_be() {
        let ages = [0, 999, 1_999, 61_002, 3_600_000, 90_061_000].map(age);
        assert_eq!(ages, ["0s", "999ms", "1s", "1m1s", "1h", "1d1h1m1s"]);
    }
}
