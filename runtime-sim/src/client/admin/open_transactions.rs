//! Who holds back a partition's last stable offset: both ends, then DescribeProducers to each leader.

use super::answers::of_source;
use crate::client::io::Io;
use crate::client::library::Library;
use crate::client::offsets::{Found, Offsets};
use crate::client::wire::Pending;
use kafka_model::api::describe_producers::DescribeProducersRequest;
use kafka_model::api::fetch::IsolationLevel;
use kafka_model::api::list_offsets::OffsetSpec;
use kafka_model::{BrokerId, Millis, Response};
use kafka_types::{SourceOffset, SourcePartition, TopicPartition};
use std::collections::BTreeMap;
use verbatim_core::event::OpenTransaction;

const LEADER_MAX_MS: Millis = 3_000;

type Answer = BTreeMap<SourcePartition, Vec<OpenTransaction>>;

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Stage {
    Ends { stable: Offsets, found_stable: Option<Found>, high: Offsets, found_high: Option<Found> },
    Producers(Vec<Pending>),
}

pub(super) struct FindingOpen {
    stage: Stage,
    /// First open offset of each partition that has one.
    held: BTreeMap<TopicPartition, SourceOffset>,
    found: Answer,
}

impl FindingOpen {
    pub(super) fn begin(
        io: &Io,
        library: &mut Library,
        partitions: &[SourcePartition],
        until: Millis,
    ) -> FindingOpen {
        debug_assert!(io.now < until);
        let mut ask = |isolation| {
            let places: Vec<_> = partitions.iter().map(of_source).collect();
            Offsets::ask(library, places, OffsetSpec::Latest, isolation, until)
        };
        let stage = Stage::Ends {
            stable: ask(IsolationLevel::ReadCommitted),
            found_stable: None,
            high: ask(IsolationLevel::ReadUncommitted),
            found_high: None,
        };
        FindingOpen { stage, held: BTreeMap::new(), found: Answer::new() }
    }

    pub(super) fn advance(&mut self, io: &mut Io, library: &mut Library) -> Option<Answer> {
        if let Stage::Ends { stable, found_stable, high, found_high } = &mut self.stage {
            if found_stable.is_none() {
                *found_stable = stable.advance(io, library);
            }
            if found_high.is_none() {
                *found_high = high.advance(io, library);
            }
            let (Some(stable), Some(high)) = (&found_stable, &found_high) else { return None };
            for (place, stable) in stable {
                let (Ok(stable), Some(Ok(high))) = (stable, high.get(place)) else { continue };
                self.found.insert(source(place), Vec::new());
                if stable.offset < high.offset {
                    self.held.insert(place.clone(), SourceOffset(stable.offset));
                }
            }
            self.stage = Stage::Producers(ask_leaders(io, library, self.held.keys()));
        }
        let Stage::Producers(asked) = &mut self.stage else { return None };
        let mut left = Vec::new();
        for pending in asked.drain(..) {
            match io.wire.take(pending) {
                None => left.push(pending),
                Some(Ok(Response::DescribeProducers(response))) => {
                    for told in response.partitions.iter().filter(|told| !told.error_code.is_error()) {
                        let open = told
                            .active_producers
                            .iter()
                            .filter(|it| 0 <= it.current_transaction_start_offset);
                        let open = open.map(|it| OpenTransaction {
                            first: Some(SourceOffset(it.current_transaction_start_offset)),
                            producer_id: Some(it.producer_id),
                        });
                        self.found.entry(source(&told.topic_partition)).or_default().extend(open);
                    }
                }
                // A leader that does not answer names nobody.
                Some(_) => {}
            }
        }
        *asked = left;
        if !asked.is_empty() {
            return None;
        }
        for (place, first) in &self.held {
            let open = self.found.entry(source(place)).or_default();
            if open.is_empty() {
                open.push(OpenTransaction { first: Some(*first), producer_id: None });
            }
        }
        Some(std::mem::take(&mut self.found))
    }
}

fn source(place: &TopicPartition) -> SourcePartition {
    SourcePartition { topic: place.topic.clone(), partition: place.partition }
}

fn ask_leaders<'a>(
    io: &mut Io,
    library: &Library,
    places: impl Iterator<Item = &'a TopicPartition>,
) -> Vec<Pending> {
    let mut by_leader: BTreeMap<BrokerId, Vec<TopicPartition>> = BTreeMap::new();
    for place in places {
        if let Some(broker) = library.metadata.leader(place).and_then(|leader| leader.broker) {
            by_leader.entry(broker).or_default().push(place.clone());
        }
    }
    let ask = |(broker, partitions)| {
        let request = DescribeProducersRequest { partitions };
        library.send_within(io, broker, request, LEADER_MAX_MS)
    };
    by_leader.into_iter().map(ask).collect()
}
