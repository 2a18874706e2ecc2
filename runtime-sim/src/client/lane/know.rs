//! The first half of `Prepare`: the lane's producer gets to know target partitions (H10).

use super::outbox::{Outbox, Work};
use crate::client::io::Io;
use kafka_model::Millis;
use kafka_types::{ErrorCode, TargetPartition, TopicName};
use std::collections::BTreeMap;
use verbatim_core::Attempt;
use verbatim_core::command::PrepareFrom;
use verbatim_core::failure::{Failure, Trouble};

/// How long a new partition may take to show in the producer's metadata.
const KNOWN_MAX_MS: Millis = 5_000;

/// Partitions that the producer knows now, for `Prepare` to look at; those it does not know have their failure.
pub(super) struct Known {
    pub(super) attempt: Attempt,
    pub(super) targets: BTreeMap<TargetPartition, PrepareFrom>,
    pub(super) unknown: BTreeMap<TargetPartition, Failure>,
}

impl Outbox {
    pub(super) fn prepare(
        &mut self,
        io: &mut Io,
        attempt: Attempt,
        targets: BTreeMap<TargetPartition, PrepareFrom>,
    ) {
        let topics = targets.keys().map(|place| &place.topic);
        let mut seen = BTreeMap::new();
        for topic in topics {
            let metadata = &mut self.producer.library.metadata;
            seen.insert(topic.clone(), metadata.answers(topic));
            if !io.mutants.prepares_unseen {
                metadata.doubt(topic);
            }
        }
        self.work = Work::Knowing { attempt, targets, seen, until: io.now + KNOWN_MAX_MS };
    }

    /// The producer's own metadata must show the partitions (H10), by an answer given after it was asked.
    pub(super) fn knowing(
        &mut self,
        io: &mut Io,
        attempt: Attempt,
        targets: BTreeMap<TargetPartition, PrepareFrom>,
        seen: BTreeMap<TopicName, u64>,
        until: Millis,
    ) -> Option<Known> {
        let metadata = &mut self.producer.library.metadata;
        let is_over = io.is_due(until);
        let (mut unknown, mut waits) = (BTreeMap::new(), false);
        for place in targets.keys() {
            let shown = metadata.partitions(&place.topic);
            let is_answered =
                seen.get(&place.topic).is_some_and(|before| *before < metadata.answers(&place.topic));
            if let Some((ErrorCode::TopicAuthorizationFailed, _)) = metadata.error(&place.topic)
                && is_answered
            {
                let trouble = Trouble::NotAuthorized {
                    resource: format!("Topic {}", place.topic),
                    operation: "Write".into(),
                };
                unknown.insert(place.clone(), Failure::Fatal(trouble));
            } else if !io.mutants.prepares_unseen && (!is_answered || shown <= place.partition.index()) {
                waits = true;
                metadata.doubt(&place.topic);
                let text = format!("only {shown} partitions of {} are known", place.topic);
                unknown.insert(place.clone(), Failure::Retry(text));
            }
        }
        if waits && !is_over {
            self.work = Work::Knowing { attempt, targets, seen, until };
            return None;
        }
        Some(Known { attempt, targets, unknown })
    }
}
