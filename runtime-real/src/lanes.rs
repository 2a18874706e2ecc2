//! This process's lanes: one [`Lane`] for each that was ever worked in.

use crate::client_config;
use crate::lane::{Lane, LaneEvents, LaneSettings};
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::sync::Arc;
use verbatim_core::command::LaneCommand;
use verbatim_core::{Attempt, LaneId};

pub(crate) struct Lanes {
    settings: Arc<Settings>,
    events: LaneEvents,
    lanes: BTreeMap<LaneId, Lane>,
}

impl Lanes {
    pub(crate) fn new(settings: &Arc<Settings>, events: LaneEvents) -> Lanes {
        Lanes { settings: Arc::clone(settings), events, lanes: BTreeMap::new() }
    }

    pub(crate) fn submit(&mut self, lane: LaneId, attempt: Attempt, command: LaneCommand) {
        let (settings, events) = (&self.settings, &self.events);
        let made = self
            .lanes
            .entry(lane)
            .or_insert_with(|| Lane::new(lane, lane_settings(settings, lane), events.clone()));
        made.submit(attempt, command);
    }
}

fn lane_settings(settings: &Settings, lane: LaneId) -> LaneSettings {
    LaneSettings {
        ledger: settings.flow.ledger(),
        transactional_id: settings.flow.transactional_id(lane),
        source_consumer: client_config::source_consumer(settings, lane),
        target_reader: client_config::target_reader(settings, lane),
        producer: client_config::target_producer(settings, lane),
        end_max: client_config::end_transaction_max(settings),
    }
}
