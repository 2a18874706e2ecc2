//! What the commands that only look need of the two clusters: a seam for tests without brokers.

use kafka_types::{SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use std::collections::BTreeMap;
use verbatim_core::command::Topics;
use verbatim_core::digest::{RecordHash, RecordParts};
use verbatim_core::event::{LedgerRecord, Listing, OpenTransaction, TopicConfig};
use verbatim_core::failure::{Side, Trouble};
pub(crate) use verbatim_core::status::{Extent, Extents};

/// The two clusters of a flow, as a reader sees them. Questions wait for their answers.
pub(crate) trait Clusters: Sync {
    fn describe(&self, side: Side, topics: &Topics) -> Result<Listing, Trouble>;
    fn configs(&self, side: Side, topics: &[TopicName]) -> Result<BTreeMap<TopicName, TopicConfig>, Trouble>;
    /// An answer for every partition asked for: one that is silent is never taken for one that is gone.
    fn source_extents(&self, partitions: &[SourcePartition]) -> Extents<SourcePartition, SourceOffset>;
    fn target_extents(&self, partitions: &[TargetPartition]) -> Extents<TargetPartition, TargetOffset>;
    /// Who holds back source partitions, as far as brokers can be asked.
    fn open_transactions(
        &self,
        partitions: &[SourcePartition],
    ) -> BTreeMap<SourcePartition, Vec<OpenTransaction>>;
    /// The committed records of the whole ledger, which must exist.
    fn survey(&self) -> Result<Vec<LedgerRecord>, Trouble>;
    /// The committed records in `from..to`; their end is the end of the range or of what is readable,
    /// whichever comes first.
    fn source_records(
        &self,
        partition: &SourcePartition,
        from: SourceOffset,
        to: SourceOffset,
    ) -> Result<Records<SourceOffset>, Trouble>;
    fn target_records(
        &self,
        partition: &TargetPartition,
        from: TargetOffset,
        to: TargetOffset,
    ) -> Result<Records<TargetOffset>, Trouble>;
}

/// What is wrong with a whole cluster: no partition was answered for, and not because each is passing through
/// something of its own.
pub(crate) fn trouble_of_all<P, O>(extents: &Extents<P, O>) -> Option<&Trouble> {
    let first = extents.values().find_map(|extent| extent.as_ref().err())?;
    let is_the_cluster_s = match first {
        Trouble::Unreachable(_) | Trouble::Authentication(_) | Trouble::NotAuthorized { .. } => true,
        Trouble::Refused(_) | Trouble::Passing(_) => false,
    };
    (is_the_cluster_s && extents.values().all(Result::is_err)).then_some(first)
}

pub(crate) type Records<O> = Box<dyn Iterator<Item = Result<Record<O>, Trouble>> + Send>;

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record<O> {
    pub offset: O,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    /// Name and value of each, in order.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// -1 where the record has none.
    pub timestamp: i64,
}

impl<O> Record<O> {
    pub(crate) fn hash(&self) -> RecordHash {
        RecordHash::of(RecordParts {
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self.headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref())),
            timestamp: self.timestamp,
        })
    }
}
