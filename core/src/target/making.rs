use crate::event::{TopicConfig, TopicInfo};
use crate::ledger::TopicRecord;
use kafka_types::{Partition, SourcePartition, TopicName};

/// What a round has found out about one source topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Making {
    pub(super) source: TopicInfo,
    pub(super) record: Option<TopicRecord>,
    pub(super) config: TopicConfig,
    pub(super) target: Option<TopicInfo>,
    pub(super) unfit: Option<String>,
    /// The topic has appeared while this instance ran: what is wrong with it must not end the others.
    pub(super) is_new: bool,
}

impl Making {
    pub(super) fn new(source: &TopicInfo, record: Option<&TopicRecord>, is_new: bool) -> Making {
        Making {
            source: source.clone(),
            record: record.cloned(),
            config: TopicConfig::new(),
            target: None,
            unfit: None,
            is_new,
        }
    }

    pub(super) fn partitions(&self, topic: &TopicName) -> impl Iterator<Item = SourcePartition> + use<> {
        let topic = topic.clone();
        Partition::all(self.source.partitions)
            .map(move |partition| SourcePartition { topic: topic.clone(), partition })
    }

    /// The target topic has fewer partitions than the source topic.
    pub(super) fn is_short(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.partitions < self.source.partitions)
    }

    /// The topic has its record; it takes part only to be grown.
    pub(super) fn is_pinned(&self) -> bool {
        let target = self.record.as_ref().and_then(|record| record.target.as_ref());
        target.is_some_and(|pin| pin.unfit.is_none())
    }
}
