use super::PartitionLog;
use crate::{Millis, Offset, TopicConfig};

impl PartitionLog {
    /// Moves the log start up, never down and never beyond the end. What is read below it from now on is out
    /// of range. Producers stay known (ProducerStateManager.onLogStartOffsetIncremented).
    pub fn advance_start(&mut self, start: Offset) -> bool {
        let start = start.min(self.end_offset);
        if start <= self.start_offset {
            return false;
        }
        self.start_offset = start;
        self.clean_until = self.clean_until.max(start);
        while self.batches.front().is_some_and(|batch| batch.last_offset() < start) {
            self.batches.pop_front();
        }
        self.segments.advance_to(start);
        self.epochs.truncate_from_start(start);
        while self.aborted.front().is_some_and(|aborted| aborted.last_offset < start) {
            self.aborted.pop_front();
        }
        true
    }

    /// Deletes whole segments by age and by size, as far as they are below the high watermark. The active
    /// segment goes too once all of its records are too old (UnifiedLog.deleteOldSegments).
    pub fn apply_retention(&mut self, now: Millis, high_watermark: Offset, config: &TopicConfig) -> bool {
        if !config.cleanup_policy.deletes() {
            return false;
        }
        let mut deleted = false;
        while let Some(start) = self.next_start_by_retention(now, config) {
            if high_watermark < start || !self.advance_start(start) {
                break;
            }
            self.segments.roll(start);
            self.segments.advance_to(start);
            deleted = true;
        }
        deleted
    }

    /// Closes the active segment, so that compaction may reach its records.
    pub fn roll(&mut self) {
        self.segments.roll(self.end_offset);
    }

    fn next_start_by_retention(&self, now: Millis, config: &TopicConfig) -> Option<Offset> {
        let (oldest, next) = self.segments.oldest();
        let is_empty = oldest.size_bytes == 0;
        let too_old =
            config.retention_ms.is_some_and(|limit| limit < now.saturating_sub(oldest.max_timestamp))
                && !is_empty;
        let too_large = config.retention_bytes.is_some_and(|limit| {
            next.is_some() && limit.saturating_add(oldest.size_bytes) <= self.segments.size_bytes()
        });
        (too_old || too_large).then(|| next.unwrap_or(self.end_offset))
    }
}
