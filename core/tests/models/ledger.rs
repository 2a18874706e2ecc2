//! Replaying a ledger beside a map that keeps the last of each key, which is also what compaction leaves.

use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TopicId, TopicName};
use proptest::prelude::*;
use std::collections::BTreeMap;
use verbatim_core::event::LedgerRecord;
use verbatim_core::ledger::{Claim, Entry, FlowStart, LaneLedger, Record, Terms, TopicRecord, TopicTable};
use verbatim_core::time::Timestamp;
use verbatim_core::{Attempt, LaneId};

fn entry(next: i64) -> Entry {
    let start = OffsetAndEpoch { offset: SourceOffset(0), epoch: None };
    let first = Entry::first(start, TopicId(1), "orders".into(), TopicId(2), TargetOffset(0));
    Entry { next: SourceOffset(next), ..first }
}

fn claim(attempt: u64) -> Claim {
    let terms = Terms::new(8, "source", "target", "{topic}".into());
    Claim { incarnation: format!("process-{attempt}"), attempt: Attempt(attempt), terms }
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let topic = || prop::sample::select(vec!["orders", "payments"]);
    let record = prop_oneof![
        (0u64..100).prop_map(|attempt| Record::Claim(claim(attempt))),
        (0i64..100).prop_map(|at| Record::FlowStart(FlowStart { at: Timestamp(at) })),
        (topic(), any::<u128>()).prop_map(|(topic, id)| {
            let record = TopicRecord { source_id: TopicId(id), starts: Vec::new(), target: None };
            Record::Topic(topic.into(), record)
        }),
        (topic(), 0..3, 0i64..100).prop_map(|(topic, partition, next)| {
            Record::Entry(SourcePartition::new(topic, partition), entry(next))
        }),
    ];
    prop::collection::vec(record, 0..30)
}

fn stored(records: &[Record]) -> Vec<LedgerRecord> {
    let numbered = (0..).zip(records);
    let stored = numbered.map(|(offset, record)| {
        let bytes = record.encode();
        LedgerRecord { lane: LaneId(0), offset: TargetOffset(offset), key: bytes.key, value: bytes.value }
    });
    stored.collect()
}

/// What compaction leaves: of each key the last record, where it stood. `from` on is not compacted yet.
fn compacted(records: &[LedgerRecord], from: usize) -> Vec<LedgerRecord> {
    let is_last = |place: usize, record: &LedgerRecord| {
        !records[place + 1..from.max(place + 1)].iter().any(|later| later.key == record.key)
    };
    let kept = records.iter().enumerate().filter(|(place, record)| from <= *place || is_last(*place, record));
    kept.map(|(_, record)| record.clone()).collect()
}

proptest! {
    #[test]
    fn the_last_of_each_key_counts(records in records()) {
        let (mut entries, mut topics) = (BTreeMap::new(), BTreeMap::<TopicName, TopicRecord>::new());
        let (mut claims, mut start) = (Vec::new(), None);
        for record in records.clone() {
            match record {
                Record::Claim(claim) => claims.push(claim),
                Record::FlowStart(at) => start = Some(at),
                Record::Topic(topic, record) => drop(topics.insert(topic, record)),
                Record::Entry(partition, entry) => drop(entries.insert(partition, entry)),
            }
        }
        let ledger = LaneLedger::replay(&stored(&records)).expect("it was just written");
        prop_assert_eq!(ledger.claim.as_ref(), claims.last());
        prop_assert_eq!(ledger.claim_before.as_ref(), claims.iter().rev().nth(1));
        prop_assert_eq!(ledger.flow_start, start);
        prop_assert_eq!(&ledger.topics, &topics);
        prop_assert_eq!(ledger.entries, entries);
        let mut table = TopicTable::default();
        table.apply(&stored(&records)).expect("it was just written");
        for topic in ["orders", "payments"] {
            prop_assert_eq!(table.get(&topic.into()), topics.get(&topic.into()));
        }
    }

    /// However far compaction has come, a replay finds the same progress.
    #[test]
    fn compaction_changes_nothing_that_counts(records in records(), from in 0usize..31) {
        let stored = stored(&records);
        let left = compacted(&stored, from.min(stored.len()));
        let all = LaneLedger::replay(&stored).expect("it was just written");
        let ledger = LaneLedger::replay(&left).expect("it was just written");
        prop_assert_eq!(LaneLedger { claim_before: None, ..ledger }, LaneLedger { claim_before: None, ..all });
    }

    /// What is applied after a commit adds up to what would be read.
    #[test]
    fn a_replay_may_stop_anywhere_and_go_on(records in records(), cut in 0usize..31) {
        let cut = cut.min(records.len());
        let mut ledger = LaneLedger::replay(&stored(&records[..cut])).expect("it was just written");
        records[cut..].iter().for_each(|record| ledger.apply(record.clone()));
        prop_assert_eq!(ledger, LaneLedger::replay(&stored(&records)).expect("it was just written"));
    }

    /// A record that was cut short is refused, not read as something else.
    #[test]
    fn parts_of_a_record_are_refused(records in records(), cut in 0usize..1_000) {
        for mut record in stored(&records) {
            record.value.truncate(cut % record.value.len());
            prop_assert!(verbatim_core::ledger::decode(&record).is_err());
        }
    }
}
