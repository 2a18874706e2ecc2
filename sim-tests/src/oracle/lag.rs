use super::Oracle;
use super::log::{Lineage, Log};
use kafka_model::{Cluster, Offset};
use kafka_types::{Partition, SourcePartition, TopicId, TopicPartition};
use std::collections::BTreeMap;

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
                let progress = self.judge.standing.partitions.get(&place);
                if progress.is_some_and(|progress| progress.halted.is_some()) {
                    continue;
                }
                let position = self.position(&place, id);
                let records = self.judge.source.log(id, partition).map_or(0, |log| {
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

/// Where source partitions end at some moment, by the topic that each belongs to.
pub type Ends = BTreeMap<(SourcePartition, TopicId), End>;

/// Where a log ends, and in which of its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    offset: Offset,
    lineage: Lineage,
}

impl End {
    /// The least that the log has ended at since: what an election cut away might not have been there when somebody
    /// looked where it ends.
    fn least_since(self, log: &Log) -> Offset {
        log.cuts_since(self.lineage).iter().map(|cut| cut.at).fold(self.offset, Offset::min)
    }
}

impl Oracle {
    /// What there is to copy now: what a bounded run that starts later must reach at least.
    pub fn ends(&self, source: &Cluster) -> Ends {
        let mut ends = Ends::new();
        for (topic, id, partitions) in source.topic_names() {
            for partition in Partition::all(u32::try_from(partitions).unwrap_or(0)) {
                let tp = TopicPartition { topic: topic.clone(), partition };
                let Some(view) = source.partition_view(&tp) else { continue };
                let lineage = self.judge.source.log(id, partition).map_or(0, Log::lineage);
                let end = End { offset: view.high_watermark, lineage };
                ends.insert((SourcePartition { topic: topic.clone(), partition }, id), end);
            }
        }
        ends
    }

    /// Where copying stands in a topic. What the ledger says of another of that name says nothing of it.
    fn position(&self, place: &SourcePartition, id: TopicId) -> Offset {
        let progress = self.judge.standing.partitions.get(place).filter(|progress| progress.source_id == id);
        progress.map_or_else(|| self.pinned_start(place, id), |progress| progress.next)
    }

    /// Where the ledger says that copying begins in a partition of which nothing was copied yet: the invariants see to
    /// it that it may.
    fn pinned_start(&self, place: &SourcePartition, id: TopicId) -> Offset {
        let topic = self.judge.standing.topics.get(&place.topic).filter(|topic| topic.source_id == id);
        topic.and_then(|it| it.starts.get(place.partition.index())).map_or(0, |start| start.offset)
    }

    /// A partition that is not copied up to its end, or whose copies readers of the target do not see. For these left out
    /// there is a reason.
    pub fn short_of(
        &self,
        ends: &Ends,
        source: &Cluster,
        target: &Cluster,
        left_out: impl Fn(&SourcePartition) -> bool,
    ) -> Option<String> {
        ends.iter().filter(|((place, _), _)| !left_out(place)).find_map(|((place, id), end)| {
            // A topic that clients may not see is none to them.
            if source.topic_id(&place.topic) != Some(*id) || self.was_denied(&place.topic) {
                return None;
            }
            let progress = self.judge.standing.partitions.get(place);
            let position = self.position(place, *id);
            let log = self.judge.source.log(*id, place.partition)?;
            let end = end.least_since(log);
            let left = log.committed(log.lineage(), position.max(log.start), end).records.len();
            if 0 < left {
                return Some(format!("{place} stands at {position}: {left} records below {end} are left"));
            }
            // A flow that starts at the end has nothing to copy of what was there before.
            if end <= self.pinned_start(place, *id) {
                return None;
            }
            // What an administrator deleted on the target was there before.
            let progress = progress.filter(|it| target.topic_id(&it.target_topic) == Some(it.target_id))?;
            let tp = TopicPartition { topic: progress.target_topic.clone(), partition: place.partition };
            let shown = target.partition_view(&tp)?.last_stable_offset;
            let (_, settled) = *progress.reached.iter().find(|(position, _)| end <= *position)?;
            (shown < settled).then(|| format!("readers of {tp} see {shown} of {settled}"))
        })
    }
}
