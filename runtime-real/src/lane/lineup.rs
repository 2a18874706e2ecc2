//! Batches in line for the client, partition by partition.
//!
//! An idempotent producer has one request of a partition in flight, whatever may be set. Much more than the next few
//! are of no use to the client, so it is given a few loads of about a request each, and what comes meanwhile gathers
//! here to fill the next. Records that have lingered for their time and cannot be sent yet make its broker thread poll
//! without a pause until an answer comes (docs/librdkafka.md), so they linger for long, and it is told when not to wait.

use kafka_types::TargetPartition;
use std::collections::{BTreeMap, VecDeque};
use verbatim_core::batch::BatchId;

/// Of one partition, in the client's hands: one under way, and enough behind it for the next full request.
const LOADS_MAX: usize = 4;
/// Together with what the client adds to each record, less than its `batch.size`.
const LOAD_BYTES_MAX: u64 = 950_000;
const RECORD_OVERHEAD: u64 = 32;
/// With this much of a partition, however it stands, there is a full request behind the one under way.
const SENT_BYTES_MIN: u64 = 2 * 1_000_000;

/// A. Batches of a partition leave in the order in which they came.
/// B. A load is in the client's hands until its last batch has landed.
/// C. Something waits only behind something in the client's hands, whose landing lets it go on.
#[derive(Debug)]
pub(super) struct Lineup<W> {
    lines: BTreeMap<TargetPartition, Line<W>>,
    /// Where each batch in the client's hands belongs: its partition, and the number of its load.
    given: BTreeMap<BatchId, (TargetPartition, u64)>,
    last_load: u64,
}

#[derive(Debug)]
struct Line<W> {
    /// The loads in the client's hands.
    loads: BTreeMap<u64, Load>,
    waiting: VecDeque<(BatchId, u64, W)>,
}

#[derive(Debug)]
struct Load {
    /// Batches that have not landed.
    batches: usize,
    bytes: u64,
}

impl<W> Default for Lineup<W> {
    fn default() -> Lineup<W> {
        Lineup { lines: BTreeMap::new(), given: BTreeMap::new(), last_load: 0 }
    }
}

impl<W> Lineup<W> {
    pub(super) fn push(
        &mut self,
        batch: BatchId,
        target: TargetPartition,
        (records, bytes): (usize, u64),
        what: W,
    ) {
        let new = || Line { loads: BTreeMap::new(), waiting: VecDeque::new() };
        let weight = bytes + records as u64 * RECORD_OVERHEAD;
        self.lines.entry(target).or_insert_with(new).waiting.push_back((batch, weight, what));
    }

    /// The next load that may go to the client, and goes there: what has gathered of a partition, up to a request.
    pub(super) fn next(&mut self) -> Option<(TargetPartition, Vec<(BatchId, W)>)> {
        let may_leave = |line: &Line<W>| line.loads.len() < LOADS_MAX && !line.waiting.is_empty();
        let (target, line) = self.lines.iter_mut().find(|(_, line)| may_leave(line))?;
        self.last_load += 1;
        let (mut load, mut weight) = (Vec::new(), 0);
        while let Some((_, more, _)) = line.waiting.front()
            && (load.is_empty() || weight + more <= LOAD_BYTES_MAX)
        {
            let (batch, more, what) = line.waiting.pop_front()?;
            weight += more;
            self.given.insert(batch, (target.clone(), self.last_load));
            load.push((batch, what));
        }
        line.loads.insert(self.last_load, Load { batches: load.len(), bytes: weight });
        Some((target.clone(), load))
    }

    /// The client is done with a batch, for better or worse.
    pub(super) fn landed(&mut self, batch: BatchId) {
        let Some((target, load)) = self.given.remove(&batch) else { return };
        let Some(line) = self.lines.get_mut(&target) else { return };
        if let Some(left) = line.loads.get_mut(&load) {
            left.batches -= 1;
            if left.batches == 0 {
                line.loads.remove(&load);
            }
        }
        if line.loads.is_empty() && line.waiting.is_empty() {
            self.lines.remove(&target);
        }
    }

    /// Whether what the client has of a partition may be less than it sends of itself: a request that is under way, and
    /// behind it not yet enough for another.
    pub(super) fn lingers(&self) -> bool {
        let in_hand = |line: &Line<W>| line.loads.values().map(|load| load.bytes).sum::<u64>();
        self.lines.values().any(|line| !line.loads.is_empty() && in_hand(line) < SENT_BYTES_MIN)
    }

    /// The first batch that still waits.
    pub(super) fn waiting(&self) -> Option<BatchId> {
        self.lines.values().find_map(|line| line.waiting.front().map(|(batch, ..)| *batch))
    }

    /// Forgets all, given and waiting.
    pub(super) fn clear(&mut self) {
        *self = Lineup { last_load: self.last_load, ..Lineup::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_types::Partition;

    const FULL: u64 = LOAD_BYTES_MAX - RECORD_OVERHEAD;

    fn target(partition: i32) -> TargetPartition {
        TargetPartition { topic: "orders".into(), partition: Partition(partition) }
    }

    /// Lines up batches given as (id, partition, bytes).
    fn lineup(batches: &[(u64, i32, u64)]) -> Lineup<()> {
        let mut lineup = Lineup::default();
        for &(batch, partition, bytes) in batches {
            lineup.push(BatchId(batch), target(partition), (1, bytes), ());
        }
        lineup
    }

    /// Loads that may leave now.
    fn leave(lineup: &mut Lineup<()>) -> Vec<Vec<u64>> {
        let ids = |load: Vec<(BatchId, ())>| load.into_iter().map(|(batch, ())| batch.0).collect();
        std::iter::from_fn(|| lineup.next()).map(|(_, load)| ids(load)).collect()
    }

    #[test]
    fn what_gathers_leaves_together_up_to_a_request() {
        let mut lineup = lineup(&[(1, 0, 100), (2, 0, 100), (3, 1, 100), (4, 0, FULL - 1), (5, 0, 100)]);
        assert_eq!(leave(&mut lineup), [vec![1, 2], vec![4], vec![5], vec![3]]);
        assert_eq!(lineup.waiting(), None);
    }

    #[test]
    fn a_partition_waits_for_its_own_only() {
        let mut batches: Vec<_> = (1..=6).map(|batch| (batch, 0, FULL)).collect();
        batches.push((7, 1, FULL));
        let mut lineup = lineup(&batches);
        assert_eq!(leave(&mut lineup), [[1], [2], [3], [4], [7]]);
        assert_eq!(lineup.waiting(), Some(BatchId(5)));
        lineup.landed(BatchId(7));
        assert_eq!(leave(&mut lineup), [] as [Vec<u64>; 0]);
        lineup.landed(BatchId(2));
        assert_eq!(leave(&mut lineup), [[5]]);
        lineup.landed(BatchId(1));
        assert_eq!(leave(&mut lineup), [[6]]);
    }

    #[test]
    fn a_load_is_given_until_its_last_batch_has_landed() {
        let mut lineup =
            lineup(&[(1, 0, 5), (2, 0, 5), (3, 0, FULL), (4, 0, FULL), (5, 0, FULL), (6, 0, FULL)]);
        assert_eq!(leave(&mut lineup), [vec![1, 2], vec![3], vec![4], vec![5]]);
        lineup.landed(BatchId(1));
        assert_eq!(leave(&mut lineup), [] as [Vec<u64>; 0]);
        lineup.landed(BatchId(2));
        assert_eq!(leave(&mut lineup), [[6]]);
    }

    #[test]
    fn one_that_is_too_large_goes_alone() {
        let mut lineup = lineup(&[(1, 0, 10 * FULL), (2, 0, 0)]);
        assert_eq!(leave(&mut lineup), [[1], [2]]);
    }

    #[test]
    fn what_has_landed_or_was_dropped_leaves_nothing_behind() {
        let mut lineup = lineup(&[(1, 0, 0), (2, 0, 5)]);
        leave(&mut lineup);
        for batch in [1, 2, 2] {
            lineup.landed(BatchId(batch));
        }
        assert!(lineup.lines.is_empty() && lineup.given.is_empty());
        lineup.push(BatchId(3), target(0), (1, 5), ());
        lineup.clear();
        assert_eq!(leave(&mut lineup), [] as [Vec<u64>; 0]);
    }
}
