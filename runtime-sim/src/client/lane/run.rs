//! Cutting what a lane reads into batches: runs of records of one partition.

use crate::client::fetcher::ReadRecord;
use kafka_types::{LeaderEpoch, SourceOffset, SourcePartition};
use verbatim_core::batch::{Batch, BatchId};
use verbatim_core::digest::{Digest, RecordHash, RecordParts};
use verbatim_core::time::Timestamp;

/// What the core must know of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) bytes: u64,
    hash: RecordHash,
    epoch: Option<LeaderEpoch>,
}

/// Where a batch is cut, if the burst it came in does not end before.
const RECORDS_MAX: usize = 1_000;
const BYTES_MAX: u64 = 1 << 20;

/// The facts of a record, or why it cannot be sent as it is.
pub(super) fn facts_of(read: &ReadRecord) -> Result<Facts, String> {
    if read.timestamp == 0 {
        return Err("its timestamp is 0, which the client library would replace by the present time".into());
    }
    let record = &read.record;
    let (key, value) = (record.key.as_deref(), record.value.as_deref());
    let headers = record.headers.iter().map(|header| (&*header.name, header.value.as_deref()));
    let header_bytes: usize =
        headers.clone().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len)).sum();
    let length = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    let hash = RecordHash::of(RecordParts { key, value, headers, timestamp: read.timestamp });
    Ok(Facts { bytes: (length(key) + length(value) + header_bytes) as u64, hash, epoch: read.epoch })
}

pub(super) struct Run {
    pub(super) records: Vec<ReadRecord>,
    epoch: Option<LeaderEpoch>,
    bytes: u64,
    digest: Digest,
}

impl Run {
    pub(super) fn begin(record: ReadRecord, facts: Facts) -> Run {
        let digest = Digest::EMPTY.push(facts.hash);
        Run { records: vec![record], epoch: facts.epoch, bytes: facts.bytes, digest }
    }

    pub(super) fn push(&mut self, record: ReadRecord, facts: Facts) {
        self.records.push(record);
        self.epoch = facts.epoch;
        self.bytes += facts.bytes;
        self.digest = self.digest.push(facts.hash);
    }

    pub(super) fn has_room_for(&self, bytes: u64, records_max: usize) -> bool {
        self.records.len() < RECORDS_MAX.min(records_max) && self.bytes + bytes <= BYTES_MAX
    }

    pub(super) fn ticket(&self, id: BatchId, partition: SourcePartition) -> Batch {
        let first = self.records.first().map_or(0, |record| record.offset);
        let (last, timestamp) = self.records.last().map_or((0, -1), |it| (it.offset, it.timestamp));
        Batch {
            id,
            partition,
            first: SourceOffset(first),
            next: SourceOffset(last).next(),
            epoch: self.epoch,
            records: self.records.len() as u64,
            bytes: self.bytes,
            digest: self.digest,
            timestamp: Timestamp(timestamp),
        }
    }
}
