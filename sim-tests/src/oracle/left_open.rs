use super::Oracle;
use super::log::Fate;
use super::progress::Owner;
use std::collections::BTreeSet;

impl Oracle {
    /// A record of a transaction that a process left open in one of its lanes: nobody else has claimed that since, and
    /// readers of the target wait for a time-out.
    pub fn left_open(&self, incarnation: &str, lanes: &BTreeSet<i32>) -> Option<String> {
        let is_its_own = |lane: i32, owner: &Owner| lanes.contains(&lane) && owner.incarnation == incarnation;
        let owners = self.judge.standing.owners.iter().filter(|(lane, owner)| is_its_own(**lane, owner));
        let lanes: Vec<_> = owners.map(|(lane, owner)| (*lane, owner.producer)).collect();
        if lanes.is_empty() {
            return None;
        }
        self.judge.target.logs().find_map(|(id, partition, log)| {
            // Whoever takes the lane next begins with the ledger.
            let topic = self.judge.target.name(id).filter(|name| name.as_str() != self.judge.flow.ledger)?;
            (0..log.end()).filter_map(|offset| Some((offset, log.held(offset)?))).find_map(
                |(offset, held)| {
                    let (id, epoch) = held.producer;
                    let is_of = |(_, owner): &&(i32, (i64, i16))| owner.0 == id && owner.1 <= epoch;
                    let (lane, _) = lanes.iter().find(is_of).filter(|_| held.fate == Fate::Open)?;
                    Some(format!(
                        "the transaction of lane {lane} is open at {topic}/{partition} from {offset} on"
                    ))
                },
            )
        })
    }
}
