//! The checker's verdict, and its words for it.

use std::fmt::Write;

use crate::checker::SeenRecord;
use crate::differences::Differences;
use crate::headers::RawHeader;

const SHOWN_BYTES_MAX: usize = 60;

/// The verdict over a topic.
#[derive(Debug, Clone)]
pub struct Report {
    pub partitions: Vec<PartitionReport>,
}

#[derive(Debug, Clone)]
pub struct PartitionReport {
    pub partition: i32,
    pub differences: Differences,
    /// In words, the two records at the first difference.
    pub first: String,
}

impl Report {
    pub fn is_equal(&self) -> bool {
        self.partitions.iter().all(|partition| partition.differences.is_equal())
    }

    /// One count over all partitions: `report.total(|differences| differences.lost)`.
    pub fn total(&self, count: impl Fn(&Differences) -> usize) -> usize {
        self.partitions.iter().map(|partition| count(&partition.differences)).sum()
    }

    /// Only the partitions that differ, a line or two each.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for report in self.partitions.iter().filter(|report| !report.differences.is_equal()) {
            let found = &report.differences;
            writeln!(
                text,
                "partition {}: {} records in the source, {} in the target; lost {}, duplicated {}, foreign {}, \
                 reordered {}\n  first difference: {}",
                report.partition,
                found.source_records,
                found.target_records,
                found.lost,
                found.duplicated,
                found.foreign,
                found.reordered,
                report.first
            )
            .ok();
        }
        text
    }
}

/// What differs between the two records at the same place, in words.
pub(crate) fn describe_pair(place: usize, wanted: Option<&SeenRecord>, found: Option<&SeenRecord>) -> String {
    let mut text = format!("record {place}");
    match (wanted, found) {
        (Some(wanted), Some(found)) => {
            write!(text, " (source offset {}, target offset {})", wanted.offset, found.offset).ok();
            if wanted.key != found.key {
                write!(text, "; key {} became {}", show(wanted.key.as_ref()), show(found.key.as_ref())).ok();
            }
            if wanted.value != found.value {
                write!(text, "; value {} became {}", show(wanted.value.as_ref()), show(found.value.as_ref()))
                    .ok();
            }
            if wanted.timestamp != found.timestamp {
                write!(text, "; timestamp {:?} became {:?}", wanted.timestamp, found.timestamp).ok();
            }
            if wanted.headers != found.headers {
                write!(text, "; headers {} became {}", show_headers(wanted), show_headers(found)).ok();
            }
        }
        (Some(wanted), None) => {
            write!(
                text,
                " (source offset {}, value {}) is missing",
                wanted.offset,
                show(wanted.value.as_ref())
            )
            .ok();
        }
        (None, Some(found)) => {
            write!(
                text,
                " (target offset {}, value {}) is too much",
                found.offset,
                show(found.value.as_ref())
            )
            .ok();
        }
        (None, None) => {}
    }
    text
}

fn show_headers(record: &SeenRecord) -> String {
    let show_one = |(name, value): &RawHeader| format!("{}: {}", show(Some(name)), show(value.as_ref()));
    format!("[{}]", record.headers.iter().map(show_one).collect::<Vec<_>>().join(", "))
}

fn show(bytes: Option<&Vec<u8>>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() <= SHOWN_BYTES_MAX => format!("\"{}\"", bytes.escape_ascii()),
        Some(bytes) => {
            format!("\"{}...\" of {} bytes", bytes[..SHOWN_BYTES_MAX].escape_ascii(), bytes.len())
        }
    }
}
