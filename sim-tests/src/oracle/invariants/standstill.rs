use super::{livelock, loss_reports, stuck};
use crate::oracle::lag::Lag;
use crate::oracle::violation::{Invariant, Violation};
use kafka_model::Millis;
use kafka_types::SourcePartition;

/// Faults have been over for long, and not everything is done.
#[derive(Clone, Debug)]
pub struct Standstill {
    pub at: Millis,
    pub lags: Vec<Lag>,
    /// A copy that is gone, of which the ledger does not tell.
    pub untold: Option<SourcePartition>,
    /// What still happened of late, if anything did.
    pub going_on: Option<&'static str>,
    /// What else there is to see.
    pub scene: String,
}

/// Which promise a mirror breaks that does not catch up.
pub fn unhealed(standstill: &Standstill) -> Vec<Violation> {
    let untold = standstill.untold.as_ref().filter(|_| standstill.lags.is_empty());
    if let Some(place) = untold {
        return vec![loss_reports::untold(place, standstill.at)];
    }
    livelock::check(standstill).into_iter().chain(stuck::check(standstill)).collect()
}

impl Standstill {
    pub(super) fn violation(&self, invariant: Invariant, but: &str) -> Violation {
        let records: usize = self.lags.iter().map(|lag| lag.records).sum();
        let first = self.lags.first();
        let behind = first.map_or(String::new(), |lag| {
            format!(
                "{} stands at {} of {}, {} records behind; ",
                lag.partition, lag.position, lag.end, lag.records
            )
        });
        let count = self.lags.len();
        let text = format!("{count} partitions and {records} records are left: {behind}{}{but}", self.scene);
        let violation = Violation::new(invariant, self.at, text);
        match first {
            Some(lag) => violation.in_partition(&lag.partition).at_source(lag.position),
            None => violation,
        }
    }
}
