use crate::LeaderEpoch;
use bytes::Bytes;
use std::sync::Arc;

/// The id that a broker gave to an idempotent or transactional producer (KIP-98). Minus one for none.
pub type ProducerId = i64;

/// Rises each time a producer id is taken over or recovers, which fences whoever still uses the old one.
pub type ProducerEpoch = i16;

pub const NO_PRODUCER_ID: ProducerId = -1;
pub const NO_PRODUCER_EPOCH: ProducerEpoch = -1;
pub const NO_SEQUENCE: i32 = -1;
pub const NO_TIMESTAMP: i64 = -1;

/// The name may be any bytes, and may repeat; the value may be absent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Header {
    pub name: Bytes,
    pub value: Option<Bytes>,
}

/// One record as a batch holds it. Cloning it copies no bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Added to the batch's base offset. Compaction leaves holes between the deltas of a batch.
    pub offset_delta: i32,
    /// Milliseconds since the Unix epoch as the producer gave them, minus one for none. What a reader sees
    /// is [`RecordBatch::timestamp_of`].
    pub timestamp: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Arc<[Header]>,
}

impl Record {
    /// A record without headers, the first of its batch until the batch numbers it.
    pub fn new(timestamp: i64, key: Option<Bytes>, value: Option<Bytes>) -> Record {
        Record { offset_delta: 0, timestamp, key, value, headers: Arc::default() }
    }

    /// Bytes that the record takes in a batch without compression (record format 2, KIP-98).
    pub fn size_bytes(&self, base_timestamp: i64) -> usize {
        let optional = |bytes: &Option<Bytes>| match bytes {
            Some(bytes) => varint_size(bytes.len() as i64) + bytes.len(),
            None => 1,
        };
        let headers: usize = self
            .headers
            .iter()
            .map(|header| varint_size(header.name.len() as i64) + header.name.len() + optional(&header.value))
            .sum();
        let body = 1
            + varint_size(self.timestamp.wrapping_sub(base_timestamp))
            + varint_size(i64::from(self.offset_delta))
            + optional(&self.key)
            + optional(&self.value)
            + varint_size(self.headers.len() as i64)
            + headers;
        varint_size(body as i64) + body
    }
}

/// How many bytes Kafka's zigzag variable-length integer takes.
fn varint_size(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    let bits = 64 - (zigzag | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimestampType {
    #[default]
    CreateTime,
    /// The broker's clock at the append counts for every record of the batch.
    LogAppendTime,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionResult {
    Commit,
    Abort,
}

/// The one record of a control batch: it ends the producer's transaction in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndMarker {
    pub result: TransactionResult,
    /// Markers of an older coordinator are refused.
    pub coordinator_epoch: i32,
}

/// Records under one header, the unit in which logs keep and brokers move them (record format 2, KIP-98).
///
/// It is never changed once appended, except by compaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordBatch {
    /// Given by the leader at the append; a producer sends zero.
    pub base_offset: i64,
    /// Given by the leader at the append; absent until then.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The last offset less the base offset; it stays when compaction removes the record itself.
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// The first record's sequence number, minus one for a producer without an id.
    pub base_sequence: i32,
    pub is_transactional: bool,
    /// Present in control batches, whose `records` are empty.
    pub marker: Option<EndMarker>,
    pub timestamp_type: TimestampType,
    pub compression: Compression,
    /// When compaction may drop the tombstones or the marker of this batch (KAFKA-8522).
    pub delete_horizon: Option<i64>,
    /// The whole batch on the wire, its 61 bytes of header included and compression taken into account.
    pub size_bytes: usize,
    pub records: Arc<[Record]>,
    /// The records section as the producer encoded it, where somebody wants it kept as it was sent.
    /// Compaction drops it when it removes a record.
    pub encoded: Option<Bytes>,
}

/// The length of a batch's header on the wire.
pub const BATCH_HEADER_BYTES: usize = 61;

impl RecordBatch {
    /// A batch of plain records, numbered in the order given.
    pub fn new(mut records: Vec<Record>) -> RecordBatch {
        let base_timestamp = records.first().map_or(NO_TIMESTAMP, |record| record.timestamp);
        let max_timestamp = records.iter().map(|record| record.timestamp).max().unwrap_or(NO_TIMESTAMP);
        let mut size_bytes = BATCH_HEADER_BYTES;
        for (delta, record) in (0..).zip(&mut records) {
            record.offset_delta = delta;
            size_bytes += record.size_bytes(base_timestamp);
        }
        RecordBatch {
            base_offset: 0,
            leader_epoch: None,
            last_offset_delta: i32::try_from(records.len()).map_or(i32::MAX, |count| (count - 1).max(0)),
            base_timestamp,
            max_timestamp,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            is_transactional: false,
            marker: None,
            timestamp_type: TimestampType::CreateTime,
            compression: Compression::None,
            delete_horizon: None,
            size_bytes,
            records: records.into(),
            encoded: None,
        }
    }

    /// The same batch from an idempotent producer.
    #[must_use]
    pub fn from_producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> RecordBatch {
        self.producer_id = id;
        self.producer_epoch = epoch;
        self.base_sequence = base_sequence;
        self
    }

    /// The same batch as part of its producer's transaction.
    #[must_use]
    pub fn transactional(mut self) -> RecordBatch {
        self.is_transactional = true;
        self
    }

    /// The control batch that ends a transaction, 78 bytes on the wire.
    pub fn end_marker(
        id: ProducerId,
        epoch: ProducerEpoch,
        marker: EndMarker,
        timestamp: i64,
    ) -> RecordBatch {
        RecordBatch {
            last_offset_delta: 0,
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            is_transactional: true,
            marker: Some(marker),
            size_bytes: 78,
            ..RecordBatch::new(Vec::new()).from_producer(id, epoch, NO_SEQUENCE)
        }
    }

    #[inline]
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The offset after the batch's last one.
    #[inline]
    pub fn next_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    #[inline]
    pub fn is_control(&self) -> bool {
        self.marker.is_some()
    }

    /// Whether there are bytes for records, and nobody can make out any.
    #[inline]
    pub fn is_damaged(&self) -> bool {
        self.records.is_empty() && self.encoded.is_some() && !self.is_control()
    }

    #[inline]
    pub fn has_producer_id(&self) -> bool {
        self.producer_id != NO_PRODUCER_ID
    }

    /// The last record's sequence number. After 2,147,483,647 comes 0.
    #[inline]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == NO_SEQUENCE {
            return NO_SEQUENCE;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        i32::try_from(last % (i64::from(i32::MAX) + 1)).unwrap_or(NO_SEQUENCE)
    }

    #[inline]
    pub fn offset_of(&self, record: &Record) -> i64 {
        self.base_offset + i64::from(record.offset_delta)
    }

    /// The timestamp that a reader sees.
    #[inline]
    pub fn timestamp_of(&self, record: &Record) -> i64 {
        match self.timestamp_type {
            TimestampType::CreateTime => record.timestamp,
            TimestampType::LogAppendTime => self.max_timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_variable_length_integers() {
        for (value, size) in
            [(0, 1), (-1, 1), (63, 1), (-64, 1), (64, 2), (8191, 2), (8192, 3), (i64::MIN, 10)]
        {
            assert_eq!(varint_size(value), size, "{value}");
        }
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let batch =
            |base, count| RecordBatch::new(vec![Record::new(0, None, None); count]).from_producer(1, 0, base);
        assert_eq!(batch(0, 3).last_sequence(), 2);
        assert_eq!(batch(i32::MAX, 1).last_sequence(), i32::MAX);
        assert_eq!(batch(i32::MAX, 2).last_sequence(), 0);
        assert_eq!(batch(i32::MAX - 1, 4).last_sequence(), 1);
    }
}
