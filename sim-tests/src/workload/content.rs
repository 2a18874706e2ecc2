//! What the workload's records hold: everything that a mirror might get wrong.

use crate::plan::Draw;
use bytes::Bytes;
use kafka_types::{Header, NO_TIMESTAMP, Record};
use runtime_sim::Random;

/// Makes records no two of which are equal, so that whatever becomes of one can be told.
#[derive(Debug)]
pub struct RecordMaker {
    producer: usize,
    made: u64,
    bytes_max: i64,
    /// Of a thousand records, how many are of the time 0.
    zero_timestamps: u32,
}

/// Where a record carries what makes it unlike any other.
#[derive(Clone, Copy)]
enum Mark {
    Value,
    Key,
    Header,
}

impl RecordMaker {
    pub fn new(producer: usize, bytes_max: i64, zero_timestamps: u32) -> RecordMaker {
        RecordMaker { producer, made: 0, bytes_max, zero_timestamps }
    }

    /// A record for a topic that is compacted, or not: those need keys.
    pub fn make(&mut self, random: &mut Random, now: i64, needs_key: bool) -> Record {
        self.made += 1;
        let name = Bytes::from(format!("p{}-{}", self.producer, self.made));
        let mark = match random.below(10) {
            0 => Mark::Key,
            1 => Mark::Header,
            _ => Mark::Value,
        };
        let (mut key, mut value, mut headers) = (plain_key(random), plain_value(random), headers(random));
        match mark {
            Mark::Value => value = Some(self.padded(random, name)),
            Mark::Key => key = Some(name),
            Mark::Header => headers.push(Header { name: "mark".into(), value: Some(name) }),
        }
        if needs_key {
            key = key.or_else(|| Some(Bytes::from_static(b"k")));
        }
        let timestamp = match random.below(20) {
            0 => NO_TIMESTAMP,
            1 => now - random.between(0, 1_000_000),
            _ => now,
        };
        // Zero is a time that some client libraries cannot send.
        let timestamp = if timestamp == 0 { 1 } else { timestamp };
        let is_unsendable =
            self.zero_timestamps != 0 && random.below(1_000) < u64::from(self.zero_timestamps);
        let timestamp = if is_unsendable { 0 } else { timestamp };
        Record { headers: headers.into(), ..Record::new(timestamp, key, value) }
    }

    /// Big records are rare, and then big.
    fn padded(&self, random: &mut Random, name: Bytes) -> Bytes {
        if !random.chance(0.05) {
            return name;
        }
        let size = random.log_uniform(1.0, self.bytes_max.max(2) as f64) as usize;
        let mut bytes = name.to_vec();
        bytes.resize(name.len().max(size), b'.');
        Bytes::from(bytes)
    }
}

fn plain_key(random: &mut Random) -> Option<Bytes> {
    match random.below(8) {
        0 => None,
        1 => Some(Bytes::new()),
        number => Some(Bytes::from(format!("k{number}"))),
    }
}

/// Of a record that is marked elsewhere: half of these are tombstones.
fn plain_value(random: &mut Random) -> Option<Bytes> {
    match random.below(4) {
        0 | 1 => None,
        2 => Some(Bytes::new()),
        _ => Some(Bytes::from_static(b"value")),
    }
}

fn headers(random: &mut Random) -> Vec<Header> {
    const NAMES: [&[u8]; 4] = [b"", b"trace", b"trace", b"\xff\x00\xfe"];
    const VALUES: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"1"), Some(b"\x80\x81")];
    let count = if random.chance(0.3) { random.below(4) } else { 0 };
    (0..count)
        .map(|_| Header {
            name: Bytes::from_static(random.one_of::<&[u8]>(&NAMES)),
            value: random.one_of(&VALUES).map(Bytes::from_static),
        })
        .collect()
}
