//! Watching a copy arrive: how far the target's log and the mirror's processor time are, 50 times a second.
//!
//! Offsets alone do not tell the end of a transactional copy, since transactions leave markers in the log: there the
//! last record of each partition is looked for, and the samples say afterwards when it came.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use integration_tests::{batch, wire};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{ListOffsetsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::process::{Process, cpu_seconds};

const PACE: Duration = Duration::from_millis(20);
/// How long nothing may arrive before the run is given up.
const STALL_MAX: Duration = Duration::from_secs(120);

/// Where the ends of the target's partitions and the mirror's cost stood at a time.
#[derive(Debug, Clone)]
struct Sample {
    at: Instant,
    cpu: f64,
    /// The log's own ends.
    written: Vec<i64>,
    /// What `read_committed` readers see.
    visible: Vec<i64>,
}

/// A moment of a copy, measured from the start of the mirror's process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    pub seconds: f64,
    pub cpu: f64,
}

/// When what happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// The first record lay in the target's log.
    pub first: Moment,
    /// The last one did.
    pub written: Moment,
    /// All of them were visible to `read_committed` readers.
    pub visible: Moment,
}

pub struct Watched<'a> {
    pub bootstrap: &'a str,
    pub topic: &'a str,
    pub partitions: i32,
    pub records: u64,
    pub ending: Ending,
}

/// How the end of a copy is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// There are as many offsets as records: nothing else is in the log.
    Count,
    /// Each partition's last record is there: partitions are kept.
    LastRecords,
}

/// Waits until all is copied and visible.
pub fn watch(what: &Watched<'_>, process: &mut Process, started: Instant) -> Result<Arrival> {
    let samples = Mutex::new(Vec::new());
    let done = AtomicBool::new(false);
    let pid = process.pid();
    let lasts = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // A topic that is not there yet, or a process that is gone: the other thread's concern.
                if let Ok(sample) = sample(what, pid) {
                    samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                }
                sleep(PACE);
            }
        });
        let lasts = await_lasts(what, process, &samples);
        done.store(true, Ordering::Relaxed);
        lasts
    })?;
    let samples = samples.into_inner().unwrap_or_else(PoisonError::into_inner);
    arrival(&samples, &lasts, started).context("the samples do not reach the end")
}

fn sample(what: &Watched<'_>, pid: u32) -> Result<Sample> {
    const READ_UNCOMMITTED: i8 = 0;
    const READ_COMMITTED: i8 = 1;
    let visible = ends(what, READ_COMMITTED)?;
    let written = ends(what, READ_UNCOMMITTED)?;
    Ok(Sample { at: Instant::now(), cpu: cpu_seconds(pid)?, written, visible })
}

/// The ends of all partitions.
fn ends(what: &Watched<'_>, isolation: i8) -> Result<Vec<i64>> {
    const LATEST: i64 = -1;
    let partition =
        |index| ListOffsetsPartition::default().with_partition_index(index).with_timestamp(LATEST);
    let topic = ListOffsetsTopic::default()
        .with_name(TopicName(StrBytes::from_string(what.topic.to_owned())))
        .with_partitions((0..what.partitions).map(partition).collect());
    let request = ListOffsetsRequest::default()
        .with_replica_id((-1).into())
        .with_isolation_level(isolation)
        .with_topics(vec![topic]);
    let answer = wire::call(what.bootstrap, 2, &request)?;
    let mut ends = vec![0; usize::try_from(what.partitions)?];
    for found in answer.topics.iter().flat_map(|topic| &topic.partitions) {
        ensure!(
            found.error_code == 0,
            "the end of partition {}: error {}",
            found.partition_index,
            found.error_code
        );
        *ends.get_mut(usize::try_from(found.partition_index)?).context("a partition too many")? =
            found.offset;
    }
    Ok(ends)
}

/// Waits until the last record of each partition is visible; their offsets.
fn await_lasts(what: &Watched<'_>, process: &mut Process, samples: &Mutex<Vec<Sample>>) -> Result<Vec<i64>> {
    let mut lasts: Vec<Option<i64>> = vec![None; usize::try_from(what.partitions)?];
    let mut seen = vec![-1; lasts.len()];
    let mut moved = Instant::now();
    loop {
        if let Some(lasts) = lasts.iter().copied().collect() {
            return Ok(lasts);
        }
        process.ensure_running()?;
        if STALL_MAX < moved.elapsed() {
            bail!("nothing arrived for {STALL_MAX:?}; its log ends so:\n{}", process.last_words());
        }
        sleep(Duration::from_millis(100));
        let newest = samples.lock().unwrap_or_else(PoisonError::into_inner).last().cloned();
        let Some(Sample { visible, .. }) = newest else { continue };
        if visible != seen {
            moved = Instant::now();
        }
        if what.ending == Ending::Count && what.records.cast_signed() <= visible.iter().sum() {
            return Ok(visible.iter().map(|end| end - 1).collect());
        }
        for (partition, &end) in visible.iter().enumerate() {
            let due = records_of(what, partition);
            // Only where it may be there: looking costs the broker a fetch.
            let wanted = what.ending == Ending::LastRecords && lasts[partition].is_none();
            if wanted && seen[partition] != end && due <= end {
                lasts[partition] = last_of(what, partition, end)?;
            }
        }
        seen = visible;
    }
}

/// How many records a partition gets: they are dealt out in turn.
fn records_of(what: &Watched<'_>, partition: usize) -> i64 {
    let partitions = i64::from(what.partitions);
    (what.records.cast_signed() - partition as i64 + partitions - 1) / partitions
}

/// The offset of a partition's last record if it lies below `end`.
fn last_of(what: &Watched<'_>, partition: usize, end: i64) -> Result<Option<i64>> {
    let number = (records_of(what, partition) - 1) * i64::from(what.partitions) + partition as i64;
    let key = format!("key {number}").into_bytes();
    // A marker or two may follow the last record, and more than a few never do.
    let from = (end - 4).max(0);
    let tail = batch::fetch(what.bootstrap, what.topic, i32::try_from(partition)?, from)?;
    let found = tail.iter().rev().find(|record| record.key.as_deref() == Some(&key));
    Ok(found.map(|record| record.offset).filter(|offset| *offset < end))
}

fn arrival(samples: &[Sample], lasts: &[i64], started: Instant) -> Option<Arrival> {
    let moment = |sample: &Sample| Moment {
        seconds: sample.at.saturating_duration_since(started).as_secs_f64(),
        cpu: sample.cpu,
    };
    let reached = |ends: &[i64]| ends.iter().zip(lasts).all(|(end, last)| last < end);
    let any = |sample: &&Sample| sample.written.iter().any(|end| 0 < *end);
    Some(Arrival {
        first: moment(samples.iter().find(any)?),
        written: moment(samples.iter().find(|sample| reached(&sample.written))?),
        visible: moment(samples.iter().find(|sample| reached(&sample.visible))?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_dealt_out_in_turn() {
        let what = Watched { bootstrap: "", topic: "", partitions: 4, records: 10, ending: Ending::Count };
        let counts: Vec<i64> = (0..4).map(|partition| records_of(&what, partition)).collect();
        assert_eq!(counts, [3, 3, 2, 2]);
    }

    #[test]
    fn samples_tell_when_what_came() {
        let started = Instant::now();
        let sample = |ms, written: [i64; 2], visible: [i64; 2]| Sample {
            at: started + Duration::from_millis(ms),
            cpu: ms as f64 / 2000.0,
            written: written.to_vec(),
            visible: visible.to_vec(),
        };
        let samples = [
            sample(1000, [0, 0], [0, 0]),
            sample(2000, [0, 3], [0, 0]),
            sample(3000, [5, 9], [0, 4]),
            sample(4000, [7, 9], [7, 9]),
        ];
        let moment = |seconds| Moment { seconds, cpu: seconds / 2.0 };
        let expected = Arrival { first: moment(2.0), written: moment(3.0), visible: moment(4.0) };
        assert_eq!(arrival(&samples, &[4, 8], started), Some(expected));
        assert_eq!(arrival(&samples, &[4, 9], started), None);
    }
}
