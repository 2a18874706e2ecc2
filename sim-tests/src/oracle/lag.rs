use super::Oracle;
use kafka_model::{Cluster, Offset};
use kafka_types::{Partition, SourcePartition, TopicPartition};

/// What is left to copy of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    pub partition: SourcePartition,
    /// The position by the last decided entry.
    pub position: Offset,
    /// Where readers of committed records stand at the end.
    pub end: Offset,
    /// Committed records between the two.
    pub records: usize,
}

impl Oracle {
    /// What the mirror still has to do, partitions that stand halted left out.
    pub fn lag(&self, source: &Cluster) -> Vec<Lag> {
        let mut lags = Vec::new();
        for (topic, id, partitions) in source.topic_names() {
            for partition in Partition::all(u32::try_from(partitions).unwrap_or(0)) {
                let place = SourcePartition { topic: topic.clone(), partition };
                let tp = TopicPartition { topic: topic.clone(), partition };
                let Some(view) = source.partition_view(&tp) else { continue };
                let progress = self.standing.partitions.get(&place);
                if progress.is_some_and(|progress| progress.halted.is_some()) {
                    continue;
                }
                let pinned = self.standing.topics.get(topic).and_then(|it| it.starts.get(partition.index()));
                let start = pinned.copied().unwrap_or(0).max(view.log_start_offset.min(0));
                let position = progress.map_or(start, |progress| progress.next);
                let records = self.source.log(id, partition).map_or(0, |log| {
                    log.committed(log.lineage(), position, view.last_stable_offset).records.len()
                });
                // A partition of which nothing was ever written needs no entry.
                if position < view.last_stable_offset && (progress.is_some() || 0 < records) {
                    lags.push(Lag { partition: place, position, end: view.last_stable_offset, records });
                }
            }
        }
        lags
    }
}
