//! Only the producer that made a lane's last claim settles anything in that lane, under the lane's own
//! transactional id.

use crate::oracle::case::Case;
use crate::oracle::ledger::LedgerRecord;
use crate::oracle::settlement::Writer;
use crate::oracle::violation::{Invariant, Violation};
use std::collections::BTreeMap;

pub fn check(case: &Case<'_>, broken: &mut Vec<Violation>) {
    let settlement = case.settlement;
    let mut claimed: BTreeMap<i32, Writer> = BTreeMap::new();
    for noted in &settlement.ledger {
        let own_id = format!("{}{}", case.flow.transactional_id_prefix, noted.lane);
        let mut tell = |text: String| {
            let violation = Violation::new(Invariant::OneWriter, settlement.at, text);
            broken.push(violation.at_target(noted.offset));
        };
        if settlement.transactional_id != own_id {
            tell(format!("{} wrote to the ledger of lane {}", settlement.transactional_id, noted.lane));
        }
        let owner = case.standing.owners.get(&noted.lane);
        if let Ok(LedgerRecord::Claim(_)) = noted.record {
            // A claim of an older epoch than the last one comes from somebody who was fenced.
            if owner.is_some_and(|owner| is_older(noted.producer, owner.producer)) {
                tell(format!(
                    "producer {:?} claimed lane {} after it was fenced",
                    noted.producer, noted.lane
                ));
            }
            claimed.insert(noted.lane, noted.producer);
            continue;
        }
        let producer = claimed.get(&noted.lane).copied().or(owner.map(|owner| owner.producer));
        let Some(producer) = producer else {
            tell(format!("lane {} was written to without a claim", noted.lane));
            continue;
        };
        let is_forgotten = owner.is_some_and(|owner| owner.is_forgotten);
        let recovered_anew = is_forgotten && producer.0 < noted.producer.0;
        if !recovered_anew && !is_same_or_recovered(noted.producer, producer) {
            let (by, at) = owner.map_or((String::new(), 0), |it| (it.incarnation.clone(), it.at));
            let (id, epoch) = noted.producer;
            tell(format!(
                "lane {} was claimed by {by} at {at}, but producer {id} of epoch {epoch} settled in it",
                noted.lane
            ));
        }
    }
    check_copies(case, broken);
}

/// All that one transaction holds comes from one producer.
fn check_copies(case: &Case<'_>, broken: &mut Vec<Violation>) {
    let Some(writer) = case.settlement.ledger.first().map(|noted| noted.producer) else { return };
    for advance in case.advances {
        if let Some(copy) = advance.copies.iter().find(|copy| copy.producer != writer) {
            let text = format!("producer {:?} settled what producer {:?} had written", writer, copy.producer);
            let violation = Violation::new(Invariant::OneWriter, case.settlement.at, text);
            broken.push(violation.in_partition(&advance.partition).at_target(copy.offset));
        }
    }
}

/// A producer may raise its own epoch to recover from an error, which a coordinator lets only the last one do.
fn is_same_or_recovered(writer: Writer, claimed: Writer) -> bool {
    writer.0 == claimed.0 && claimed.1 <= writer.1
}

fn is_older(writer: Writer, than: Writer) -> bool {
    writer.0 == than.0 && writer.1 < than.1
}
