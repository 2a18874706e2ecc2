use kafka_types::{Record, RecordBatch};
use std::fmt;

/// What of a record must arrive as it was: key, value, headers in order, and timestamp as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    record: Record,
    pub timestamp: i64,
}

impl Content {
    pub fn of(batch: &RecordBatch, record: &Record) -> Content {
        Content { record: record.clone(), timestamp: batch.timestamp_of(record) }
    }

    pub fn key(&self) -> Option<&[u8]> {
        self.record.key.as_deref()
    }

    pub fn value(&self) -> Option<&[u8]> {
        self.record.value.as_deref()
    }

    /// Bytes of the record alone in a batch.
    pub fn size_alone(&self) -> usize {
        kafka_types::BATCH_HEADER_BYTES + self.record.size_bytes(self.record.timestamp)
    }

    pub fn is_same(&self, other: &Content) -> bool {
        self.difference(other).is_none()
    }

    /// The first part in which two records differ.
    pub fn difference(&self, other: &Content) -> Option<&'static str> {
        if self.record.value != other.record.value {
            Some("value")
        } else if self.record.key != other.record.key {
            Some("key")
        } else if self.record.headers != other.record.headers {
            Some("headers")
        } else if self.timestamp != other.timestamp {
            Some("timestamp")
        } else {
            None
        }
    }

    /// In how many of its four parts it is the other.
    pub fn likeness(&self, other: &Content) -> u32 {
        u32::from(self.record.value == other.record.value)
            + u32::from(self.record.key == other.record.key)
            + u32::from(self.record.headers == other.record.headers)
            + u32::from(self.timestamp == other.timestamp)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: Option<&[u8]>| match bytes {
            None => "null".to_owned(),
            Some(bytes) => {
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).into_owned();
                if bytes.len() <= 24 { format!("{shown:?}") } else { format!("{shown:?}..({})", bytes.len()) }
            }
        };
        write!(
            f,
            "key {} value {} headers {} timestamp {}",
            text(self.key()),
            text(self.value()),
            self.record.headers.len(),
            self.timestamp
        )
    }
}
