use crate::Offset;
use kafka_types::LeaderEpoch;

/// Where each leader's records begin (KIP-101, LeaderEpochFileCache.java). Epochs and offsets only rise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EpochCache {
    entries: Vec<(LeaderEpoch, Offset)>,
}

impl EpochCache {
    /// Notes that the records from `start` on were appended under `epoch`.
    pub fn assign(&mut self, epoch: LeaderEpoch, start: Offset) {
        if let Some(&(latest, latest_start)) = self.entries.last()
            && epoch == latest
            && latest_start <= start
        {
            return;
        }
        self.entries.retain(|&(known, known_start)| known < epoch && known_start < start);
        self.entries.push((epoch, start));
    }

    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|&(epoch, _)| epoch)
    }

    /// The epoch under which the record at `offset` was appended.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|&(_, start)| start <= offset);
        self.entries[..after].last().map(|&(epoch, _)| epoch)
    }

    /// The largest epoch up to the one asked for, and where it ended (KIP-320); none when the cache does not
    /// reach that far.
    pub fn end_offset_for(
        &self,
        asked: LeaderEpoch,
        log_end_offset: Offset,
    ) -> Option<(LeaderEpoch, Offset)> {
        if self.latest() == Some(asked) {
            return Some((asked, log_end_offset));
        }
        let higher = self.entries.partition_point(|&(epoch, _)| epoch <= asked);
        let &(_, end) = self.entries.get(higher)?;
        let floor = self.entries[..higher].last().map_or(asked, |&(epoch, _)| epoch);
        Some((floor, end))
    }

    pub fn truncate_from_end(&mut self, end: Offset) {
        self.entries.retain(|&(_, start)| start < end);
    }

    /// The entry in force at the new log start stays, beginning there.
    pub fn truncate_from_start(&mut self, start: Offset) {
        let passed = self.entries.partition_point(|&(_, known)| known <= start);
        if 0 < passed {
            self.entries.drain(..passed - 1);
            self.entries[0].1 = start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> EpochCache {
        let mut cache = EpochCache::default();
        for (epoch, start) in [(0, 0), (2, 5), (5, 9)] {
            cache.assign(LeaderEpoch(epoch), start);
        }
        cache
    }

    #[test]
    fn end_offsets_by_epoch_kip_320() {
        for (asked, answer) in [
            (0, Some((0, 5))),
            (1, Some((0, 5))),
            (2, Some((2, 9))),
            (4, Some((2, 9))),
            (5, Some((5, 12))),
            (6, None),
        ] {
            let answer = answer.map(|(epoch, end)| (LeaderEpoch(epoch), end));
            assert_eq!(cache().end_offset_for(LeaderEpoch(asked), 12), answer, "epoch {asked}");
        }
        assert_eq!(EpochCache::default().end_offset_for(LeaderEpoch(0), 0), None);
    }

    #[test]
    fn truncation_keeps_the_entry_in_force() {
        let mut cache = cache();
        cache.truncate_from_start(7);
        assert_eq!(cache.end_offset_for(LeaderEpoch(0), 12), Some((LeaderEpoch(0), 7)));
        assert_eq!(cache.epoch_at(7), Some(LeaderEpoch(2)));
        cache.truncate_from_end(9);
        assert_eq!(cache.latest(), Some(LeaderEpoch(2)));
    }

    #[test]
    fn an_epoch_that_wrote_nothing_is_replaced() {
        let mut cache = cache();
        cache.assign(LeaderEpoch(6), 12);
        cache.assign(LeaderEpoch(7), 12);
        assert_eq!(cache.latest(), Some(LeaderEpoch(7)));
        assert_eq!(cache.end_offset_for(LeaderEpoch(6), 20), Some((LeaderEpoch(5), 12)));
    }
}
