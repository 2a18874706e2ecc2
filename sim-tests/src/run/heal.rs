//! After the faults: everything works again, and the mirror must catch up.

use super::clusters::{Administrator, partitions, side};
use super::setup::{self, BROKERS};
use crate::oracle::{Invariant, Violation};
use crate::plan::{Cluster as Named, Plan};
use kafka_model::BrokerId;
use kafka_types::SourcePartition;
use runtime_sim::{Handle, NetworkFaults, Slot};
use verbatim_core::failure::Side;

/// Ends every fault that lasts, and sees that every instance runs.
pub fn heal(handle: &Handle, administrator: &Administrator, plan: &Plan, start: &mut impl FnMut(Slot)) {
    handle.set_network(NetworkFaults::default());
    handle.tell_of_losses();
    handle.set_client_faults(setup::client_without_faults(plan));
    for cluster in [Named::Source, Named::Target] {
        for broker in (1..=i32::from(BROKERS)).map(BrokerId) {
            administrator.on(cluster, |it, now| it.fill_disk(now, broker, false));
            administrator.on(cluster, |it, now| it.restart_broker(now, broker));
            let places = handle.view(side(cluster), partitions);
            for tp in places {
                administrator.on(cluster, |it, now| it.stall_replica(now, &tp, broker, false));
                administrator.on(cluster, |it, _| {
                    it.delay_markers(&tp, None);
                    Vec::new()
                });
            }
        }
        let lasting = if cluster == Named::Target { plan.rare.target_throttle_ms } else { 0 };
        administrator.throttle(cluster, lasting);
    }
    for (cluster, topic) in plan.denied_topics() {
        administrator.deny_topic(cluster, topic, false);
    }
    for slot in (0..u32::from(plan.flow.instances)).map(Slot) {
        handle.crash_at_no_moment(slot);
        handle.reconnect(slot);
        handle.resume(slot);
        if !handle.is_running(slot) {
            start(slot);
        }
    }
}

/// The copy of a partition is gone with its target topic, and the ledger never says so.
pub fn told_nothing(place: &SourcePartition, now: i64) -> Violation {
    let text = "the target topic was deleted with all that was copied, and nobody is told";
    Violation::new(Invariant::LossReports, now, text).in_partition(place)
}

/// What a look at the clusters says of a mirror that does not catch up.
pub fn verdict(handle: &Handle, lags: &[crate::oracle::Lag], goes_on: bool, now: i64) -> Violation {
    let invariant = if goes_on { Invariant::Livelock } else { Invariant::Stuck };
    let records: usize = lags.iter().map(|lag| lag.records).sum();
    let first = lags.first();
    let behind = first.map_or(String::new(), |lag| {
        format!(
            "{} stands at {} of {}, {} records behind; ",
            lag.partition, lag.position, lag.end, lag.records
        )
    });
    let instances: Vec<String> = (0..8)
        .map(Slot)
        .filter_map(|slot| {
            let report = handle.reports(slot).map(|it| format!("owns {} lanes", it.lanes_owned));
            let exit = handle.exit(slot).map(|exit| format!("ended with {exit:?}"));
            let said = exit.or(report)?;
            Some(format!("instance {} {said}", slot.0))
        })
        .collect();
    let leaderless: Vec<String> = handle.view(Side::Target, |cluster| {
        let places = partitions(cluster);
        places.iter().filter(|tp| cluster.leader(tp).is_none()).map(ToString::to_string).collect()
    });
    let leaderless =
        if leaderless.is_empty() { String::new() } else { format!("; without a leader: {leaderless:?}") };
    let text = format!(
        "{} partitions and {records} records are left: {behind}{}{leaderless}",
        lags.len(),
        instances.join(", ")
    );
    let mut violation = Violation::new(invariant, now, text);
    if let Some(lag) = first {
        violation = violation.in_partition(&lag.partition).at_source(lag.position);
    }
    violation
}
