//! What `verbatim status` would show now, to somebody whom no fault of the network troubles.

use super::clusters::partitions;
use super::setup;
use crate::oracle::{Said, Stands};
use crate::plan::Plan;
use kafka_model::{Cluster, Fate};
use kafka_types::{SourceOffset, SourcePartition, TopicPartition};
use runtime_sim::{Handle, Slot};
use std::collections::BTreeMap;
use verbatim_core::LaneId;
use verbatim_core::event::{LedgerRecord, Listing, TopicInfo};
use verbatim_core::failure::Side;
use verbatim_core::ledger::FlowLedger;
use verbatim_core::status::{Extent, Extents, Row, Scene, State};
use verbatim_core::time::Timestamp;

/// All rows; none if the ledger cannot be read.
pub fn status(handle: &Handle, plan: &Plan) -> Result<Vec<Said>, String> {
    let flow = setup::flow(plan, Slot(0), 0);
    let records = handle.view(Side::Target, |target| ledger(target, flow.name.ledger().as_str()));
    let ledger = FlowLedger::replay(records).map_err(|bad| bad.to_string())?;
    let (source, extents) = handle.view(Side::Source, |source| (listing(source), extents(source)));
    let now = Timestamp(handle.now());
    let scene = Scene { flow: &flow, source, ledger, extents, open: BTreeMap::new(), now };
    let shown = Scene::partitions(&flow, &scene.source, &scene.ledger);
    Ok(shown.into_iter().map(|partition| said(scene.row(partition, None))).collect())
}

/// The ledger's records as a reader of committed records finds them.
fn ledger(target: &Cluster, topic: &str) -> Vec<LedgerRecord> {
    let mut records = Vec::new();
    for tp in partitions(target).into_iter().filter(|tp| tp.topic.as_str() == topic) {
        let Some(view) = target.partition_view(&tp) else { continue };
        for (batch, fate) in target.fates(&tp, view.log_start_offset) {
            let is_seen = matches!(fate, Fate::Plain | Fate::Committed);
            if !is_seen || view.last_stable_offset <= batch.base_offset {
                continue;
            }
            records.extend(batch.records.iter().map(|record| LedgerRecord {
                lane: LaneId(tp.partition.0.cast_unsigned()),
                offset: kafka_types::TargetOffset(batch.offset_of(record)),
                key: record.key.as_deref().unwrap_or_default().to_vec(),
                value: record.value.as_deref().unwrap_or_default().to_vec(),
            }));
        }
    }
    records
}

fn listing(source: &Cluster) -> Listing {
    let topics = source.topic_names().map(|(name, id, partitions)| {
        let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
        (name.clone(), TopicInfo { id, partitions, internal: false })
    });
    Listing { topics: topics.collect(), ..Listing::default() }
}

fn extents(source: &Cluster) -> Extents<SourcePartition, SourceOffset> {
    let extent = |tp: TopicPartition| {
        let view = source.partition_view(&tp)?;
        let extent = Extent {
            start: SourceOffset(view.log_start_offset),
            last_stable: SourceOffset(view.last_stable_offset),
            high_watermark: SourceOffset(view.high_watermark),
        };
        Some((SourcePartition { topic: tp.topic, partition: tp.partition }, Ok(extent)))
    };
    partitions(source).into_iter().filter_map(extent).collect()
}

/// A row in the oracle's words.
fn said(row: Row) -> Said {
    Said {
        partition: SourcePartition { topic: row.topic, partition: row.partition },
        lane: row.lane.cast_signed(),
        owner: row.owner,
        position: row.position.map(|offset| offset.0),
        source_end: row.source_end.map(|offset| offset.0),
        lag: row.lag,
        stands: match row.state {
            State::Copying => Stands::Copying,
            State::CaughtUp => Stands::CaughtUp,
            State::Halted => Stands::Halted,
            State::Waiting => Stands::Waiting,
            State::Gap => Stands::Gap,
        },
        reason: row.reason,
    }
}
