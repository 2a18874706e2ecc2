//! What `status` shows of a partition is so: its position, how much is left, in what state it is, and who has it.

use crate::oracle::violation::{Invariant, Violation};
use kafka_model::{Millis, Offset};
use kafka_types::SourcePartition;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub partition: SourcePartition,
    pub lane: i32,
    pub owner: Option<String>,
    pub position: Option<Offset>,
    pub source_end: Option<Offset>,
    pub lag: Option<u64>,
    pub stands: Stands,
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    Copying,
    CaughtUp,
    Halted,
    Waiting,
    Gap,
}

/// What is so of the same partition at the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Of the partition's present topic at the source, where there is one.
    pub log: Option<Ends>,
    /// The position that was decided last, or where the ledger pins its start; none where the ledger says nothing of it.
    pub position: Option<Offset>,
    /// What was decided is of another source topic than the present one.
    pub is_of_another_topic: bool,
    pub is_halted: bool,
    /// There is a copy to write to, as far as was decided.
    pub has_target: bool,
    pub owner: Option<String>,
    /// Readers of the lane's ledger see all that was decided.
    pub is_shown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub start: Offset,
    pub high_watermark: Offset,
}

pub fn check(now: Millis, said: &Said, facts: &Facts) -> Vec<Violation> {
    let wrong =
        [wrong_end(said, facts), wrong_lag(said), wrong_state(said, facts), wrong_progress(said, facts)];
    let tell = |text: String| {
        Violation::new(Invariant::StatusTrue, now, format!("status says of it {}; but {text}", shown(said)))
            .in_partition(&said.partition)
    };
    wrong.into_iter().flatten().map(tell).collect()
}

fn shown(said: &Said) -> String {
    let Said { position, source_end, lag, stands, owner, .. } = said;
    format!("{stands:?} at {position:?} of {source_end:?}, lag {lag:?}, owner {owner:?}")
}

fn wrong_end(said: &Said, facts: &Facts) -> Option<String> {
    let end = facts.log.map(|log| log.high_watermark);
    (said.source_end.is_some() && said.source_end != end).then(|| format!("the source ends at {end:?}"))
}

/// The numbers of one row fit each other.
fn wrong_lag(said: &Said) -> Option<String> {
    let between = |(end, position): (Offset, Offset)| u64::try_from(end - position).unwrap_or(0);
    let left = said.source_end.zip(said.position).map(between);
    (said.lag.is_some() && said.lag != left).then(|| format!("there are {left:?} between the two"))
}

/// What a row says of the source is so at any moment; what it says of the ledger may be behind what was decided.
fn wrong_state(said: &Said, facts: &Facts) -> Option<String> {
    let position = said.position.unwrap_or(0);
    let Some(log) = facts.log else {
        let moves = matches!(said.stands, Stands::Copying | Stands::CaughtUp | Stands::Gap);
        return moves.then(|| "the source has no such partition".to_owned());
    };
    let is_so = match said.stands {
        Stands::CaughtUp | Stands::Copying | Stands::Gap if facts.is_of_another_topic && facts.is_shown => {
            return Some("the topic was made anew".to_owned());
        }
        Stands::CaughtUp => log.high_watermark <= position,
        Stands::Copying => log.start <= position && position < log.high_watermark,
        Stands::Gap => position < log.start,
        Stands::Halted | Stands::Waiting => true,
    };
    (!is_so).then(|| format!("the source has offsets from {} to {}", log.start, log.high_watermark))
}

/// What the ledger says is what was decided, or what was decided before where that does not show yet.
fn wrong_progress(said: &Said, facts: &Facts) -> Option<String> {
    if facts.position < said.position {
        return Some(format!("the position is {:?}", facts.position));
    }
    if !facts.is_shown {
        return None;
    }
    if facts.position != said.position {
        return Some(format!("the position is {:?}", facts.position));
    }
    if facts.owner != said.owner {
        return Some(format!("the lane's last claim is {:?}", facts.owner));
    }
    if facts.is_halted != (said.stands == Stands::Halted) {
        return Some(format!("it stands {}halted", if facts.is_halted { "" } else { "not " }));
    }
    let may_wait = facts.log.is_none() || facts.position.is_none() || !facts.has_target;
    let waits = said.stands == Stands::Waiting;
    (waits && !may_wait && !facts.is_of_another_topic).then(|| "there is nothing to wait for".to_owned())
}
