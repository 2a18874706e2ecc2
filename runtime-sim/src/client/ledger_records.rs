use super::fetcher::ReadRecord;
use kafka_types::TargetOffset;
use verbatim_core::LaneId;
use verbatim_core::event::LedgerRecord;

pub(super) fn ledger_record(lane: LaneId, read: &ReadRecord) -> LedgerRecord {
    let owned = |part: &Option<bytes::Bytes>| part.as_deref().unwrap_or_default().to_vec();
    LedgerRecord {
        lane,
        offset: TargetOffset(read.offset),
        key: owned(&read.record.key),
        value: owned(&read.record.value),
    }
}
