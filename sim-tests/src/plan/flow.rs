use super::draw::Draw;
use runtime_sim::Random;
use serde::{Deserialize, Serialize};

/// The flow under test, as its operator configured it, and the clusters it runs between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPlan {
    pub instances: u8,
    pub lanes: u32,
    /// Instances end by themselves once they have copied what there was when they started.
    pub is_bounded: bool,
    /// Whether instances have instance ids.
    pub has_static_members: bool,
    /// Before a source topic's name on the target.
    pub target_prefix: String,
    pub commit_interval_ms: u64,
    pub refresh_ms: u64,
    pub transaction_records_max: u64,
    pub intake_bytes_max: u64,
    /// Of the client library: records in one batch that is produced, and that is handed to the mirror.
    pub batch_records_max: u32,
    pub fetch_records_max: u32,
    /// Of both clusters: so long after an append followers have it.
    pub replication_delay_ms: i64,
    pub marker_delay_ms: i64,
    pub failover_ms: i64,
    /// A replica that is behind for longer is out of sync.
    pub replica_lag_ms: i64,
    pub coordinator_load_ms: i64,
    /// A broker from before KAFKA-19690 was mended.
    pub is_old_target: bool,
}

impl FlowPlan {
    pub fn draw(random: &mut Random) -> FlowPlan {
        FlowPlan {
            instances: 3,
            lanes: u32::try_from(random.between(2, 8)).unwrap_or(2),
            is_bounded: random.chance(0.25),
            has_static_members: random.chance(0.5),
            target_prefix: if random.chance(0.3) { "copy.".to_owned() } else { String::new() },
            commit_interval_ms: random.log_uniform(50.0, 2_000.0) as u64,
            refresh_ms: random.log_uniform(1_000.0, 15_000.0) as u64,
            // Not so few that a commit every second or two never catches up.
            transaction_records_max: random.log_uniform(40.0, 100_000.0) as u64,
            intake_bytes_max: random.log_uniform(64_000.0, 16_000_000.0) as u64,
            batch_records_max: random.log_uniform(1.0, 1_000.0) as u32,
            fetch_records_max: random.log_uniform(1.0, 1_000.0) as u32,
            replication_delay_ms: if random.chance(0.7) { random.between(1, 20) } else { 0 },
            marker_delay_ms: if random.chance(0.7) { random.log_uniform(1.0, 200.0) as i64 } else { 0 },
            failover_ms: random.between(0, 3_000),
            replica_lag_ms: random.between(1_000, 10_000),
            coordinator_load_ms: random.between(0, 1_000),
            is_old_target: random.chance(0.5),
        }
    }
}
