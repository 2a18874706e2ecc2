//! Lanes: the fixed shares of a flow's partitions.

use kafka_types::SourcePartition;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of [`lane_of`]; it is part of every claim, so that no two versions ever share a ledger.
pub const HASH_VERSION: u32 = 1;

/// A lane's number, zero or more: also the number of its partition in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneId(pub u32);

impl LaneId {
    /// Lane 0 also owns the flow's topic records, creates target topics and grows them.
    pub const FIRST: LaneId = LaneId(0);
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that rises each time a lane is taken or rewound; what belongs to an older attempt is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u64);

impl Attempt {
    #[must_use]
    pub fn next(self) -> Attempt {
        Attempt(self.0 + 1)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The lane of a source partition: `(murmur2(topic) + partition) mod lanes`.
///
/// One topic spreads evenly over the lanes, and partitions added later join existing lanes.
pub fn lane_of(partition: &SourcePartition, lanes: u32) -> LaneId {
    assert_ne!(lanes, 0, "a flow has at least one lane");
    let topic = u64::from(murmur2(partition.topic.as_str().as_bytes()));
    let number = topic + partition.partition.index() as u64;
    LaneId((number % u64::from(lanes)) as u32)
}

/// MurmurHash2 with the seed and byte order that Kafka's clients use for keys
/// (org.apache.kafka.common.utils.Utils.murmur2).
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    let mut hash = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes(word.try_into().expect("chunks of four"));
        k = k.wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, &byte| (tail << 8) | u32::from(byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the Java client's own test (UtilsTest.testMurmur2).
    #[test]
    fn murmur2_agrees_with_the_java_client() {
        for (text, hash) in [
            ("21", -973932308),
            ("foobar", -790332482),
            ("a-little-bit-long-string", -985981536),
            ("a-little-bit-longer-string", -1486304829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
            ("abc", 479470107),
        ] {
            assert_eq!(murmur2(text.as_bytes()), hash as u32, "{text}");
        }
    }

    #[test]
    fn one_topic_spreads_evenly() {
        let mut counts = [0; 8];
        for partition in 0..64 {
            let lane = lane_of(&SourcePartition::new("orders", partition), 8);
            counts[lane.0 as usize] += 1;
        }
        assert_eq!(counts, [8; 8]);
    }

    /// Golden: a ledger made by one version must be read by the next with the same lanes.
    #[test]
    fn lanes_never_change() {
        let lane = |topic, partition, lanes| lane_of(&SourcePartition::new(topic, partition), lanes).0;
        assert_eq!(lane("orders", 0, 8), lane("orders", 8, 8));
        assert_eq!(lane("abc", 0, 8), 479470107 % 8);
        assert_eq!(lane("abc", 1, 8), 479470108 % 8);
        assert_eq!(lane("foobar", 3, 5), ((u64::from(-790332482i32 as u32) + 3) % 5) as u32);
    }
}
