//! Record batches (format 2) written and read byte by byte, for what librdkafka cannot send or show: a timestamp
//! of 0, a header name with a NUL in it, the exact delta fields. Uncompressed batches only.

use anyhow::{Context, Result, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{FetchRequest, ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::headers::RawHeader;
use crate::wire;
use crate::workload::Record;

const CONTROL_BIT: i16 = 0x20;
const LOG_APPEND_TIME_BIT: i16 = 0x08;
const COMPRESSION_BITS: i16 = 0x07;
/// Bytes before the part that the checksum covers: offset, length, leader epoch, magic, checksum.
const CHECKED_FROM: usize = 21;
const HEADER_BYTES: usize = 61;

/// A record as it lies in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRecord {
    pub offset: i64,
    /// As stored; -1 when the producer gave none.
    pub timestamp: i64,
    pub log_append_time: bool,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<RawHeader>,
}

/// Appends records to one partition as one batch, exactly as given. A record without a timestamp gets -1.
pub fn produce(bootstrap: &str, topic: &str, partition: i32, records: &[Record]) -> Result<()> {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(encode(records)?));
    let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![
        TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]),
    ]);
    let answer = wire::call(bootstrap, 9, &request)?;
    for response in answer.responses.iter().flat_map(|topic| &topic.partition_responses) {
        ensure!(
            response.error_code == 0,
            "producing to {topic} {partition}: error {} {:?}",
            response.error_code,
            response.error_message
        );
    }
    Ok(())
}

/// Who wrote a batch, as the log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// A marker of the transaction coordinator, not data.
    pub control: bool,
    pub records: i32,
}

/// Reads one partition from the given offset to its end, control records left out, aborted ones not.
pub fn fetch(bootstrap: &str, topic: &str, partition: i32, from: i64) -> Result<Vec<LoggedRecord>> {
    let mut records = Vec::new();
    read_log((bootstrap, topic), partition, from, |batch, next| decode(batch, next, &mut records))?;
    Ok(records)
}

/// The headers of one partition's batches from the given offset to its end: markers and aborted ones too.
pub fn fetch_headers(bootstrap: &str, topic: &str, partition: i32, from: i64) -> Result<Vec<BatchHeader>> {
    let mut headers = Vec::new();
    read_log((bootstrap, topic), partition, from, |mut bytes, next| {
        while HEADER_BYTES <= bytes.len() {
            let length = usize::try_from((&bytes[8..12]).get_i32())? + 12;
            if bytes.len() < length {
                break;
            }
            let mut batch = bytes.split_to(length);
            let base_offset = batch.get_i64();
            batch.advance(CHECKED_FROM - 8);
            let control = batch.get_i16() & CONTROL_BIT != 0;
            let end = base_offset + i64::from(batch.get_i32()) + 1;
            batch.advance(16);
            let (producer_id, producer_epoch) = (batch.get_i64(), batch.get_i16());
            batch.advance(4);
            let records = batch.get_i32();
            // The answer begins with the whole batch that holds the offset asked for.
            if from <= base_offset {
                headers.push(BatchHeader { base_offset, producer_id, producer_epoch, control, records });
            }
            *next = end.max(*next);
        }
        Ok(())
    })?;
    Ok(headers)
}

/// Fetches to the end of a partition; `decode` gets whole batches and moves the offset to go on from.
fn read_log(
    topic: (&str, &str),
    partition: i32,
    from: i64,
    mut decode: impl FnMut(Bytes, &mut i64) -> Result<()>,
) -> Result<()> {
    let mut next = from;
    loop {
        let wanted = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(next)
            .with_partition_max_bytes(16 * 1024 * 1024);
        let request = FetchRequest::default()
            .with_max_wait_ms(100)
            .with_min_bytes(1)
            .with_max_bytes(16 * 1024 * 1024)
            .with_topics(vec![
                FetchTopic::default().with_topic(topic_name(topic.1)).with_partitions(vec![wanted]),
            ]);
        let answer = wire::call(topic.0, 11, &request)?;
        let found = answer
            .responses
            .first()
            .and_then(|topic| topic.partitions.first())
            .context("no answer about the partition")?;
        ensure!(found.error_code == 0, "fetching {} {partition}: error {}", topic.1, found.error_code);
        let bytes = found.records.clone().unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        let before = next;
        decode(bytes, &mut next)?;
        ensure!(before < next, "the batch at {before} did not fit into one answer");
    }
}

fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

fn encode(records: &[Record]) -> Result<Bytes> {
    let timestamps: Vec<i64> = records.iter().map(|record| record.timestamp.unwrap_or(-1)).collect();
    let base = *timestamps.first().context("a batch without records")?;
    let mut checked = BytesMut::new();
    checked.put_i16(0);
    checked.put_i32(i32::try_from(records.len())? - 1);
    checked.put_i64(base);
    checked.put_i64(timestamps.iter().copied().max().unwrap_or(base));
    // No producer id, epoch or sequence: a plain producer.
    checked.put_i64(-1);
    checked.put_i16(-1);
    checked.put_i32(-1);
    checked.put_i32(i32::try_from(records.len())?);
    for (index, (record, timestamp)) in records.iter().zip(&timestamps).enumerate() {
        let mut body = BytesMut::new();
        body.put_i8(0);
        put_varint(&mut body, timestamp - base);
        put_varint(&mut body, i64::try_from(index)?);
        put_bytes(&mut body, record.key.as_deref())?;
        put_bytes(&mut body, record.value.as_deref())?;
        put_varint(&mut body, i64::try_from(record.headers.len())?);
        for (name, value) in &record.headers {
            put_bytes(&mut body, Some(name))?;
            put_bytes(&mut body, value.as_deref())?;
        }
        put_varint(&mut checked, i64::try_from(body.len())?);
        checked.put(body);
    }
    let mut batch = BytesMut::new();
    batch.put_i64(0);
    batch.put_i32(i32::try_from(checked.len() + CHECKED_FROM - 12)?);
    batch.put_i32(-1);
    batch.put_i8(2);
    batch.put_u32(crc32c::crc32c(&checked));
    batch.put(checked);
    Ok(batch.freeze())
}

/// Reads whole batches; what the answer's size limit cut off is left for the next fetch.
fn decode(mut bytes: Bytes, next: &mut i64, records: &mut Vec<LoggedRecord>) -> Result<()> {
    while HEADER_BYTES <= bytes.len() {
        let length = usize::try_from((&bytes[8..12]).get_i32())? + 12;
        if bytes.len() < length {
            break;
        }
        let mut batch = bytes.split_to(length);
        ensure!(batch[16] == 2, "record format {}", batch[16]);
        ensure!(
            (&batch[17..21]).get_u32() == crc32c::crc32c(&batch[CHECKED_FROM..]),
            "a batch with a wrong checksum"
        );
        let base_offset = batch.get_i64();
        batch.advance(CHECKED_FROM - 8);
        let attributes = batch.get_i16();
        ensure!(attributes & COMPRESSION_BITS == 0, "compressed batches are not read here");
        let last_offset = base_offset + i64::from(batch.get_i32());
        let base_timestamp = batch.get_i64();
        let max_timestamp = batch.get_i64();
        batch.advance(14);
        let count = batch.get_i32();
        let log_append_time = attributes & LOG_APPEND_TIME_BIT != 0;
        for _ in 0..count {
            let mut record = decode_record(&mut batch, base_offset, base_timestamp)?;
            if log_append_time {
                record.timestamp = max_timestamp;
                record.log_append_time = true;
            }
            if attributes & CONTROL_BIT == 0 && *next <= record.offset {
                records.push(record);
            }
        }
        *next = (*next).max(last_offset + 1);
    }
    Ok(())
}

fn decode_record(batch: &mut Bytes, base_offset: i64, base_timestamp: i64) -> Result<LoggedRecord> {
    let length = usize::try_from(get_varint(batch)?)?;
    ensure!(length <= batch.len(), "a record longer than its batch");
    let mut body = batch.split_to(length);
    body.advance(1);
    let timestamp = base_timestamp + get_varint(&mut body)?;
    let offset = base_offset + get_varint(&mut body)?;
    let key = get_bytes(&mut body)?;
    let value = get_bytes(&mut body)?;
    let mut headers = Vec::new();
    for _ in 0..get_varint(&mut body)? {
        let name = get_bytes(&mut body)?.context("a header without a name")?;
        headers.push((name, get_bytes(&mut body)?));
    }
    Ok(LoggedRecord { offset, timestamp, log_append_time: false, key, value, headers })
}

fn put_bytes(buffer: &mut BytesMut, bytes: Option<&[u8]>) -> Result<()> {
    match bytes {
        None => put_varint(buffer, -1),
        Some(bytes) => {
            put_varint(buffer, i64::try_from(bytes.len())?);
            buffer.put_slice(bytes);
        }
    }
    Ok(())
}

fn get_bytes(buffer: &mut Bytes) -> Result<Option<Vec<u8>>> {
    let length = get_varint(buffer)?;
    if length < 0 {
        return Ok(None);
    }
    let length = usize::try_from(length)?;
    ensure!(length <= buffer.len(), "a field longer than its record");
    Ok(Some(buffer.split_to(length).to_vec()))
}

/// Kafka's variable-length integers: zigzag, then seven bits a byte, lowest first.
fn put_varint(buffer: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while 0x7f < rest {
        buffer.put_u8((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    buffer.put_u8(rest as u8);
}

fn get_varint(buffer: &mut Bytes) -> Result<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        ensure!(buffer.has_remaining(), "a number cut short");
        let byte = buffer.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    anyhow::bail!("a number of more than ten bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_survive() {
        for value in [0, -1, 1, 63, 64, -64, -65, 300, i64::MAX, i64::MIN] {
            let mut buffer = BytesMut::new();
            put_varint(&mut buffer, value);
            assert_eq!(get_varint(&mut buffer.freeze()).unwrap(), value);
        }
    }

    #[test]
    fn batches_survive() {
        let record = Record {
            partition: 0,
            key: Some(vec![]),
            value: None,
            headers: vec![(b"a\0\xff".to_vec(), None), (vec![], Some(vec![]))],
            timestamp: Some(0),
        };
        let (mut next, mut read) = (0, Vec::new());
        decode(encode(&[record.clone(), record.clone()]).unwrap(), &mut next, &mut read).unwrap();
        assert_eq!(next, 2);
        assert_eq!(read[1].headers, record.headers);
        assert_eq!((read[1].offset, read[1].timestamp), (1, 0));
        assert_eq!((read[1].key.clone(), read[1].value.clone()), (Some(vec![]), None));
    }
}
