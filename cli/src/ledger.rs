//! The whole ledger as the commands that only look read it.

use crate::clusters::Clusters;
use crate::exit_code::Code;
use crate::failed::Failed;
use verbatim_core::config::FlowName;
use verbatim_core::event::{LedgerRecord, Listing};
use verbatim_core::failure::Side;
pub(crate) use verbatim_core::ledger::FlowLedger;

/// Reads the ledger, if the target has one.
pub(crate) fn read(
    clusters: &impl Clusters,
    flow: &FlowName,
    target: &Listing,
) -> Result<Option<FlowLedger>, Failed> {
    if let Some(trouble) = target.trouble.get(&flow.ledger()) {
        return Err(Failed::trouble(Side::Target, trouble));
    }
    if !target.topics.contains_key(&flow.ledger()) {
        return Ok(None);
    }
    let records = clusters.survey().map_err(|trouble| Failed::trouble(Side::Target, &trouble))?;
    replay(records).map(Some)
}

pub(crate) fn replay(records: Vec<LedgerRecord>) -> Result<FlowLedger, Failed> {
    FlowLedger::replay(records).map_err(|error| Failed::new(Code::Configuration, error.to_string()))
}
