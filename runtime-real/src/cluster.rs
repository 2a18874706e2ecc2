//! One cluster, asked: every method is one question that blocks until it is answered or given up.

pub(crate) use crate::ffi::admin::Place;

use crate::client::Watcher;
use crate::client_config::{self, REQUEST_MS};
use crate::ffi::admin::{self, ByTopic, Isolation, Offsets, Spec, ToldOffset, TopicToCreate};
use crate::ffi::{ClientError, Code};
use crate::settings::Settings;
use crate::trouble::Asked;
use kafka_types::{TopicId, TopicName};
use rdkafka::client::NativeClient;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::metadata::Metadata;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use verbatim_core::command::{NewTopic, Topics};
use verbatim_core::event::{ConfigValue, Event, Listing, TopicConfig, TopicInfo};
use verbatim_core::failure::{Side, Trouble};

const TIMEOUT: Duration = Duration::from_millis(REQUEST_MS as u64);

/// How long a broker is waited for at a time; in between, librdkafka's reports are read.
const SLICE: Duration = Duration::from_millis(500);

/// How long the number of brokers is taken from an earlier answer, so that a description of named topics is
/// one request.
const BROKERS_KNOWN: Duration = Duration::from_secs(30);

/// Topics in one request.
const TOPICS_MAX: usize = 1_000;

pub(crate) struct Cluster {
    client: BaseConsumer<Watcher>,
    brokers: Mutex<Option<(Instant, u32)>>,
}

impl Cluster {
    pub(crate) fn connect(
        settings: &Settings,
        side: Side,
        events: Option<UnboundedSender<Event>>,
    ) -> Result<Cluster, KafkaError> {
        let client = client_config::admin(settings, side).create_with_context(Watcher::new(side, events))?;
        Ok(Cluster { client, brokers: Mutex::default() })
    }

    /// Lets librdkafka's log lines and errors through to the context. To be called now and then.
    pub(crate) fn serve(&self) {
        // A wait of nothing at all would end with the first log line.
        while self.client.poll(Duration::from_millis(1)).is_some() {}
    }

    fn native(&self) -> &NativeClient {
        self.client.client().native_client()
    }

    /// Makes a request, once a broker is known to answer.
    fn request<T>(
        &self,
        request: impl FnOnce(&NativeClient) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let watcher = self.client.context();
        self.serve();
        if watcher.is_doubtful() {
            self.find_broker()?;
            watcher.doubt(false);
        }
        let outcome = request(self.native());
        if outcome.is_err() {
            self.serve();
            watcher.doubt(true);
        }
        outcome
    }

    /// Waits for any broker, and no longer than until it is told why none will do.
    fn find_broker(&self) -> Result<(), ClientError> {
        let since = Instant::now();
        loop {
            let Err(error) = admin::find_broker(self.native(), SLICE) else { return Ok(()) };
            self.serve();
            let is_hopeless = self.client.context().is_refused() || TIMEOUT <= since.elapsed();
            if is_hopeless {
                return Err(error);
            }
        }
    }

    /// What `error` means, with all that librdkafka said about the brokers.
    fn explain(&self, error: &ClientError, operation: &'static str, name: &str) -> Trouble {
        self.client.context().explain(error, &Asked::new(operation, name))
    }

    pub(crate) fn listing(&self, topics: &Topics) -> Result<Listing, Trouble> {
        let describe = |error: ClientError| self.explain(&error, "Describe", "");
        match topics {
            Topics::All => {
                let names = self.names()?;
                let mut listing = self.described(&names).map_err(describe)?;
                // Deleted between the two requests, so not among all topics.
                listing.unknown.clear();
                Ok(listing)
            }
            Topics::Named(names) => self.described(&names.iter().cloned().collect()).map_err(describe),
        }
    }

    fn names(&self) -> Result<BTreeSet<TopicName>, Trouble> {
        let metadata = self.metadata(None).map_err(|error| self.explain(&error, "Describe", ""))?;
        Ok(metadata.topics().iter().map(|topic| TopicName::from(topic.name())).collect())
    }

    pub(crate) fn metadata(&self, topic: Option<&str>) -> Result<Metadata, ClientError> {
        self.request(|_| {
            self.client.fetch_metadata(topic, TIMEOUT).map_err(|error| {
                let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
                ClientError::of_rdkafka(code, "metadata")
            })
        })
    }

    fn described(&self, names: &BTreeSet<TopicName>) -> Result<Listing, ClientError> {
        let brokers = self.brokers(names.is_empty())?;
        let mut listing = Listing { brokers, ..Listing::default() };
        let names: Vec<&str> = names.iter().map(TopicName::as_str).collect();
        for some in names.chunks(TOPICS_MAX) {
            for (name, description) in self.request(|client| admin::describe_topics(client, some, TIMEOUT))? {
                let name = TopicName::from(name.as_str());
                match description {
                    Ok(topic) => {
                        let info = TopicInfo {
                            id: TopicId(topic.id),
                            partitions: topic.partitions,
                            internal: topic.internal,
                        };
                        listing.topics.insert(name, info);
                    }
                    Err(error) if is_unknown(&error) => listing.unknown.push(name),
                    Err(error) => {
                        let trouble = error.trouble(&Asked::new("Describe", name.as_str()));
                        listing.trouble.insert(name, trouble);
                    }
                }
            }
        }
        // Read last: it is of the metadata just received.
        let id = admin::cluster_id(self.native()).filter(|id| !id.is_empty());
        listing.cluster_id = id.ok_or_else(|| ClientError::timed_out("the question for the cluster's id"))?;
        Ok(listing)
    }

    fn brokers(&self, anew: bool) -> Result<u32, ClientError> {
        let known = *self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, brokers)) = known.filter(|(at, _)| !anew && at.elapsed() < BROKERS_KNOWN) {
            return Ok(brokers);
        }
        let cluster = self.request(|client| admin::describe_cluster(client, TIMEOUT))?;
        let mut known = self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((Instant::now(), cluster.brokers));
        Ok(cluster.brokers)
    }

    /// Effective configurations. A topic that is not there, or has no answer just now, is left out; one that
    /// may not be described fails all, since nothing else would tell.
    pub(crate) fn configs(&self, topics: &[TopicName]) -> Result<BTreeMap<TopicName, TopicConfig>, Trouble> {
        let names: BTreeSet<&str> = topics.iter().map(TopicName::as_str).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut configs = BTreeMap::new();
        for some in names.chunks(TOPICS_MAX) {
            let answer = self
                .request(|client| admin::describe_configs(client, some, TIMEOUT))
                .map_err(|error| self.explain(&error, "DescribeConfigs", &some.join(", ")))?;
            for (name, entries) in answer {
                let entries = match entries.map_err(|error| self.explain(&error, "DescribeConfigs", &name)) {
                    Ok(entries) => entries,
                    Err(Trouble::Passing(why)) => {
                        tracing::debug!(topic = name, why, "a configuration is left out");
                        continue;
                    }
                    Err(trouble) => return Err(trouble),
                };
                let config = entries
                    .into_iter()
                    .filter_map(|entry| {
                        let value = ConfigValue { value: entry.value?, overridden: entry.on_topic };
                        Some((entry.name, value))
                    })
                    .collect();
                configs.insert(TopicName::from(name.as_str()), config);
            }
        }
        Ok(configs)
    }

    /// Whether records may be written to each topic. Those of which nothing is known are left out.
    pub(crate) fn writable(&self, topics: &[TopicName]) -> Result<BTreeMap<TopicName, bool>, Trouble> {
        let names: BTreeSet<&str> = topics.iter().map(TopicName::as_str).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut writable = BTreeMap::new();
        for some in names.chunks(TOPICS_MAX) {
            let answer = self
                .request(|client| admin::writable_topics(client, some, TIMEOUT))
                .map_err(|error| self.explain(&error, "Describe", ""))?;
            let told = answer.into_iter().filter_map(|(name, may)| Some((name, may.ok()?)));
            writable.extend(told.map(|(name, may)| (TopicName::new(name), may)));
        }
        Ok(writable)
    }

    pub(crate) fn create(&self, topics: &[NewTopic]) -> BTreeMap<TopicName, Result<(), Trouble>> {
        let wanted: Vec<_> = topics
            .iter()
            .map(|topic| TopicToCreate {
                name: topic.name.as_str(),
                partitions: topic.partitions,
                replication_factor: topic.replication_factor,
                config: topic.config.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            })
            .collect();
        let names = topics.iter().map(|topic| topic.name.clone());
        let outcomes = self.request(|client| admin::create_topics(client, &wanted, TIMEOUT));
        self.outcomes(names, outcomes, "Create", |_, error| match error.code {
            Code::RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS => Ok(()),
            _ => Err(None),
        })
    }

    pub(crate) fn grow(&self, topics: &BTreeMap<TopicName, u32>) -> BTreeMap<TopicName, Result<(), Trouble>> {
        let wanted: Vec<_> = topics.iter().map(|(topic, &total)| (topic.as_str(), total)).collect();
        let outcomes = self.request(|client| admin::create_partitions(client, &wanted, TIMEOUT));
        self.outcomes(topics.keys().cloned(), outcomes, "Alter", |name, error| {
            // Also the answer to a topic that has that many already, or more; only a look tells.
            match error.code {
                Code::RD_KAFKA_RESP_ERR_INVALID_PARTITIONS => self.has_partitions(name, topics),
                _ => Err(None),
            }
        })
    }

    /// A broker that shows fewer has not heard of it yet, since another has just said that there are as many.
    fn has_partitions(
        &self,
        name: &TopicName,
        wanted: &BTreeMap<TopicName, u32>,
    ) -> Result<(), Option<Trouble>> {
        let unseen =
            |why: String| Some(Trouble::Passing(format!("cannot see how many partitions it has: {why}")));
        let listing = self.described(&BTreeSet::from([name.clone()])).map_err(|error| unseen(error.text))?;
        match listing.topics.get(name).zip(wanted.get(name)) {
            Some((topic, wanted)) if *wanted <= topic.partitions => Ok(()),
            Some(_) => Err(unseen("a broker still shows fewer".into())),
            None => Err(unseen("it is not listed".into())),
        }
    }

    /// An outcome for each name: those given, or that of the whole request. `excuse` tells which errors are none,
    /// and may say what is wrong instead.
    fn outcomes(
        &self,
        names: impl Iterator<Item = TopicName>,
        outcomes: Result<ByTopic<()>, ClientError>,
        operation: &'static str,
        excuse: impl Fn(&TopicName, &ClientError) -> Result<(), Option<Trouble>>,
    ) -> BTreeMap<TopicName, Result<(), Trouble>> {
        let given: Result<BTreeMap<String, _>, _> = outcomes.map(|outcomes| outcomes.into_iter().collect());
        names
            .map(|name| {
                let outcome = match &given {
                    Err(error) => Err(error.clone()),
                    Ok(given) => given.get(name.as_str()).cloned().unwrap_or_else(|| Err(unanswered())),
                };
                let outcome = match outcome {
                    Err(error) => excuse(&name, &error).map_err(|trouble| {
                        trouble.unwrap_or_else(|| self.explain(&error, operation, name.as_str()))
                    }),
                    Ok(()) => Ok(()),
                };
                (name, outcome)
            })
            .collect()
    }

    /// One offset of each partition, `None` where no record is that young; an answer for every partition.
    pub(crate) fn offsets(
        &self,
        places: &BTreeSet<Place>,
        spec: Spec,
        isolation: Isolation,
    ) -> BTreeMap<Place, Result<Option<ToldOffset>, Trouble>> {
        let answers = self.list_offsets(places, spec, isolation);
        let stale: BTreeSet<Place> =
            answers.iter().filter(|(_, answer)| is_stale(answer)).map(|(place, _)| place.clone()).collect();
        let mut told = self.told(answers);
        if !stale.is_empty() {
            told.extend(self.offsets_anew(stale, spec, isolation));
        }
        told
    }

    /// librdkafka takes leaders from what it knows already, and counts what it does not know as absent. So what
    /// it could not find is described, and asked for once more where it exists.
    fn offsets_anew(
        &self,
        stale: BTreeSet<Place>,
        spec: Spec,
        isolation: Isolation,
    ) -> BTreeMap<Place, Result<Option<ToldOffset>, Trouble>> {
        let names = stale.iter().map(|(topic, _)| topic.clone()).collect();
        let listing = match self.described(&names) {
            Ok(listing) => listing,
            Err(error) => {
                return self.told(stale.into_iter().map(|place| (place, Err(error.clone()))).collect());
            }
        };
        let (present, absent): (BTreeSet<Place>, BTreeSet<Place>) =
            stale.into_iter().partition(|(topic, _)| listing.topics.contains_key(topic));
        let mut told = self.told(self.list_offsets(&present, spec, isolation));
        told.extend(absent.into_iter().map(|place| {
            let unknown = || Trouble::Passing(format!("the cluster knows no topic {}", place.0));
            let trouble = listing.trouble.get(&place.0).cloned().unwrap_or_else(unknown);
            (place, Err(trouble))
        }));
        told
    }

    fn told(&self, answers: Offsets) -> BTreeMap<Place, Result<Option<ToldOffset>, Trouble>> {
        let tell = |(place, answer): (Place, Result<Option<ToldOffset>, ClientError>)| {
            let answer = answer.map_err(|error| self.explain(&error, "Describe", place.0.as_str()));
            (place, answer)
        };
        answers.into_iter().map(tell).collect()
    }

    fn list_offsets(&self, places: &BTreeSet<Place>, spec: Spec, isolation: Isolation) -> Offsets {
        if places.is_empty() {
            return BTreeMap::new();
        }
        let everywhere = |error: &ClientError| {
            places.iter().map(|place| (place.clone(), Err(error.clone()))).collect::<Offsets>()
        };
        match self.request(|client| admin::list_offsets(client, places, spec, isolation, TIMEOUT)) {
            Err(error) => everywhere(&error),
            Ok(given) => {
                let mut answers = everywhere(&unanswered());
                answers.extend(given);
                answers
            }
        }
    }
}

fn unanswered() -> ClientError {
    ClientError::new(Code::RD_KAFKA_RESP_ERR__PARTIAL, "the brokers' answer left this out")
}

fn is_unknown(error: &ClientError) -> bool {
    matches!(
        error.code,
        Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART | Code::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
    )
}

fn is_stale(answer: &Result<Option<ToldOffset>, ClientError>) -> bool {
    answer.as_ref().is_err_and(|error| {
        matches!(
            error.code,
            Code::RD_KAFKA_RESP_ERR__NOENT
                | Code::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
                | Code::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
                | Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART
                | Code::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE
                | Code::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION
                | Code::RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH
        )
    })
}
