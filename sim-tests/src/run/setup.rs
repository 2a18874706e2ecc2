//! What a plan means for the two clusters, the network and the flow.

use crate::oracle::FlowNames;
use crate::plan::{FaultClass, FlowPlan, Plan, Profile};
use kafka_model::ClusterConfig;
use runtime_sim::{ClientFaults, InstanceSettings, NetworkFaults, Rate, Setup, Slot, TraceMode};
use std::sync::OnceLock;
use std::time::Duration;
use verbatim_core::config::{Flow, FlowName, Limits, Start, Until};
use verbatim_core::route::{Rename, TopicFilter};
use verbatim_core::time::Timestamp;

pub const FLOW: &str = "sim";
pub const BROKERS: u8 = 3;

pub fn flow_names(plan: &Plan) -> FlowNames {
    let largest = |(topic, bytes): (&String, &u32)| (topic.as_str().into(), *bytes as usize);
    FlowNames {
        starts_at_end: plan.rare.starts_at_end,
        starts_at: plan.rare.starts_at_ms,
        odd_copies: plan.rare.odd_copies.iter().map(|(topic, odd)| (topic.as_str().into(), *odd)).collect(),
        target_clock_ms: plan.rare.target_clock_ms,
        target_bytes_max: plan.rare.target_bytes_max.iter().map(largest).collect(),
        ..FlowNames::of(FLOW, &plan.flow.target_prefix)
    }
}

pub fn setup(plan: &Plan, trace: TraceMode) -> Setup {
    Setup {
        source: cluster("source", &plan.flow),
        target: ClusterConfig {
            timed_out_produce_gets_invalid_txn_state: plan.flow.is_old_target,
            replication_delay_ms: plan.rare.target_replication_ms.unwrap_or(plan.flow.replication_delay_ms),
            ..cluster("target", &plan.flow)
        },
        brokers: BROKERS,
        source_clock_ms: plan.rare.source_clock_ms,
        target_clock_ms: plan.rare.target_clock_ms,
        network: network(&plan.profile),
        client: client(plan),
        trace,
        ..Setup::default()
    }
}

fn cluster(id: &str, flow: &FlowPlan) -> ClusterConfig {
    ClusterConfig {
        cluster_id: id.to_owned(),
        auto_create_topics: false,
        replication_delay_ms: flow.replication_delay_ms,
        replica_lag_time_max_ms: flow.replica_lag_ms,
        marker_delay_ms: flow.marker_delay_ms,
        failover_ms: flow.failover_ms,
        coordinator_load_ms: flow.coordinator_load_ms,
        transaction_timeout_scan_ms: 2_000,
        ..ClusterConfig::default()
    }
}

/// Loss, delay and errors at the rates of the profile.
pub fn network(profile: &Profile) -> NetworkFaults {
    let rate = |class| Rate((profile.probability(class) * 1e6) as u32);
    let is_late = profile.rate(FaultClass::LateRequests).is_some();
    NetworkFaults {
        slow: rate(FaultClass::SlowMessages),
        slow_max_ms: 20_000,
        request_lost: rate(FaultClass::RequestLost),
        response_lost: rate(FaultClass::ResponseLost),
        disconnect: rate(FaultClass::PartialSend),
        disconnect_end_txn: rate(FaultClass::TransactionTrouble),
        // What nobody tells of is what shows late.
        silent: Rate(if is_late { 600_000 } else { 300_000 }),
        refused: rate(FaultClass::ErrorAnswers),
        refused_after_apply: rate(FaultClass::ErrorAnswers),
        transaction_trouble: rate(FaultClass::TransactionTrouble),
        outlives_sender: rate(FaultClass::LateRequests),
        breaks_silently: Rate(if is_late { 500_000 } else { 0 }),
        strikes_workload: true,
        ..NetworkFaults::default()
    }
}

fn client(plan: &Plan) -> ClientFaults {
    ClientFaults {
        batch_records_max: plan.flow.batch_records_max,
        fetch_records_max: plan.flow.fetch_records_max,
        slow_step: Rate((plan.profile.probability(FaultClass::SlowSteps) * 1e6) as u32),
        send_refused: Rate(plan.rare.send_refused),
        ..ClientFaults::default()
    }
}

/// What is left of a client's habits when faults are over.
pub fn client_without_faults(plan: &Plan) -> ClientFaults {
    ClientFaults { slow_step: Rate::NEVER, send_refused: Rate::NEVER, ..client(plan) }
}

/// The name of a slot's process in claims.
pub fn incarnation(slot: Slot, start: u32) -> String {
    format!("i{}-{start}", slot.0)
}

/// The flow as one process of a slot runs it. No two processes have one incarnation.
pub fn flow(plan: &Plan, slot: Slot, start: u32) -> Flow {
    let milliseconds = Duration::from_millis;
    let rename = format!("{}{}", plan.flow.target_prefix, Rename::PLACEHOLDER);
    Flow {
        name: FlowName::new(FLOW).expect("it is a flow name"),
        incarnation: incarnation(slot, start),
        filter: everything(),
        rename: Rename::new(&rename).expect("it is a rename rule"),
        refresh: milliseconds(plan.flow.refresh_ms),
        replication_factor: None,
        start: match plan.rare.starts_at_ms {
            Some(time) => Start::Time(Timestamp(time)),
            None if plan.rare.starts_at_end => Start::Latest,
            None => Start::Earliest,
        },
        commit_interval: milliseconds(plan.flow.commit_interval_ms),
        lanes: plan.flow.lanes,
        ledger_replication_factor: None,
        intake_bytes_max: plan.flow.intake_bytes_max,
        until: plan.flow.is_bounded.then_some(Until::End),
        wait_open: milliseconds(20_000),
        limits: Limits { transaction_records_max: plan.flow.transaction_records_max, ..Limits::default() },
    }
}

pub fn settings(plan: &Plan, slot: Slot) -> InstanceSettings {
    let instance_id = plan.flow.has_static_members.then(|| format!("static-{}", slot.0));
    InstanceSettings { instance_id }
}

/// Compiled once: a pattern costs more than a second of virtual time.
fn everything() -> TopicFilter {
    static FILTER: OnceLock<TopicFilter> = OnceLock::new();
    FILTER.get_or_init(|| TopicFilter::new(&[".*".to_owned()], &[]).expect("it is a pattern")).clone()
}
