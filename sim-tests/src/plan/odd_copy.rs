use serde::{Deserialize, Serialize};

/// A target topic that takes not all records, or not as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OddCopy {
    /// Its brokers put their own time in place of each record's.
    LogAppendTime,
    /// It is compacted, so a record without a key is refused.
    Compacted,
    /// A record that is older than [`OddCopy::AGE_MAX_MS`] is refused.
    RefusesOld,
}

impl OddCopy {
    pub const ALL: &[OddCopy] = &[OddCopy::LogAppendTime, OddCopy::Compacted, OddCopy::RefusesOld];

    /// Some records of the workload are older.
    pub const AGE_MAX_MS: i64 = 500_000;

    /// The setting by which the topic is so.
    pub fn setting(self) -> (&'static str, String) {
        match self {
            OddCopy::LogAppendTime => ("message.timestamp.type", "LogAppendTime".to_owned()),
            OddCopy::Compacted => ("cleanup.policy", "compact".to_owned()),
            OddCopy::RefusesOld => ("message.timestamp.before.max.ms", OddCopy::AGE_MAX_MS.to_string()),
        }
    }
}
