//! A transaction of the mirror that has just been decided to commit: what it brings to the target.

use super::content::Content;
use super::ledger::{LedgerRecord, decode};
use super::log::{Fate, Log};
use super::shadow::Shadow;
use kafka_model::transaction::Decision;
use kafka_model::{Millis, Offset};
use kafka_types::{Partition, ProducerEpoch, ProducerId, TargetPartition, TopicId, TopicPartition};
use std::collections::BTreeMap;

/// A producer of a transaction, by the id and epoch that its batches carry.
pub type Writer = (ProducerId, ProducerEpoch);

#[derive(Clone, Debug)]
pub struct Copy {
    pub offset: Offset,
    /// Who wrote it, as its batch says.
    pub producer: Writer,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub struct Copies {
    pub topic_id: TopicId,
    pub copies: Vec<Copy>,
}

/// A record that the transaction leaves in the ledger.
#[derive(Clone, Debug)]
pub struct Noted {
    pub lane: i32,
    pub offset: Offset,
    pub producer: Writer,
    pub record: Result<LedgerRecord, String>,
}

#[derive(Clone, Debug)]
pub struct Settlement {
    pub at: Millis,
    pub transactional_id: String,
    /// A name can have had several topics, each with records of the transaction: the present one last.
    pub copies: BTreeMap<TargetPartition, Vec<Copies>>,
    pub ledger: Vec<Noted>,
    /// Where the records stand.
    pub places: Vec<Place>,
}

/// Where a record of the target stands.
pub type Place = (TopicId, Partition, Offset);

impl Settlement {
    pub fn of_nobody(at: Millis) -> Settlement {
        Settlement {
            at,
            transactional_id: String::new(),
            copies: BTreeMap::new(),
            ledger: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Takes what the decided transaction holds out of the shadow's open records.
    pub fn take(
        shadow: &mut Shadow,
        at: Millis,
        decision: &Decision,
        ledger_topic: &str,
        is_seen: impl Fn(Place) -> bool,
    ) -> Settlement {
        let mut settlement = Settlement {
            transactional_id: decision.transactional_id.to_string(),
            ..Settlement::of_nobody(at)
        };
        for tp in decision.markers.keys() {
            // A topic that was deleted since holds records of the transaction all the same.
            for id in shadow.ids(&tp.topic) {
                settlement.take_from(shadow, tp, id, decision, ledger_topic, &is_seen);
            }
        }
        settlement
    }

    fn take_from(
        &mut self,
        shadow: &mut Shadow,
        tp: &TopicPartition,
        id: TopicId,
        decision: &Decision,
        ledger_topic: &str,
        is_seen: &impl Fn(Place) -> bool,
    ) {
        let log = shadow.log_mut(id, tp.partition);
        let ended = log.end_transaction(decision.producer_id, decision.result, None);
        let is_seen = |offset: &Offset| is_seen((id, tp.partition, *offset));
        let decided = ended.into_iter().filter(|offset| is_committed(log, *offset)).filter(is_seen);
        let decided: Vec<Offset> = decided.collect();
        self.places.extend(decided.iter().map(|offset| (id, tp.partition, *offset)));
        let decided = decided.into_iter();
        if tp.topic.as_str() == ledger_topic {
            let noted = decided.filter_map(|offset| note(log, tp, offset));
            self.ledger.extend(noted);
            return;
        }
        let copies: Vec<Copy> = decided.filter_map(|offset| copy(log, offset)).collect();
        if !copies.is_empty() {
            let place = TargetPartition { topic: tp.topic.clone(), partition: tp.partition };
            self.copies.entry(place).or_default().push(Copies { topic_id: id, copies });
        }
    }
}

fn is_committed(log: &Log, offset: Offset) -> bool {
    log.held(offset).is_some_and(|held| held.fate == Fate::Committed)
}

fn copy(log: &Log, offset: Offset) -> Option<Copy> {
    let held = log.held(offset)?;
    Some(Copy { offset, producer: held.producer, content: held.content.clone() })
}

fn note(log: &Log, tp: &TopicPartition, offset: Offset) -> Option<Noted> {
    let held = log.held(offset)?;
    let record = decode(held.content.key(), held.content.value());
    Some(Noted { lane: tp.partition.0, offset, producer: held.producer, record })
}
