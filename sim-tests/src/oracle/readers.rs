//! Those who read the target when all is over: they know nothing of decisions, only of markers.

use super::history::{History, Side, What};
use super::log::Fate;
use super::settlement::{Copy, Place};
use super::shadow::Shadow;
use kafka_model::Offset;
use kafka_types::{Partition, TopicId, TopicName};

pub struct Readers {
    target: Shadow,
    /// Every transaction that has been decided shows by now.
    markers_are_due: bool,
}

impl Readers {
    pub fn of(history: &History, markers_are_due: bool) -> Readers {
        let mut target = Shadow::default();
        for recorded in history.records() {
            match &recorded.what {
                What::Named { side: Side::Target, topic, id } => target.name_topic(topic, *id),
                What::Log { side: Side::Target, id, partition, event } => {
                    target.apply(*id, *partition, event)
                }
                What::Named { .. }
                | What::Log { .. }
                | What::Compacted { .. }
                | What::Decided(_)
                | What::ElectionAhead { .. }
                | What::Forgotten { .. }
                | What::Foreign(_)
                | What::Denied(_) => {}
            }
        }
        Readers { target, markers_are_due }
    }

    /// Whether a record can be read, or could while its topic was there.
    pub fn see(&self, (id, partition, offset): Place) -> bool {
        let held = self.target.log(id, partition).and_then(|log| log.held(offset));
        self.target.is_deleted(id)
            || held.is_some_and(|held| match held.fate {
                Fate::Plain | Fate::Committed => true,
                Fate::Open => !self.markers_are_due,
                Fate::Aborted => false,
            })
    }

    /// All that can be read, by partition.
    pub fn all(&self) -> impl Iterator<Item = (&TopicName, TopicId, Partition, Vec<Copy>)> {
        let present = self.target.logs().filter(|(id, _, _)| !self.target.is_deleted(*id));
        present.filter_map(|(id, partition, log)| {
            let held = (0..log.end()).filter_map(|offset| Some((offset, log.held(offset)?)));
            let seen = held.filter(|(_, held)| matches!(held.fate, Fate::Plain | Fate::Committed));
            let copy = |(offset, held): (Offset, &super::log::Held)| Copy {
                offset,
                producer: held.producer,
                content: held.content.clone(),
            };
            Some((self.target.name(id)?, id, partition, seen.map(copy).collect()))
        })
    }
}
