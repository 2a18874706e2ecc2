//! Nothing of the mirror's holds back readers of the target for longer than a transaction may last.

use crate::oracle::FlowNames;
use crate::oracle::violation::{Invariant, Violation};
use kafka_model::{Cluster, Millis};
use kafka_types::{Partition, SourcePartition, TopicPartition};

/// To be asked once nothing has been open for that long.
pub fn pinned(flow: &FlowNames, now: Millis, target: &Cluster) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (topic, _, partitions) in target.topic_names() {
        for partition in Partition::all(u32::try_from(partitions).unwrap_or(0)) {
            let tp = TopicPartition { topic: topic.clone(), partition };
            let Some(view) = target.partition_view(&tp) else { continue };
            if view.last_stable_offset < view.high_watermark {
                let place = SourcePartition { topic: flow.source_topic(topic), partition };
                let text = format!("{tp} on the target is held back by a transaction that nobody ends");
                let violation = Violation::new(Invariant::NothingPinned, now, text);
                broken.push(violation.in_partition(&place).at_target(view.last_stable_offset));
            }
        }
    }
    broken
}
