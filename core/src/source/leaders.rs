//! Who led source partitions while they were read: proof, before a commit, that what was passed without a record held none.
//!
//! A position beyond markers and holes says of the log below it what one leader showed. Two unclean elections can bring
//! back an older log, with records in that place; a client that asks its new leader about the position hears nothing
//! amiss, and no record tells of it. So what was read counts only if one leader led from before reading began until all
//! of it was read.

use crate::command::{Command, Place};
use crate::event::Ask;
use crate::failure::Trouble;
use crate::fault::Faults;
use crate::mirror::Context;
use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourcePartition};
use std::collections::{BTreeMap, BTreeSet};

/// What leaders last told of themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leaders {
    asked: BTreeSet<Ask>,
    told: BTreeMap<SourcePartition, Told>,
}

/// A leader's own epoch, if it tells one, in answer to that question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Told {
    ask: Ask,
    epoch: Result<Option<LeaderEpoch>, Trouble>,
}

impl Leaders {
    /// Wants answers about these partitions to a question asked now.
    pub fn want(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        partitions: impl IntoIterator<Item = SourcePartition>,
    ) {
        let partitions: Vec<SourcePartition> = partitions.into_iter().collect();
        if partitions.is_empty() {
            return;
        }
        let ask = ctx.out.ask();
        self.asked.insert(ask);
        // A leader tells its epoch beside the end of its log.
        ctx.out.push(Command::SourceOffsets { ask, partitions, at: Place::HighWatermark });
    }

    /// Takes in an answer to a question of its own. Whether it was one.
    pub fn answered(
        &mut self,
        ask: Ask,
        answer: &BTreeMap<SourcePartition, Result<OffsetAndEpoch, Trouble>>,
    ) -> bool {
        let is_own = self.asked.remove(&ask);
        if is_own {
            for (partition, end) in answer {
                let is_newer = self.told.get(partition).is_none_or(|before| before.ask < ask);
                if is_newer {
                    let epoch = end.clone().map(|end| end.epoch);
                    self.told.insert(partition.clone(), Told { ask, epoch });
                }
            }
        }
        is_own
    }

    /// What the partition's leader said in answer to a question asked after `since`; none if nothing yet.
    pub fn since(
        &self,
        partition: &SourcePartition,
        since: Ask,
    ) -> Option<&Result<Option<LeaderEpoch>, Trouble>> {
        self.told.get(partition).filter(|told| since < told.ask).map(|told| &told.epoch)
    }

    /// Who was the partition's leader when it was last asked: reading that begins now is under none before it.
    pub fn latest(&self, partition: &SourcePartition) -> Option<LeaderEpoch> {
        self.told.get(partition).and_then(|told| *told.epoch.as_ref().ok()?)
    }
}
