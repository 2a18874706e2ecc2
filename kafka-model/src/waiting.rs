//! Requests that are not answered yet because something has to happen first.

use crate::api::delete_records::WaitingDeleteRecords;
use crate::api::fetch::FetchRequest;
use crate::api::produce::WaitingProduce;
use crate::timer::Timer;
use crate::{BrokerId, Cluster, Millis, RequestHeader, RequestToken, Response};
use kafka_types::TopicPartition;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waiting {
    Produce(WaitingProduce),
    Fetch(FetchRequest),
    DeleteRecords(WaitingDeleteRecords),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    header: RequestHeader,
    partitions: Vec<TopicPartition>,
    waiting: Waiting,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct WaitingRequests {
    requests: BTreeMap<RequestToken, Entry>,
}

impl WaitingRequests {
    pub(crate) fn contains(&self, token: RequestToken) -> bool {
        self.requests.contains_key(&token)
    }

    pub(crate) fn drop_requests_of(&mut self, broker: BrokerId) -> Vec<(RequestToken, RequestHeader)> {
        let dropped = self.requests.extract_if(.., |_, entry| entry.header.broker == broker);
        dropped.map(|(token, entry)| (token, entry.header)).collect()
    }
}

impl Cluster {
    /// Holds a request back until one of the partitions changes in a way that answers it, or until `deadline`.
    pub(crate) fn wait(
        &mut self,
        header: RequestHeader,
        partitions: Vec<TopicPartition>,
        deadline: Millis,
        waiting: Waiting,
    ) {
        let token = header.token;
        for tp in &partitions {
            if let Some(partition) = self.topics.partition_mut(tp) {
                partition.waiting_requests.insert(token);
            }
        }
        self.timers.set(Timer::Request(token), deadline);
        self.waiting.requests.insert(token, Entry { header, partitions, waiting });
    }

    /// Looks whether a waiting request can be answered; when its time is over it is answered anyway.
    pub(crate) fn try_to_answer(&mut self, token: RequestToken, is_over: bool) {
        let Some(mut entry) = self.waiting.requests.remove(&token) else { return };
        let response = match &mut entry.waiting {
            Waiting::Produce(waiting) => {
                self.complete_produce(&entry.header, waiting, is_over).map(Response::Produce)
            }
            Waiting::Fetch(request) => {
                self.complete_fetch(&entry.header, request, is_over).map(Response::Fetch)
            }
            Waiting::DeleteRecords(waiting) => {
                self.complete_delete_records(&entry.header, waiting, is_over).map(Response::DeleteRecords)
            }
        };
        match response {
            Some(response) => {
                for tp in &entry.partitions {
                    if let Some(partition) = self.topics.partition_mut(tp) {
                        partition.waiting_requests.remove(&token);
                    }
                }
                self.timers.cancel(Timer::Request(token));
                self.respond(entry.header, response);
            }
            None => {
                self.waiting.requests.insert(token, entry);
            }
        }
    }

    /// Notes that something changed in a partition. What waits for it is looked at before the call into the
    /// cluster returns.
    pub(crate) fn touch(&mut self, tp: &TopicPartition) {
        let Some(partition) = self.topics.partition(tp) else { return };
        let is_awaited = !partition.waiting_requests.is_empty() || !partition.waiting_markers.is_empty();
        if is_awaited && self.touched.last() != Some(tp) {
            self.touched.push(tp.clone());
        }
    }

    pub(crate) fn settle(&mut self) {
        while let Some(tp) = self.touched.pop() {
            self.markers_replicated(&tp);
            let Some(partition) = self.topics.partition(&tp) else { continue };
            let tokens: Vec<RequestToken> = partition.waiting_requests.iter().copied().collect();
            for token in tokens {
                self.try_to_answer(token, false);
            }
        }
        for token in std::mem::take(&mut self.orphaned) {
            self.try_to_answer(token, false);
        }
    }
}
