//! Compacted topics: each side may have dropped records that a later one of their key replaced, at its own
//! pace, so what must agree is the last record of each key.

use super::compare::{extra, missing};
use super::report::{Difference, Kind};
use crate::clusters::Record;
use kafka_types::{SourceOffset, TargetOffset};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use verbatim_core::digest::{RecordHash, RecordParts};
use verbatim_core::failure::{Side, Trouble};

/// Keys held in memory at once; a partition with more of them is read several times, a share of its keys
/// each time.
const KEYS_MAX: usize = 500_000;

/// What reads a partition's records, from the beginning each time.
pub(super) trait Sides {
    type Source: Iterator<Item = Result<Record<SourceOffset>, Trouble>>;
    type Target: Iterator<Item = Result<Record<TargetOffset>, Trouble>>;
    /// What was copied, on either side.
    fn source(&self) -> Result<Self::Source, Trouble>;
    fn target(&self) -> Result<Self::Target, Trouble>;
    /// What came after it.
    fn source_later(&self) -> Result<Self::Source, Trouble>;
    fn target_later(&self) -> Result<Self::Target, Trouble>;
}

/// Which keys need not have a counterpart, since that side has deleted its first records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deleted {
    pub source: bool,
    pub target: bool,
}

/// The number of keys compared and the first difference.
type Compared = (u64, Option<Difference>);

pub(super) fn compare(sides: &impl Sides, deleted: Deleted) -> Result<Compared, (Side, Trouble)> {
    compare_with(sides, deleted, KEYS_MAX)
}

fn compare_with(sides: &impl Sides, deleted: Deleted, keys_max: usize) -> Result<Compared, (Side, Trouble)> {
    let mut shares = 1;
    loop {
        if let Some(compared) = compare_shares(sides, deleted, shares, keys_max)? {
            return Ok(compared);
        }
        shares *= 2;
    }
}

/// All keys, one share after the other. Nothing where a share has too many keys.
fn compare_shares(
    sides: &impl Sides,
    deleted: Deleted,
    shares: u64,
    keys_max: usize,
) -> Result<Option<Compared>, (Side, Trouble)> {
    let mut keys = 0;
    for share in 0..shares {
        match compare_share(sides, deleted, Share { share, shares }, keys_max)? {
            None => return Ok(None),
            Some((_, Some(difference))) => return Ok(Some((keys, Some(difference)))),
            Some((count, None)) => keys += count,
        }
    }
    Ok(Some((keys, None)))
}

#[derive(Clone, Copy)]
struct Share {
    share: u64,
    shares: u64,
}

impl Share {
    fn has(self, key: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish() % self.shares == self.share
    }
}

/// The last record of each key, by the key's hash.
type Last<O> = HashMap<RecordHash, Summary<O>>;

/// What must be remembered of a record: its own size does not count.
struct Summary<O> {
    offset: O,
    whole: RecordHash,
    value: RecordHash,
    timestamp: i64,
    tombstone: bool,
}

impl<O: Copy> Summary<O> {
    fn of(record: &Record<O>) -> Summary<O> {
        Summary {
            offset: record.offset,
            whole: record.hash(),
            value: hash(record.value.as_deref()),
            timestamp: record.timestamp,
            tombstone: record.value.is_none(),
        }
    }
}

fn altered(ours: &Summary<SourceOffset>, theirs: &Summary<TargetOffset>) -> Difference {
    let (kind, detail) = if ours.value != theirs.value {
        (Kind::Value, "the value differs".to_string())
    } else if ours.timestamp != theirs.timestamp {
        let times = (ours.timestamp, theirs.timestamp);
        (
            Kind::Timestamp,
            format!("the timestamp differs: {} at the source, {} at the target", times.0, times.1),
        )
    } else {
        (Kind::Headers, "the headers differ".to_string())
    };
    Difference { kind, source_offset: Some(ours.offset), target_offset: Some(theirs.offset), detail }
}

/// Nothing where the share has too many keys.
fn compare_share(
    sides: &impl Sides,
    deleted: Deleted,
    share: Share,
    keys_max: usize,
) -> Result<Option<Compared>, (Side, Trouble)> {
    let at_source = |trouble| (Side::Source, trouble);
    let at_target = |trouble| (Side::Target, trouble);
    let source = sides.source().and_then(|records| last(records, share, keys_max)).map_err(at_source)?;
    let target = sides.target().and_then(|records| last(records, share, keys_max)).map_err(at_target)?;
    let (Some(source), Some(target)) = (source, target) else { return Ok(None) };
    let mut keys = 0;
    let mut differences = Vec::new();
    let mut only_source = HashMap::new();
    for (key, ours) in &source {
        match target.get(key) {
            Some(theirs) if ours.whole == theirs.whole => keys += 1,
            Some(theirs) => differences.push(altered(ours, theirs)),
            // A tombstone goes away with time, so it and nothing are one.
            None if ours.tombstone || deleted.target => {}
            None => {
                only_source.insert(*key, missing(ours.offset));
            }
        }
    }
    let mut only_target = HashMap::new();
    for (key, theirs) in &target {
        if !source.contains_key(key) && !theirs.tombstone && !deleted.source {
            only_target.insert(*key, extra(theirs.offset));
        }
    }
    // A later record of the key explains why one side has dropped what the other still has.
    if !only_source.is_empty() {
        let later = sides.target_later().and_then(keys_of).map_err(at_target)?;
        only_source.retain(|key, _| !later.contains(key));
    }
    if !only_target.is_empty() {
        let later = sides.source_later().and_then(keys_of).map_err(at_source)?;
        only_target.retain(|key, _| !later.contains(key));
    }
    let place = |difference: &Difference| {
        difference.source_offset.map(|offset| offset.0).or(difference.target_offset.map(|offset| offset.0))
    };
    let first = differences
        .into_iter()
        .chain(only_source.into_values())
        .chain(only_target.into_values())
        .min_by_key(place);
    Ok(Some((keys, first)))
}

/// The last record of each key of the share; nothing where there are too many.
fn last<O: Copy>(
    records: impl Iterator<Item = Result<Record<O>, Trouble>>,
    share: Share,
    keys_max: usize,
) -> Result<Option<Last<O>>, Trouble> {
    let mut last = HashMap::new();
    for record in records {
        let record = record?;
        let Some(key) = record.key.as_deref().filter(|key| share.has(key)) else { continue };
        last.insert(hash(Some(key)), Summary::of(&record));
        if keys_max < last.len() {
            return Ok(None);
        }
    }
    Ok(Some(last))
}

fn keys_of<O>(
    records: impl Iterator<Item = Result<Record<O>, Trouble>>,
) -> Result<HashSet<RecordHash>, Trouble> {
    let mut keys = HashSet::new();
    for record in records {
        keys.extend(record?.key.as_deref().map(|key| hash(Some(key))));
    }
    Ok(keys)
}

fn hash(part: Option<&[u8]>) -> RecordHash {
    RecordHash::of(RecordParts { key: part, value: None, headers: std::iter::empty(), timestamp: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(i64, &'static str, Option<&'static str>)];

    #[derive(Default)]
    struct Fixed {
        source: Pairs,
        target: Pairs,
        source_later: Pairs,
        target_later: Pairs,
    }

    fn records<O>(pairs: Pairs, offset: fn(i64) -> O) -> std::vec::IntoIter<Result<Record<O>, Trouble>> {
        let record = |&(at, key, value): &(i64, &str, Option<&str>)| {
            let value = value.map(|value: &str| value.as_bytes().to_vec());
            Ok(Record { offset: offset(at), key: Some(key.into()), value, headers: Vec::new(), timestamp: 1 })
        };
        pairs.iter().map(record).collect::<Vec<_>>().into_iter()
    }

    impl Sides for Fixed {
        type Source = std::vec::IntoIter<Result<Record<SourceOffset>, Trouble>>;
        type Target = std::vec::IntoIter<Result<Record<TargetOffset>, Trouble>>;
        fn source(&self) -> Result<Self::Source, Trouble> {
            Ok(records(self.source, SourceOffset))
        }
        fn target(&self) -> Result<Self::Target, Trouble> {
            Ok(records(self.target, TargetOffset))
        }
        fn source_later(&self) -> Result<Self::Source, Trouble> {
            Ok(records(self.source_later, SourceOffset))
        }
        fn target_later(&self) -> Result<Self::Target, Trouble> {
            Ok(records(self.target_later, TargetOffset))
        }
    }

    fn compared(sides: &Fixed) -> (u64, Option<Kind>) {
        let (keys, difference) = compare(sides, Deleted::default()).unwrap();
        (keys, difference.map(|difference| difference.kind))
    }

    #[test]
    fn only_the_last_record_of_a_key_counts() {
        let source: Pairs = &[(5, "a", Some("2")), (6, "b", Some("1"))];
        let target: Pairs = &[(0, "a", Some("1")), (1, "a", Some("2")), (2, "b", Some("1"))];
        assert_eq!(compared(&Fixed { source, target, ..Fixed::default() }), (2, None));
    }

    #[test]
    fn tombstones_may_be_gone() {
        let source: Pairs = &[(5, "a", None)];
        assert_eq!(compared(&Fixed { source, ..Fixed::default() }), (0, None));
        assert_eq!(compared(&Fixed { target: source, ..Fixed::default() }), (0, None));
    }

    #[test]
    fn a_later_record_of_the_key_explains_an_absence() {
        let one: Pairs = &[(5, "a", Some("1"))];
        let later: Pairs = &[(9, "a", Some("2"))];
        assert_eq!(compared(&Fixed { source: one, ..Fixed::default() }).1, Some(Kind::Missing));
        assert_eq!(compared(&Fixed { source: one, target_later: later, ..Fixed::default() }).1, None);
        assert_eq!(compared(&Fixed { target: one, ..Fixed::default() }).1, Some(Kind::Extra));
        assert_eq!(compared(&Fixed { target: one, source_later: later, ..Fixed::default() }).1, None);
    }

    #[test]
    fn the_first_difference_is_named() {
        let source: Pairs = &[(5, "a", Some("1")), (7, "b", Some("2"))];
        let target: Pairs = &[(0, "a", Some("1")), (1, "b", Some("x"))];
        assert_eq!(compared(&Fixed { source, target, ..Fixed::default() }), (0, Some(Kind::Value)));
    }

    #[test]
    fn many_keys_are_compared_share_by_share() {
        let source: Pairs = &[
            (0, "a", Some("1")),
            (1, "b", Some("1")),
            (2, "c", Some("1")),
            (3, "d", Some("1")),
            (4, "e", Some("1")),
        ];
        let sides = Fixed { source, target: source, ..Fixed::default() };
        assert_eq!(compare_with(&sides, Deleted::default(), 2).unwrap(), (5, None));
    }
}
