//! What must hold of every value: ledger bytes read back, and digests join.

use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TopicId};
use proptest::prelude::*;
use verbatim_core::digest::{Digest, RecordHash, RecordParts};
use verbatim_core::event::LedgerRecord;
use verbatim_core::ledger::{Claim, Entry, FlowStart, Halt, HaltReason, LastRecord, Record, RunOffsets};
use verbatim_core::ledger::{TargetPin, Terms, TopicRecord, decode};
use verbatim_core::time::Timestamp;
use verbatim_core::{Attempt, LaneId};

type Parts = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>, i64);

fn parts() -> impl Strategy<Value = Parts> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..4);
    let headers = prop::collection::vec((bytes(), prop::option::of(bytes())), 0..3);
    (prop::option::of(bytes()), prop::option::of(bytes()), headers, any::<i64>())
}

fn hash((key, value, headers, timestamp): &Parts) -> RecordHash {
    RecordHash::of(RecordParts {
        key: key.as_deref(),
        value: value.as_deref(),
        headers: headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref())),
        timestamp: *timestamp,
    })
}

fn digest(records: &[Parts]) -> Digest {
    records.iter().fold(Digest::EMPTY, |digest, record| digest.push(hash(record)))
}

fn entries() -> impl Strategy<Value = (SourcePartition, Entry)> {
    let place = ("[a-zA-Z0-9._-]{1,30}", 0..i32::MAX);
    let offsets = (any::<i64>(), any::<i64>(), any::<i64>(), prop::option::of(any::<i64>()));
    let ids = (any::<u128>(), any::<u128>(), prop::option::of(any::<i32>()));
    let run = prop::option::of((any::<i64>(), any::<i64>(), any::<i64>()));
    let halt = prop::option::of((".*", prop::option::of(any::<i64>())));
    let records = prop::collection::vec(parts(), 0..5);
    (place, offsets, ids, run, halt, records, any::<u64>()).prop_map(
        |(
            (topic, partition),
            (next, start, target_start, end),
            (source, target, epoch),
            run,
            halt,
            records,
            bytes,
        )| {
            let digest = digest(&records);
            let entry = Entry {
                next: SourceOffset(next),
                last: epoch.map(|epoch| LastRecord { next: SourceOffset(start), epoch: LeaderEpoch(epoch) }),
                start: SourceOffset(start),
                source_id: TopicId(source),
                target_topic: topic.as_str().into(),
                target_id: TopicId(target),
                target_start: TargetOffset(target_start),
                run: run.map(|(source, first, last)| RunOffsets {
                    source_first: SourceOffset(source),
                    target_first: TargetOffset(first),
                    target_last: TargetOffset(last),
                }),
                target_end: end.map(TargetOffset),
                records: digest.records,
                bytes,
                digest,
                timestamp: end.map(Timestamp),
                settled_at: Timestamp(next),
                halted: halt.map(|(detail, offset)| Halt {
                    reason: HaltReason::Gap,
                    offset: offset.map(SourceOffset),
                    detail,
                    at: Timestamp(start),
                }),
            };
            (SourcePartition::new(topic.as_str(), partition), entry)
        },
    )
}

fn reads_back(record: Record) -> Result<(), TestCaseError> {
    let bytes = record.encode();
    let stored =
        LedgerRecord { lane: LaneId(0), offset: TargetOffset(1), key: bytes.key, value: bytes.value };
    prop_assert_eq!(decode(&stored), Ok(record));
    Ok(())
}

proptest! {
    #[test]
    fn every_entry_reads_back((partition, entry) in entries()) {
        reads_back(Record::Entry(partition, entry))?;
    }

    #[test]
    fn every_claim_and_start_reads_back(
        name in ".*", rename in ".*", attempt: u64, lanes: u32, source in ".*", at: i64,
    ) {
        let terms = Terms::new(lanes, &source, "target", rename);
        reads_back(Record::Claim(Claim { incarnation: name, attempt: Attempt(attempt), terms }))?;
        reads_back(Record::FlowStart(FlowStart { at: Timestamp(at) }))?;
    }

    #[test]
    fn every_topic_record_reads_back(
        topic in "[a-z.]{1,20}", source: u128, id: u128, starts: Vec<(i64, Option<i32>)>, ends: Vec<i64>,
        unfit in prop::option::of(".*"), pinned: bool,
    ) {
        let pin = TargetPin {
            topic: topic.as_str().into(),
            id: TopicId(id),
            ends: ends.into_iter().map(TargetOffset).collect(),
            unfit,
        };
        let record = TopicRecord {
            source_id: TopicId(source),
            starts: starts.into_iter().map(|(offset, epoch)| OffsetAndEpoch { offset: SourceOffset(offset), epoch: epoch.map(LeaderEpoch) }).collect(),
            target: pinned.then_some(pin),
        };
        reads_back(Record::Topic(topic.as_str().into(), record))?;
    }

    /// Any bytes in the ledger are read or refused, never a panic.
    #[test]
    fn foreign_bytes_never_panic(key: Vec<u8>, value: Vec<u8>) {
        let _ = decode(&LedgerRecord { lane: LaneId(0), offset: TargetOffset(0), key, value });
    }

    #[test]
    fn digests_join_wherever_a_run_is_cut(
        records in prop::collection::vec(parts(), 0..12), cuts in prop::collection::vec(0usize..12, 0..4),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(records.len())).collect();
        cuts.extend([0, records.len()]);
        cuts.sort_unstable();
        let joined = cuts.windows(2).fold(Digest::EMPTY, |all, cut| all.join(digest(&records[cut[0]..cut[1]])));
        prop_assert_eq!(joined, digest(&records));
    }

    #[test]
    fn digests_see_every_change(
        records in prop::collection::vec(parts(), 1..8), other in parts(), at in 0usize..8,
    ) {
        let mut changed = records.clone();
        let at = at % records.len();
        changed[at] = other.clone();
        prop_assert_eq!(digest(&changed) == digest(&records), records[at] == other);
        changed.remove(at);
        prop_assert_ne!(digest(&changed), digest(&records));
    }
}
