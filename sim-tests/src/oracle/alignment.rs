//! How the copies of one settlement fit the source's records that they should be.

use super::content::Content;
use super::log::Fate;
use super::settlement::Copy;
use super::shadow::Shadow;
use kafka_model::Offset;
use kafka_types::{Partition, SourcePartition, TopicId};

/// Why a copy is not the record expected in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// No source record has these bytes; the one expected differs in this.
    Altered { source: Option<Offset>, part: &'static str },
    /// Its transaction was aborted, or had not ended.
    NotCommitted { source: Offset, is_open: bool },
    /// It belongs into another partition.
    Elsewhere { home: SourcePartition, source: Offset },
    /// It is of a topic of the same name that was made before or after.
    OtherTopicId { source: Offset },
    /// It was copied before.
    Repeated { source: Offset },
    /// It comes after one that follows it at the source.
    Misordered { source: Offset },
    /// It lies at or beyond the position that the ledger gives.
    Beyond { source: Offset },
    /// A leader lost it before any reader could see it.
    NeverReadable { source: Offset },
}

/// What should have come: records of one partition between two positions.
pub struct Expected<'a> {
    pub partition: &'a SourcePartition,
    pub topic_id: TopicId,
    pub to: Offset,
    pub records: Vec<(Offset, &'a Content)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alignment {
    pub misfits: Vec<(Offset, Misfit)>,
    /// Source offsets whose records did not come.
    pub missing: Vec<Offset>,
    /// The source offset of the first copy that fits, if any does.
    pub first: Option<Offset>,
}

impl Alignment {
    pub fn is_clean(&self) -> bool {
        self.misfits.is_empty() && self.missing.is_empty()
    }
}

/// Lays `copies` beside what was expected. `may_be_missing` excuses records that compaction took away.
pub fn align(
    source: &Shadow,
    expected: &Expected<'_>,
    copies: &[Copy],
    may_be_missing: impl Fn(Offset) -> bool,
) -> Alignment {
    let wanted = &expected.records;
    let mut alignment =
        Alignment { first: wanted.first().map(|(offset, _)| *offset), ..Alignment::default() };
    let fits = |((_, content), copy): (&(Offset, &Content), &Copy)| content.is_same(&copy.content);
    if wanted.len() == copies.len() && wanted.iter().zip(copies).all(fits) {
        return alignment;
    }
    let mut came = vec![false; wanted.len()];
    let mut last = None;
    alignment.first = None;
    for copy in copies {
        // Two tombstones of a key can be alike: the one that is in order is meant.
        let after = last.map_or(0, |last: usize| last + 1);
        let mut places = (after..wanted.len()).chain(0..after);
        let place = places.find(|it| !came[*it] && wanted[*it].1.is_same(&copy.content));
        match place {
            Some(place) => {
                came[place] = true;
                alignment.first = alignment.first.or(Some(wanted[place].0));
                if last.is_some_and(|last| place < last) {
                    alignment.misfits.push((copy.offset, Misfit::Misordered { source: wanted[place].0 }));
                }
                last = last.max(Some(place));
            }
            None => {
                let next = (0..wanted.len()).filter(|it| !came[*it]);
                let misfit = classify(source, expected, copy, next);
                if let Misfit::Altered { source: Some(offset), .. } = misfit {
                    // The record came, if not as it was.
                    wanted
                        .iter()
                        .zip(&mut came)
                        .filter(|(it, _)| it.0 == offset)
                        .for_each(|(_, came)| *came = true);
                }
                alignment.misfits.push((copy.offset, misfit));
            }
        }
    }
    let absent = wanted.iter().zip(came).filter(|(_, came)| !came).map(|((offset, _), _)| *offset);
    alignment.missing = absent.filter(|offset| !may_be_missing(*offset)).collect();
    alignment
}

fn classify(
    source: &Shadow,
    expected: &Expected<'_>,
    copy: &Copy,
    unmatched: impl Iterator<Item = usize>,
) -> Misfit {
    if let Some(misfit) = classify_at_home(source, expected, copy) {
        return misfit;
    }
    for (id, partition, log) in source.logs() {
        let Some((offset, _)) = log.find(&copy.content).first().copied() else { continue };
        let Some(topic) = source.name(id) else { continue };
        let home = SourcePartition { topic: topic.clone(), partition };
        return if home == *expected.partition {
            Misfit::OtherTopicId { source: offset }
        } else {
            Misfit::Elsewhere { home, source: offset }
        };
    }
    let likeliest = unmatched
        .map(|place| expected.records[place])
        .max_by_key(|(offset, content)| (content.likeness(&copy.content), std::cmp::Reverse(*offset)));
    Misfit::Altered {
        source: likeliest.map(|(offset, _)| offset),
        part: likeliest.and_then(|(_, content)| content.difference(&copy.content)).unwrap_or("everything"),
    }
}

fn classify_at_home(source: &Shadow, expected: &Expected<'_>, copy: &Copy) -> Option<Misfit> {
    let partition: Partition = expected.partition.partition;
    let found = source.log(expected.topic_id, partition)?.find(&copy.content);
    let (committed, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(_, fate)| matches!(fate, Some(Fate::Plain | Fate::Committed)));
    let offsets = || committed.iter().map(|(offset, _)| *offset);
    if let Some(source) = offsets().find(|offset| expected.to <= *offset) {
        return Some(Misfit::Beyond { source });
    }
    if let Some(source) = offsets().next() {
        return Some(Misfit::Repeated { source });
    }
    let (source, fate) = others.into_iter().next()?;
    Some(match fate {
        Some(fate) => Misfit::NotCommitted { source, is_open: fate == Fate::Open },
        None => Misfit::NeverReadable { source },
    })
}
