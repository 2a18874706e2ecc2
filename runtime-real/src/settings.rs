//! What this process must know to reach the two clusters.

use crate::client_config;
use rdkafka::ClientConfig;
use std::collections::BTreeMap;
use std::fmt;
use verbatim_core::config::FlowName;
use verbatim_core::failure::Side;

/// Made by the cli from the user's file: the maps hold librdkafka's property names, already translated and checked;
/// nothing is refused here. What clients are made from it is in [`crate::client_config`].
#[derive(Clone)]
pub struct Settings {
    pub source: BTreeMap<String, String>,
    pub target: BTreeMap<String, String>,
    pub flow: FlowName,
    pub lanes: u32,
    /// `group.instance.id`: static membership (see [`crate::group`]).
    pub instance: Option<String>,
    /// Bounds all queues of all clients together.
    pub memory_bytes: u64,
}

impl Settings {
    pub fn properties(&self, side: Side) -> &BTreeMap<String, String> {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// What every client of one side is given: the user's properties, and what they all share. What each use sets over
    /// them shows in [`crate::client_configs`].
    pub fn client(&self, side: Side, purpose: &str) -> ClientConfig {
        client_config::client(self, side, purpose)
    }

    /// How much one lane's consumer may fetch ahead. All lanes may be this instance's, and an eighth of the
    /// memory is for what librdkafka holds before the mirror sees it.
    pub(crate) fn lane_queue_bytes(&self) -> u64 {
        self.memory_bytes / 8 / u64::from(self.lanes.max(1))
    }
}

/// Properties by their names only: passwords and keys are among their values.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { source, target, flow, lanes, instance, memory_bytes } = self;
        f.debug_struct("Settings")
            .field("source", &source.keys())
            .field("target", &target.keys())
            .field("flow", flow)
            .field("lanes", lanes)
            .field("instance", instance)
            .field("memory_bytes", memory_bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lanes: u32) -> Settings {
        let password = BTreeMap::from([("sasl.password".to_string(), "hunter2".to_string())]);
        let flow = FlowName::new("orders").unwrap();
        Settings {
            source: password.clone(),
            target: password,
            flow,
            lanes,
            instance: None,
            memory_bytes: 800,
        }
    }

    #[test]
    fn no_value_shows_where_settings_are_printed() {
        let shown = format!("{:?}", settings(8));
        assert!(shown.contains("sasl.password") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn an_eighth_of_the_memory_is_shared_by_all_lanes() {
        assert_eq!(settings(10).lane_queue_bytes(), 10);
        assert_eq!(settings(0).lane_queue_bytes(), 100);
    }
}
