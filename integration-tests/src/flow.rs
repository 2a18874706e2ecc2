//! One flow between two brokers: its topic, its instances, and the questions that tests ask about it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::admin::Admin;
use crate::follower::Follower;
use crate::kafka::Broker;
use crate::mirror::{Finished, Mirror, MirrorConfig, finish};
use crate::transactions::{self, TransactionState};
use crate::workload::{self, LiveLoad};
use crate::{batch, checker, unique_name, wait_for};

pub const PARTITIONS: i32 = 8;
const LANES: i32 = 8;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// A flow of one topic of eight partitions.
pub struct Flow<'a> {
    pub name: String,
    pub topic: String,
    pub config: MirrorConfig,
    pub source: &'a Broker,
    pub target: &'a Broker,
}

/// A row of `verbatim status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRow {
    pub partition: i32,
    pub lane: i32,
    /// The incarnation that made the lane's last claim.
    pub owner: String,
    pub position: Option<i64>,
    pub source_end: Option<i64>,
    pub lag: Option<u64>,
    pub state: String,
}

impl<'a> Flow<'a> {
    /// A new flow over a new topic, which is created at the source.
    pub fn new(source: &'a Broker, target: &'a Broker, stem: &str) -> Result<Flow<'a>> {
        let (name, topic) = (unique_name(stem), unique_name(&format!("{stem}-topic")));
        Admin::connect(&source.bootstrap())?
            .create_topic(&topic, usize::try_from(PARTITIONS).expect("a count"))?;
        let config = MirrorConfig::new(&name, &source.bootstrap(), &target.bootstrap(), &[&topic]);
        Ok(Flow { name, topic, config, source, target })
    }

    /// Starts an instance without an id.
    pub fn start(&self) -> Result<Mirror> {
        Mirror::run(&self.config)
    }

    /// Starts an instance with an id.
    pub fn start_as(&self, instance: &str) -> Result<Mirror> {
        Mirror::run(&self.config.clone().text("", "instance", instance))
    }

    /// Writes unique records to the source until stopped, from this number on.
    pub fn load(&self, first: u64, rate: u64) -> Result<LiveLoad> {
        LiveLoad::start(&self.source.bootstrap(), &self.topic, PARTITIONS, first, rate)
    }

    pub fn fill(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        workload::fill(&self.source.bootstrap(), &self.topic, PARTITIONS, numbers, 300)
    }

    /// Watches the target's topic.
    pub fn follow(&self) -> Result<Follower> {
        Follower::start(&self.target.bootstrap(), &self.topic, PARTITIONS)
    }

    pub fn ledger(&self) -> String {
        format!("verbatim.{}.ledger.internal", self.name)
    }

    pub fn transactional_id(&self, lane: i32) -> String {
        format!("verbatim-{}-{lane}", self.name)
    }

    /// The lanes' transactions that have records of the topic in them, uncommitted, with the number of the lane.
    pub fn open_transactions(&self) -> Result<Vec<(i32, TransactionState)>> {
        let prefix = format!("verbatim-{}-", self.name);
        let mut found = Vec::new();
        for open in transactions::open_with_prefix(&self.target.bootstrap(), &prefix)? {
            if open.partitions.iter().any(|(topic, _)| *topic == self.topic) {
                found.push((open.transactional_id[prefix.len()..].parse()?, open));
            }
        }
        Ok(found)
    }

    /// A lane's transaction as the coordinator sees it.
    pub fn transaction(&self, lane: i32) -> Result<Option<TransactionState>> {
        transactions::describe(&self.target.bootstrap(), &self.transactional_id(lane))
    }

    /// The incarnation that claimed a lane last, from the ledger's log itself.
    pub fn owner(&self, lane: i32) -> Result<Option<String>> {
        let records = batch::fetch(&self.target.bootstrap(), &self.ledger(), lane, 0)?;
        let is_claim = |key: &[u8]| String::from_utf8_lossy(key).contains(r#""claim""#);
        let claim = records.iter().rev().find(|record| record.key.as_deref().is_some_and(is_claim));
        let Some(claim) = claim else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(claim.value.as_deref().unwrap_or_default()).into_owned();
        let (_, after) = text.split_once(r#""incarnation":""#).context("a claim without an incarnation")?;
        Ok(after.split('"').next().map(str::to_owned))
    }

    /// The lanes that this instance claimed last.
    pub fn lanes_of(&self, mirror: &Mirror) -> Result<Vec<i32>> {
        let Some(incarnation) = incarnation(mirror) else {
            return Ok(Vec::new());
        };
        let mut lanes = Vec::new();
        for lane in 0..LANES {
            if self.owner(lane)?.as_deref() == Some(&incarnation) {
                lanes.push(lane);
            }
        }
        Ok(lanes)
    }

    /// Waits until each of these instances has claimed a lane, and together they have all.
    pub fn wait_until_shared(&self, mirrors: &[&Mirror], timeout: Duration) {
        wait_for(&format!("{} instances to share the lanes", mirrors.len()), timeout, || {
            let lanes: Vec<Vec<i32>> =
                mirrors.iter().map(|mirror| self.lanes_of(mirror).ok()).collect::<Option<_>>()?;
            let all: BTreeSet<i32> = lanes.iter().flatten().copied().collect();
            let shared = lanes.iter().all(|lanes| !lanes.is_empty()) && all.len() == LANES as usize;
            shared.then_some(())
        });
    }

    /// Waits until these instances share the lanes and every partition is being copied, under a load.
    pub fn wait_until_copying(&self, mirrors: &[&Mirror], visible: &Follower, timeout: Duration) {
        self.wait_until_shared(mirrors, timeout);
        let partitions: Vec<i32> = (0..PARTITIONS).collect();
        visible.wait_for_newer(&partitions, workload::now_ms(), timeout);
    }

    /// `verbatim status`, row by row.
    pub fn status(&self) -> Result<Vec<StatusRow>> {
        let finished = self.command(&["status"])?;
        ensure!(finished.code == 0, "status ends with {}: {}", finished.code, finished.stderr);
        finished.stdout.lines().skip(1).map(row).collect()
    }

    /// The partitions of these lanes.
    pub fn partitions_of(&self, lanes: &[i32]) -> Result<Vec<i32>> {
        let rows = self.status()?;
        Ok(rows.iter().filter(|row| lanes.contains(&row.lane)).map(|row| row.partition).collect())
    }

    /// A command that ends by itself, over this flow's configuration.
    pub fn command(&self, words: &[&str]) -> Result<Finished> {
        finish(&self.config, words, COMMAND_TIMEOUT)
    }

    /// Records that lie in the target topic, aborted ones counted too.
    pub fn records_written(&self) -> Result<u64> {
        let mut count = 0;
        for partition in 0..PARTITIONS {
            let headers = batch::fetch_headers(&self.target.bootstrap(), &self.topic, partition, 0)?;
            count +=
                headers.iter().filter(|header| !header.control).map(|header| header.records).sum::<i32>();
        }
        Ok(u64::try_from(count)?)
    }

    /// Where the logs of the target topic and of the ledger end: topic, partition, offset.
    pub fn log_ends(&self) -> Result<Vec<(String, i32, i64)>> {
        let admin = Admin::connect(&self.target.bootstrap())?;
        let mut ends = Vec::new();
        for (topic, partitions) in [(self.topic.clone(), PARTITIONS), (self.ledger(), LANES)] {
            for partition in 0..partitions {
                ends.push((topic.clone(), partition, admin.watermarks(&topic, partition)?.1));
            }
        }
        Ok(ends)
    }

    /// Fails the test unless the target holds exactly what the source does, that many records, and `verify` and
    /// `status` say so too.
    ///
    /// # Panics
    /// With what is different.
    #[track_caller]
    pub fn judge(&self, records: u64) {
        let source = self.source.bootstrap();
        let found = checker::assert_equal((&source, &self.topic), (&self.target.bootstrap(), &self.topic));
        assert_eq!(found as u64, records, "every acknowledged record is in the source once");
        let verified = self.command(&["verify"]).expect("verify ends");
        assert_eq!(verified.code, 0, "verify: {}\n{}", verified.stdout, verified.stderr);
        let rows = self.status().expect("status answers");
        assert_eq!(rows.len(), PARTITIONS as usize, "{rows:?}");
        for row in &rows {
            assert_eq!((row.lag, row.state.as_str()), (Some(0), "caught-up"), "{row:?}");
            assert_eq!(row.position, row.source_end, "{row:?}");
        }
        let positions: i64 = rows.iter().filter_map(|row| row.position).sum();
        assert_eq!(positions as u64, records, "{rows:?}");
    }
}

/// The name under which a process claims lanes; it logs it first of all.
pub fn incarnation(mirror: &Mirror) -> Option<String> {
    let log = mirror.stderr();
    let (_, after) = log.split_once("incarnation=")?;
    Some(after.split_whitespace().next()?.trim_matches('"').to_owned())
}

fn row(line: &str) -> Result<StatusRow> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    ensure!(10 <= cells.len(), "not a row of status: {line}");
    Ok(StatusRow {
        partition: cells[2].parse()?,
        lane: cells[3].parse()?,
        owner: cells[4].to_owned(),
        position: cells[5].parse().ok(),
        source_end: cells[6].parse().ok(),
        lag: cells[7].parse().ok(),
        state: cells[9].to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_status_is_understood() {
        let line = "f  t  3  5  host-1f  17  20  3  2s  copying  a source transaction is open";
        let expected = StatusRow {
            partition: 3,
            lane: 5,
            owner: "host-1f".to_owned(),
            position: Some(17),
            source_end: Some(20),
            lag: Some(3),
            state: "copying".to_owned(),
        };
        assert_eq!(row(line).unwrap(), expected);
    }
}
