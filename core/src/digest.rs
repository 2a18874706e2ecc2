//! A digest of a run of records that does not depend on how the run was cut into batches.
//!
//! Each record is hashed alone ([`RecordHash`]); a [`Digest`] is the polynomial of those hashes over two prime
//! fields. Digests join: `digest(a ++ b) = digest(a).join(digest(b))`, so a lane adds up what its batches
//! brought, and `verify` may read in whatever batches it likes.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use xxhash_rust::xxh3::Xxh3;

/// The Mersenne prime 2^61 - 1: products of two residues fit a u128, and reduction is a shift and an add.
const PRIME: u64 = (1 << 61) - 1;
/// Two bases, so that a collision must happen in both polynomials at once.
const BASES: [u64; 2] = [0x1234_5678_9abc_def1 % PRIME, 0x0fed_cba9_8765_4321 % PRIME];

/// The content of one record: key, value, headers in order and timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordHash([u64; 2]);

/// A record's parts as they are hashed; absent and empty differ.
pub struct RecordParts<'a, H> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// Name and value of each header, in order, repeats included.
    pub headers: H,
    /// Milliseconds since 1970; -1 where the record has none.
    pub timestamp: i64,
}

impl RecordHash {
    pub fn of<'a, H>(parts: RecordParts<'a, H>) -> RecordHash
    where
        H: Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    {
        let mut hash = Xxh3::new();
        hash.update(&parts.timestamp.to_le_bytes());
        update_optional(&mut hash, parts.key);
        update_optional(&mut hash, parts.value);
        for (name, value) in parts.headers {
            update_optional(&mut hash, Some(name));
            update_optional(&mut hash, value);
        }
        let digest = hash.digest128();
        RecordHash([(digest >> 64) as u64 % PRIME, digest as u64 % PRIME])
    }
}

/// Lengths are hashed too, or `("ab", "c")` and `("a", "bc")` would be one record.
fn update_optional(hash: &mut Xxh3, part: Option<&[u8]>) {
    match part {
        None => hash.update(&(-1i64).to_le_bytes()),
        Some(bytes) => {
            hash.update(&(bytes.len() as i64).to_le_bytes());
            hash.update(bytes);
        }
    }
}

/// The digest of a run of records, with their count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Digest {
    pub records: u64,
    value: [u64; 2],
}

impl Digest {
    pub const EMPTY: Digest = Digest { records: 0, value: [0, 0] };

    /// This run with one more record at its end.
    #[must_use]
    pub fn push(self, record: RecordHash) -> Digest {
        let step = |i: usize| add(multiply(self.value[i], BASES[i]), record.0[i]);
        Digest { records: self.records + 1, value: [step(0), step(1)] }
    }

    /// This run followed by `later`.
    #[must_use]
    pub fn join(self, later: Digest) -> Digest {
        let step = |i: usize| add(multiply(self.value[i], power(BASES[i], later.records)), later.value[i]);
        Digest { records: self.records + later.records, value: [step(0), step(1)] }
    }
}

fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if PRIME <= sum { sum - PRIME } else { sum }
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product & u128::from(PRIME)) as u64 + (product >> 61) as u64;
    if PRIME <= folded { folded - PRIME } else { folded }
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent != 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}{:016x}", self.records, self.value[0], self.value[1])
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| de::Error::custom(format!("not a digest: {text:?}")))
    }
}

fn parse(text: &str) -> Option<Digest> {
    let (records, value) = text.split_once(':')?;
    let (high, low) = value.split_at_checked(16)?;
    let half = |text| u64::from_str_radix(text, 16).ok();
    Some(Digest { records: records.parse().ok()?, value: [half(high)?, half(low)?] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: &str) -> RecordHash {
        RecordHash::of(RecordParts {
            key: None,
            value: Some(value.as_bytes()),
            headers: std::iter::empty(),
            timestamp: 7,
        })
    }

    fn digest(values: &[&str]) -> Digest {
        values.iter().fold(Digest::EMPTY, |digest, value| digest.push(record(value)))
    }

    #[test]
    fn does_not_depend_on_batch_boundaries() {
        let all = ["a", "b", "c", "d", "e"];
        for cut in 0..=all.len() {
            assert_eq!(digest(&all[..cut]).join(digest(&all[cut..])), digest(&all));
        }
    }

    #[test]
    fn sees_order_loss_and_repeats() {
        assert_ne!(digest(&["a", "b"]), digest(&["b", "a"]));
        assert_ne!(digest(&["a", "b"]), digest(&["a"]));
        assert_ne!(digest(&["a"]), digest(&["a", "a"]));
    }

    #[test]
    fn absent_is_not_empty_and_lengths_count() {
        let hash = |key, value, headers: Vec<(&'static [u8], Option<&'static [u8]>)>| {
            RecordHash::of(RecordParts { key, value, headers: headers.into_iter(), timestamp: 0 })
        };
        let some = |text: &'static str| Some(text.as_bytes());
        assert_ne!(hash(None, some(""), vec![]), hash(some(""), some(""), vec![]));
        assert_ne!(hash(some(""), None, vec![]), hash(some(""), some(""), vec![]));
        assert_ne!(hash(some("ab"), some("c"), vec![]), hash(some("a"), some("bc"), vec![]));
        assert_ne!(hash(None, None, vec![(b"h", None)]), hash(None, None, vec![(b"h", some(""))]));
        assert_ne!(
            hash(None, None, vec![(b"a", some("1")), (b"b", some("2"))]),
            hash(None, None, vec![(b"b", some("2")), (b"a", some("1"))])
        );
    }

    #[test]
    fn survives_its_text_form() {
        let original = digest(&["x", "y"]);
        let text = serde_json::to_string(&original).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), original);
    }
}
