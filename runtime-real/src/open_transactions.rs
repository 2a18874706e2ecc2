//! Who holds back a partition's last stable offset: the producers of transactions that are still open.
//!
//! librdkafka knows no DescribeProducers (API key 61, Kafka 2.8), so this asks a partition's leader over a
//! connection of its own. It does so in plain text only: over TLS or SASL, or where the leader does not
//! answer, an open transaction is still found by its first offset, which is the last stable offset, but its
//! producer goes unnamed.

use crate::cluster::{Cluster, Place};
use crate::ffi::admin::{Isolation, Spec};
use crate::settings::Settings;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::TopicResponse;
use kafka_protocol::messages::{
    ApiKey, DescribeProducersRequest, DescribeProducersResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_types::{Partition, SourceOffset, SourcePartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use verbatim_core::event::OpenTransaction;
use verbatim_core::failure::Side;

const VERSION: i16 = 0;
/// Flexible versions throughout.
const REQUEST_HEADER_VERSION: i16 = 2;
const RESPONSE_HEADER_VERSION: i16 = 1;
const TIMEOUT: Duration = Duration::from_secs(3);
/// A broker remembers some thousands of producers a partition; an answer beyond this is not one.
const ANSWER_BYTES_MAX: usize = 16 << 20;

type Found = BTreeMap<SourcePartition, Vec<OpenTransaction>>;

/// The open transactions of each partition; a partition whose ends cannot be told is left out.
pub(crate) fn find(cluster: &Cluster, settings: &Settings, partitions: &[SourcePartition]) -> Found {
    let places: BTreeSet<Place> =
        partitions.iter().map(|partition| (partition.topic.clone(), partition.partition)).collect();
    let stable = cluster.offsets(&places, Spec::Latest, Isolation::ReadCommitted);
    let high = cluster.offsets(&places, Spec::Latest, Isolation::ReadUncommitted);
    let mut found = Found::new();
    let mut held: BTreeMap<Place, SourceOffset> = BTreeMap::new();
    for (place, stable) in stable {
        let (Ok(Some(stable)), Some(Ok(Some(high)))) = (stable, high.get(&place)) else { continue };
        found.insert(source_partition(&place), Vec::new());
        if stable.offset < high.offset {
            held.insert(place, SourceOffset(stable.offset));
        }
    }
    let named = if is_plain(settings) { ask_leaders(cluster, held.keys()) } else { Found::new() };
    for (place, first) in held {
        let partition = source_partition(&place);
        let unnamed = OpenTransaction { first: Some(first), producer_id: None };
        let open = named.get(&partition).filter(|open| !open.is_empty()).cloned();
        found.insert(partition, open.unwrap_or_else(|| vec![unnamed]));
    }
    found
}

fn source_partition(place: &Place) -> SourcePartition {
    SourcePartition { topic: place.0.clone(), partition: place.1 }
}

fn is_plain(settings: &Settings) -> bool {
    let protocol = settings.properties(Side::Source).get("security.protocol");
    protocol.is_none_or(|protocol| protocol.eq_ignore_ascii_case("plaintext"))
}

/// Asks the leader of each place; a leader that does not answer names nobody.
fn ask_leaders<'a>(cluster: &Cluster, places: impl Iterator<Item = &'a Place>) -> Found {
    let mut topics: BTreeMap<&TopicName, Vec<Partition>> = BTreeMap::new();
    for (topic, partition) in places {
        topics.entry(topic).or_default().push(*partition);
    }
    let mut found = Found::new();
    for (topic, partitions) in topics {
        for (address, partitions) in leaders(cluster, topic, &partitions) {
            match ask(&address, topic, &partitions) {
                Ok(open) => found.extend(open),
                Err(error) => {
                    tracing::warn!(%address, %topic, %error, "a leader does not say whose transactions are open");
                }
            }
        }
    }
    found
}

/// The address of each leader, with the partitions it leads.
fn leaders(
    cluster: &Cluster,
    topic: &TopicName,
    partitions: &[Partition],
) -> BTreeMap<String, Vec<Partition>> {
    let mut leaders: BTreeMap<String, Vec<Partition>> = BTreeMap::new();
    let Ok(metadata) = cluster.metadata(Some(topic.as_str())) else { return leaders };
    for described in metadata.topics().iter().flat_map(|topic| topic.partitions()) {
        let partition = Partition(described.id());
        let leader = metadata.brokers().iter().find(|broker| broker.id() == described.leader());
        if let Some(leader) = leader.filter(|_| partitions.contains(&partition)) {
            leaders.entry(format!("{}:{}", leader.host(), leader.port())).or_default().push(partition);
        }
    }
    leaders
}

fn ask(address: &str, topic: &TopicName, partitions: &[Partition]) -> io::Result<Found> {
    let mut stream = connect(address)?;
    stream.write_all(&request(topic, partitions).map_err(io::Error::other)?)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if ANSWER_BYTES_MAX < length {
        return Err(io::Error::other(format!("an answer of {length} bytes")));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    open_transactions(&answer).map_err(io::Error::other)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the address resolves to nothing");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The request with its length, as it goes over the wire.
fn request(topic: &TopicName, partitions: &[Partition]) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    RequestHeader::default()
        .with_request_api_key(ApiKey::DescribeProducers as i16)
        .with_request_api_version(VERSION)
        .with_client_id(Some(StrBytes::from_static_str("verbatim")))
        .encode(&mut body, REQUEST_HEADER_VERSION)
        .map_err(|error| error.to_string())?;
    let topic = TopicRequest::default()
        .with_name(StrBytes::from_string(topic.to_string()).into())
        .with_partition_indexes(partitions.iter().map(|partition| partition.0).collect());
    DescribeProducersRequest::default()
        .with_topics(vec![topic])
        .encode(&mut body, VERSION)
        .map_err(|error| error.to_string())?;
    let length = u32::try_from(body.len()).map_err(|error| error.to_string())?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// Reads an answer without its length.
fn open_transactions(mut answer: &[u8]) -> Result<Found, String> {
    ResponseHeader::decode(&mut answer, RESPONSE_HEADER_VERSION).map_err(|error| error.to_string())?;
    let response =
        DescribeProducersResponse::decode(&mut answer, VERSION).map_err(|error| error.to_string())?;
    Ok(select(response.topics))
}

/// A partition that the broker answers with an error is left out.
fn select(topics: Vec<TopicResponse>) -> Found {
    let mut found = Found::new();
    for topic in topics {
        for partition in topic.partitions.into_iter().filter(|partition| partition.error_code == 0) {
            let open = partition
                .active_producers
                .iter()
                .filter(|producer| 0 <= producer.current_txn_start_offset)
                .map(|producer| OpenTransaction {
                    first: Some(SourceOffset(producer.current_txn_start_offset)),
                    producer_id: Some(producer.producer_id.0),
                })
                .collect();
            found.insert(SourcePartition::new(topic.name.as_str(), partition.partition_index), open);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::ProducerId;
    use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState};

    #[test]
    fn the_request_is_as_the_protocol_says() {
        let frame = request(&"t".into(), &[Partition(3)]).unwrap();
        let expected = [
            &[0, 0, 0, 29][..],
            &[0, 61, 0, 0, 0, 0, 0, 0],
            &[0, 8],
            b"verbatim",
            &[0],
            // One topic named "t" with one partition, 3; no tagged fields anywhere.
            &[2, 2, b't', 2, 0, 0, 0, 3, 0, 0],
        ]
        .concat();
        assert_eq!(frame, expected);
    }

    #[test]
    fn only_open_transactions_are_named() {
        let producer = |id, start| {
            ProducerState::default().with_producer_id(ProducerId(id)).with_current_txn_start_offset(start)
        };
        let partition = |index, error, producers| {
            PartitionResponse::default()
                .with_partition_index(index)
                .with_error_code(error)
                .with_active_producers(producers)
        };
        let topic =
            TopicResponse::default().with_name(StrBytes::from_static_str("t").into()).with_partitions(vec![
                partition(0, 0, vec![producer(1, -1), producer(2, 17)]),
                partition(1, 6, vec![producer(3, 5)]),
            ]);
        let found = select(vec![topic]);
        let open = OpenTransaction { first: Some(SourceOffset(17)), producer_id: Some(2) };
        assert_eq!(found, Found::from([(SourcePartition::new("t", 0), vec![open])]));
    }
}
