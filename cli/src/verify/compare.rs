//! Two runs of records side by side.

use super::report::{Difference, Kind};
use crate::clusters::Record;
use kafka_types::{SourceOffset, TargetOffset};
use verbatim_core::digest::Digest;
use verbatim_core::failure::{Side, Trouble};

/// What comparing came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared {
    /// Records that both sides have.
    pub records: u64,
    /// Of all target records read; means nothing beside a difference.
    pub digest: Digest,
    pub difference: Option<Difference>,
}

/// How many records at the front of each side have no counterpart on the other, because that side has
/// deleted them by its own rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skip {
    pub source: u64,
    pub target: u64,
}

type Next<O> = Result<Record<O>, Trouble>;

/// Compares until the first difference or the end of both.
pub(super) fn compare(
    source: impl Iterator<Item = Next<SourceOffset>>,
    target: impl Iterator<Item = Next<TargetOffset>>,
    skip: Skip,
) -> Result<Compared, (Side, Trouble)> {
    let mut source = source.map(|next| next.map_err(|trouble| (Side::Source, trouble)));
    let mut target = target.map(|next| next.map_err(|trouble| (Side::Target, trouble)));
    let mut compared = Compared { records: 0, digest: Digest::EMPTY, difference: None };
    for _ in 0..skip.source {
        source.next().transpose()?;
    }
    for _ in 0..skip.target {
        if let Some(record) = target.next().transpose()? {
            compared.digest = compared.digest.push(record.hash());
        }
    }
    loop {
        let (ours, theirs) = (source.next().transpose()?, target.next().transpose()?);
        let difference = match (ours, theirs) {
            (None, None) => return Ok(compared),
            (Some(ours), None) => missing(ours.offset),
            (None, Some(theirs)) => extra(theirs.offset),
            (Some(ours), Some(theirs)) => {
                let hash = ours.hash();
                if hash == theirs.hash() {
                    compared.records += 1;
                    compared.digest = compared.digest.push(hash);
                    continue;
                }
                // One record further tells whether one side has a record too many or this one was altered.
                let (after_ours, after_theirs) = (source.next().transpose()?, target.next().transpose()?);
                if after_ours.is_some_and(|after| after.hash() == theirs.hash()) {
                    missing(ours.offset)
                } else if after_theirs.is_some_and(|after| after.hash() == hash) {
                    extra(theirs.offset)
                } else {
                    altered(&ours, &theirs)
                }
            }
        };
        return Ok(Compared { difference: Some(difference), ..compared });
    }
}

pub(super) fn missing(offset: SourceOffset) -> Difference {
    Difference {
        kind: Kind::Missing,
        source_offset: Some(offset),
        target_offset: None,
        detail: "the target lacks this record".into(),
    }
}

pub(super) fn extra(offset: TargetOffset) -> Difference {
    Difference {
        kind: Kind::Extra,
        source_offset: None,
        target_offset: Some(offset),
        detail: "the source has no such record here".into(),
    }
}

/// What differs between two records that should be one.
fn altered(ours: &Record<SourceOffset>, theirs: &Record<TargetOffset>) -> Difference {
    let bytes = |part: &Option<Vec<u8>>| {
        part.as_ref().map_or("null".into(), |bytes| format!("{} bytes", bytes.len()))
    };
    let parts = |what: &str, ours: &Option<Vec<u8>>, theirs: &Option<Vec<u8>>| {
        let at = ours.iter().flatten().zip(theirs.iter().flatten()).position(|(a, b)| a != b);
        let at = at.map_or(String::new(), |at| format!(", from byte {at} on"));
        format!("the {what} differs: {} at the source, {} at the target{at}", bytes(ours), bytes(theirs))
    };
    let (kind, detail) = if ours.key != theirs.key {
        (Kind::Key, parts("key", &ours.key, &theirs.key))
    } else if ours.value != theirs.value {
        (Kind::Value, parts("value", &ours.value, &theirs.value))
    } else if ours.headers != theirs.headers {
        let counts = (ours.headers.len(), theirs.headers.len());
        (Kind::Headers, format!("the headers differ: {} at the source, {} at the target", counts.0, counts.1))
    } else {
        let times = (ours.timestamp, theirs.timestamp);
        (
            Kind::Timestamp,
            format!("the timestamp differs: {} at the source, {} at the target", times.0, times.1),
        )
    };
    Difference { kind, source_offset: Some(ours.offset), target_offset: Some(theirs.offset), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record<O>(offset: O, value: &str) -> Record<O> {
        Record { offset, key: None, value: Some(value.into()), headers: Vec::new(), timestamp: 5 }
    }

    fn compared(source: &[&str], target: &[&str], skip: Skip) -> Compared {
        let source = source.iter().zip(10..).map(|(value, at)| Ok(record(SourceOffset(at), value)));
        let target = target.iter().zip(70..).map(|(value, at)| Ok(record(TargetOffset(at), value)));
        compare(source, target, skip).unwrap()
    }

    #[track_caller]
    fn differs(source: &[&str], target: &[&str], kind: Kind, source_at: Option<i64>, target_at: Option<i64>) {
        let difference = compared(source, target, Skip::default()).difference.unwrap();
        assert_eq!(
            (difference.kind, difference.source_offset, difference.target_offset),
            (kind, source_at.map(SourceOffset), target_at.map(TargetOffset))
        );
    }

    #[test]
    fn equal_runs_are_equal_and_give_the_target_s_digest() {
        let all = compared(&["a", "b"], &["a", "b"], Skip::default());
        let digest = ["a", "b"].iter().fold(Digest::EMPTY, |d, v| d.push(record(0, v).hash()));
        assert_eq!(all, Compared { records: 2, digest, difference: None });
        assert_eq!(compared(&[], &[], Skip::default()).records, 0);
    }

    #[test]
    fn the_first_difference_is_named() {
        differs(&["a", "b", "c"], &["a", "c"], Kind::Missing, Some(11), None);
        differs(&["a", "b"], &["a"], Kind::Missing, Some(11), None);
        differs(&["a", "b"], &["a", "a", "b"], Kind::Extra, None, Some(71));
        differs(&["a"], &["a", "x"], Kind::Extra, None, Some(71));
        differs(&["a", "b", "c"], &["a", "x", "c"], Kind::Value, Some(11), Some(71));
        // Two records that changed places look like one that is missing.
        differs(&["a", "b", "c"], &["b", "a", "c"], Kind::Missing, Some(10), None);
    }

    #[test]
    fn every_part_of_a_record_counts() {
        let ours = record(SourceOffset(1), "v");
        let theirs = |change: fn(&mut Record<TargetOffset>)| {
            let mut theirs = record(TargetOffset(2), "v");
            change(&mut theirs);
            assert_ne!(ours.hash(), theirs.hash());
            altered(&ours, &theirs)
        };
        assert_eq!(theirs(|r| r.key = Some(Vec::new())).kind, Kind::Key);
        assert_eq!(theirs(|r| r.headers.push((vec![0xff], None))).kind, Kind::Headers);
        assert_eq!(theirs(|r| r.timestamp = -1).kind, Kind::Timestamp);
        let value = theirs(|r| r.value = None);
        assert_eq!(value.detail, "the value differs: 1 bytes at the source, null at the target");
    }

    #[test]
    fn what_one_side_has_deleted_is_skipped_on_the_other() {
        let suffix = compared(&["c", "d"], &["a", "b", "c", "d"], Skip { source: 0, target: 2 });
        assert_eq!((suffix.records, suffix.digest.records, suffix.difference), (2, 4, None));
        let suffix = compared(&["a", "b", "c"], &["c"], Skip { source: 2, target: 0 });
        assert_eq!((suffix.records, suffix.difference), (1, None));
    }
}
