//! How two sequences of records differ: what was lost, what is there too often, what is foreign, what moved.
//! Pure logic over digests; `checker` brings the records.

use std::collections::HashMap;

/// What stands for a record: equal digests, equal records.
pub type Digest = u128;

/// The verdict over one partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences {
    pub source_records: usize,
    pub target_records: usize,
    /// In the source more often than in the target.
    pub lost: usize,
    /// In the target more often than in the source, where it does occur.
    pub duplicated: usize,
    /// In the target and nowhere in the source: foreign, or changed on the way.
    pub foreign: usize,
    /// Those that come before the record they should follow, lost and surplus ones left aside.
    pub reordered: usize,
    /// The first place, counted in records from the beginning, where the two sequences disagree.
    pub first: Option<usize>,
}

impl Differences {
    pub fn is_equal(&self) -> bool {
        self.first.is_none()
    }
}

/// Compares what a partition of the target holds with what it should hold.
pub fn compare(source: &[Digest], target: &[Digest]) -> Differences {
    let mut differences = Differences {
        source_records: source.len(),
        target_records: target.len(),
        first: first_difference(source, target),
        ..Differences::default()
    };
    if differences.is_equal() {
        return differences;
    }
    let mut places: HashMap<Digest, Vec<usize>> = HashMap::new();
    for (place, digest) in source.iter().enumerate() {
        places.entry(*digest).or_default().push(place);
    }
    // Equal records are told apart by their turn: the n-th in the target is the n-th of the source.
    let mut turns: HashMap<Digest, usize> = HashMap::new();
    let mut matched = Vec::with_capacity(target.len());
    for digest in target {
        let Some(candidates) = places.get(digest) else {
            differences.foreign += 1;
            continue;
        };
        let turn = turns.entry(*digest).or_default();
        match candidates.get(*turn) {
            Some(place) => matched.push(*place),
            None => differences.duplicated += 1,
        }
        *turn += 1;
    }
    differences.lost = source.len() - matched.len();
    differences.reordered = matched.len() - longest_increasing(&matched);
    differences
}

fn first_difference(source: &[Digest], target: &[Digest]) -> Option<usize> {
    let common = source.iter().zip(target).position(|(one, other)| one != other);
    let shorter = source.len().min(target.len());
    common.or_else(|| (source.len() != target.len()).then_some(shorter))
}

/// The length of the longest part, not necessarily together, that is in order: what is outside it moved.
fn longest_increasing(places: &[usize]) -> usize {
    // tails[n] is the smallest place that ends an increasing part of length n + 1.
    let mut tails: Vec<usize> = Vec::new();
    for place in places {
        let length = tails.partition_point(|tail| tail < place);
        match tails.get_mut(length) {
            Some(tail) => *tail = *place,
            None => tails.push(*place),
        }
    }
    tails.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &[Digest], target: &[Digest], expected: [usize; 4], first: Option<usize>) {
        let found = compare(source, target);
        assert_eq!([found.lost, found.duplicated, found.foreign, found.reordered], expected);
        assert_eq!(found.first, first);
    }

    #[test]
    fn equal() {
        check(&[], &[], [0; 4], None);
        check(&[1, 2, 2, 3], &[1, 2, 2, 3], [0; 4], None);
    }

    #[test]
    fn lost() {
        check(&[1, 2, 3], &[1, 3], [1, 0, 0, 0], Some(1));
        check(&[1, 2, 3], &[1, 2], [1, 0, 0, 0], Some(2));
        check(&[1, 2, 2], &[1, 2], [1, 0, 0, 0], Some(2));
    }

    #[test]
    fn duplicated() {
        check(&[1, 2, 3], &[1, 2, 2, 3], [0, 1, 0, 0], Some(2));
        check(&[1, 2, 3], &[1, 2, 3, 1, 2], [0, 2, 0, 0], Some(3));
    }

    #[test]
    fn foreign_and_changed() {
        check(&[1, 2], &[1, 2, 9], [0, 0, 1, 0], Some(2));
        check(&[1, 2, 3], &[1, 9, 3], [1, 0, 1, 0], Some(1));
    }

    #[test]
    fn reordered() {
        check(&[1, 2, 3, 4], &[1, 3, 2, 4], [0, 0, 0, 1], Some(1));
        check(&[1, 2, 3, 4], &[4, 1, 2, 3], [0, 0, 0, 1], Some(0));
    }
}
