//! A process of the mirror: a madsim node that can be killed, paused and started again.

use crate::shared::Shared;
use crate::slots::Slot;
use verbatim_core::config::Flow;

/// What a process is started with beside its flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceSettings {
    /// `group.instance.id`: a static member, if there is one.
    pub instance_id: Option<String>,
}

pub(crate) fn start(_shared: &Shared, _slot: Slot, _flow: Flow, _settings: InstanceSettings) {}

pub(crate) fn crash(_shared: &Shared, _slot: Slot) {}

pub(crate) fn pause(_shared: &Shared, _slot: Slot) {}

pub(crate) fn resume(_shared: &Shared, _slot: Slot) {}
