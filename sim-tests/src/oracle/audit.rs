//! The whole question again when all is over: the recorded history, judged from its beginning by a judge who knows
//! nothing yet, with what readers of the target see taken for what was committed.
//!
//! The online judge believes each decision as it falls; a decision whose markers never came, or came to only some
//! partitions, or a record that appeared outside any of the mirror's transactions, shows only here.

use super::invariants::ledger_true::{self, LastWords};
use super::judge::Judge;
use super::ledger::{LedgerRecord, decode};
use super::readers::Readers;
use super::settlement::{Copies, Copy, Noted, Settlement};
use super::{Oracle, Violation};
use kafka_model::Millis;
use kafka_types::{Partition, SourcePartition, TargetPartition};

/// How a run has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Nothing has been open for longer than a transaction may last.
    AtRest,
    /// Given up: what is decided may show later.
    Unhealed,
}

impl Oracle {
    /// Compares the two clusters as readers see them at the end.
    pub fn audit(&mut self, now: Millis, over: Over) {
        let readers = Readers::of(&self.history, over == Over::AtRest);
        let mut judge = Judge::new(self.judge.flow.clone(), Some(readers));
        self.history.records().iter().for_each(|recorded| judge.take(recorded));
        settle_the_rest(&mut judge, now);
        if over == Over::AtRest {
            let broken = ledger_true::check_last_words(&judge.standing, &last_words(&judge), now);
            broken.into_iter().for_each(|it| judge.tell(it));
        }
        let in_the_end = |it: Violation| Violation { text: format!("in the end: {}", it.text), ..it };
        let mut broken = judge.take_broken();
        broken.sort_by_key(|violation| violation.invariant);
        self.violations.extend(broken.into_iter().map(in_the_end));
    }
}

/// What readers see and no decision brought is judged as a settlement of nobody.
fn settle_the_rest(judge: &mut Judge, now: Millis) {
    let Some(readers) = judge.readers() else { return };
    let mut rest = Settlement::of_nobody(now);
    for (topic, id, partition, mut copies) in readers.all() {
        let is_known = |place| judge.is_settled(place) || judge.foreign.contains(&place);
        copies.retain(|copy| !is_known((id, partition, copy.offset)));
        if topic.as_str() == judge.flow.ledger {
            rest.ledger.extend(copies.iter().map(|copy| noted(partition.0, copy)));
            continue;
        }
        // What stood there before the flow's first record is none of its own.
        let place = SourcePartition { topic: judge.flow.source_topic(topic), partition };
        let progress = judge.standing.partitions.get(&place).filter(|progress| progress.target_id == id);
        let own_from = progress.map_or(0, |progress| progress.target_start);
        copies.retain(|copy| own_from <= copy.offset);
        if !copies.is_empty() {
            let target = TargetPartition { topic: topic.clone(), partition };
            rest.copies.entry(target).or_default().push(Copies { topic_id: id, copies });
        }
    }
    if !rest.copies.is_empty() || !rest.ledger.is_empty() {
        judge.settle(&rest);
    }
}

fn noted(lane: i32, copy: &Copy) -> Noted {
    let record = decode(copy.content.key(), copy.content.value());
    Noted { lane, offset: copy.offset, producer: copy.producer, record }
}

/// The last entries that readers of the ledger find.
fn last_words(judge: &Judge) -> LastWords {
    let mut last = LastWords::new();
    let Some(readers) = judge.readers() else { return last };
    for (_, _, _, copies) in readers.all().filter(|(topic, ..)| topic.as_str() == judge.flow.ledger) {
        for copy in copies {
            if let Ok(LedgerRecord::Entry(topic, partition, entry)) =
                decode(copy.content.key(), copy.content.value())
            {
                last.insert(SourcePartition { topic, partition: Partition(partition) }, *entry);
            }
        }
    }
    last
}
