//! After the faults: everything works again, and the mirror must catch up.

use super::clusters::{Administrator, partitions, side};
use super::setup::{self, BROKERS};
use crate::plan::{Action, Cluster as Named, Plan, TimedAction};
use kafka_model::BrokerId;
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
    for right in plan.denied_rights() {
        administrator.act(&Action::DenyRight { right, is_denied: false });
    }
    for slot in (0..u32::from(plan.flow.instances)).map(Slot) {
        handle.crash_at_no_moment(slot);
        handle.reconnect(slot);
        handle.stall(slot, false);
        let goes_on_later = |timed: &TimedAction| timed.action == Action::Resume { slot };
        if !plan.late_actions().any(goes_on_later) {
            handle.resume(slot);
        }
        if !handle.is_running(slot) {
            start(slot);
        }
    }
}

/// What is to be seen of a mirror that does not catch up.
pub fn scene(handle: &Handle) -> String {
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
    let mut scene = instances.join(", ");
    if !leaderless.is_empty() {
        scene.push_str(&format!("; without a leader: {leaderless:?}"));
    }
    if let Some(trouble) = super::log::last_trouble() {
        scene.push_str(&format!("; the last trouble: {trouble}"));
    }
    scene
}
