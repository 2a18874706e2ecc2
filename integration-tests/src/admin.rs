//! Topics made, grown, changed and deleted by the tests themselves.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreateAclsRequest, IncrementalAlterConfigsRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use rdkafka::ClientConfig;
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;

use crate::wire;

const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Admin {
    bootstrap: String,
    client: AdminClient<DefaultClientContext>,
    reader: BaseConsumer,
}

impl Admin {
    pub fn connect(bootstrap: &str) -> Result<Admin> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", bootstrap).set("allow.auto.create.topics", "false");
        Ok(Admin { bootstrap: bootstrap.to_owned(), client: config.create()?, reader: config.create()? })
    }

    pub fn create_topic(&self, topic: &str, partitions: usize) -> Result<()> {
        self.create_topic_with(topic, partitions, &[])
    }

    /// Creates a topic and waits until every partition has a leader.
    pub fn create_topic_with(&self, topic: &str, partitions: usize, config: &[(&str, &str)]) -> Result<()> {
        let count = i32::try_from(partitions)?;
        let mut new = NewTopic::new(topic, count, TopicReplication::Fixed(1));
        for (name, value) in config {
            new = new.set(name, value);
        }
        one(wait(self.client.create_topics([&new], &options()))?)
            .with_context(|| format!("topic {topic} cannot be created"))?;
        self.wait_for_partitions(topic, partitions)
    }

    /// Deletes a topic and waits until it is gone.
    pub fn delete_topic(&self, topic: &str) -> Result<()> {
        one(wait(self.client.delete_topics(&[topic], &options()))?)
            .with_context(|| format!("topic {topic} cannot be deleted"))?;
        crate::wait_for("the topic to be gone", TIMEOUT, || {
            self.partition_count(topic).is_ok_and(|count| count.is_none()).then_some(())
        });
        Ok(())
    }

    /// Grows a topic to that many partitions.
    pub fn grow_topic(&self, topic: &str, partitions: usize) -> Result<()> {
        let new = NewPartitions::new(topic, partitions);
        one(wait(self.client.create_partitions([&new], &options()))?)
            .with_context(|| format!("topic {topic} cannot be grown"))?;
        self.wait_for_partitions(topic, partitions)
    }

    /// Deletes the records of a partition below an offset.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) -> Result<()> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(before))?;
        let result = wait(self.client.delete_records(&list, &options()))?;
        for element in result.elements() {
            element.error().with_context(|| format!("records of {topic} {partition} cannot be deleted"))?;
        }
        Ok(())
    }

    /// `None` when there is no such topic.
    pub fn partition_count(&self, topic: &str) -> Result<Option<usize>> {
        // A plain request, not the client's: what a client has cached about a topic outlives the topic.
        let request = MetadataRequest::default()
            .with_allow_auto_topic_creation(false)
            .with_topics(Some(vec![MetadataRequestTopic::default().with_name(Some(name(topic)))]));
        let answer = wire::call(&self.bootstrap, 9, &request)?;
        let found = answer.topics.first().context("no answer about the topic")?;
        match found.error_code {
            0 => Ok(Some(found.partitions.iter().filter(|partition| partition.error_code == 0).count())),
            code if code == RDKafkaErrorCode::UnknownTopicOrPartition as i16 => Ok(None),
            code => Err(anyhow!("metadata of {topic}: error {code}")),
        }
    }

    /// All topics, the internal ones too.
    pub fn topics(&self) -> Result<Vec<String>> {
        let metadata = self.reader.fetch_metadata(None, TIMEOUT)?;
        Ok(metadata.topics().iter().map(|topic| topic.name().to_owned()).collect())
    }

    /// First offset and high watermark.
    pub fn watermarks(&self, topic: &str, partition: i32) -> Result<(i64, i64)> {
        let mut config = ClientConfig::new();
        // librdkafka asks for the end that its own isolation level would see.
        config.set("bootstrap.servers", &self.bootstrap).set("isolation.level", "read_uncommitted");
        let reader: BaseConsumer = config.create()?;
        Ok(reader.fetch_watermarks(topic, partition, TIMEOUT)?)
    }

    /// The value of one configuration key of a topic.
    pub fn topic_config(&self, topic: &str, key: &str) -> Result<Option<String>> {
        let answer = wait(self.client.describe_configs(&[ResourceSpecifier::Topic(topic)], &options()))?;
        let resource = answer
            .into_iter()
            .next()
            .context("no answer about the topic")?
            .map_err(|code| anyhow!("configuration of {topic}: {code}"))?;
        Ok(resource.get(key).and_then(|entry| entry.value.clone()))
    }

    /// Changes one configuration key of a topic and leaves the others alone.
    pub fn set_topic_config(&self, topic: &str, key: &str, value: &str) -> Result<()> {
        const TOPIC: i8 = 2;
        const SET: i8 = 0;
        let change = AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(SET)
            .with_value(Some(text(value)));
        let resource = AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text(topic))
            .with_configs(vec![change]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        let answer = wire::call(&self.bootstrap, 1, &request)?;
        for response in &answer.responses {
            ensure!(response.error_code == 0, "{key} of {topic}: error {}", response.error_code);
        }
        Ok(())
    }

    /// Allows a user one operation on one resource, or on all of them with the name `*`.
    /// The numbers are Kafka's: resource 2 topic, 3 group, 4 cluster, 5 transactional id; operation 2 all,
    /// 3 read, 4 write, 5 create, 8 describe, 10 describe configs, 12 idempotent write.
    pub fn allow(&self, user: &str, resource: i8, resource_name: &str, operation: i8) -> Result<()> {
        const LITERAL: i8 = 3;
        const ALLOW: i8 = 3;
        let creation = AclCreation::default()
            .with_resource_type(resource)
            .with_resource_name(text(resource_name))
            .with_resource_pattern_type(LITERAL)
            .with_principal(text(&format!("User:{user}")))
            .with_host(text("*"))
            .with_operation(operation)
            .with_permission_type(ALLOW);
        let request = CreateAclsRequest::default().with_creations(vec![creation]);
        let answer = wire::call(&self.bootstrap, 2, &request)?;
        for result in &answer.results {
            ensure!(result.error_code == 0, "ACL for {user}: error {}", result.error_code);
        }
        Ok(())
    }

    fn wait_for_partitions(&self, topic: &str, partitions: usize) -> Result<()> {
        crate::wait_for("the partitions to have leaders", TIMEOUT, || {
            (self.partition_count(topic).ok()? == Some(partitions)).then_some(())
        });
        Ok(())
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(TIMEOUT)).operation_timeout(Some(TIMEOUT))
}

fn name(topic: &str) -> TopicName {
    TopicName(text(topic))
}

fn text(words: &str) -> StrBytes {
    StrBytes::from_string(words.to_owned())
}

fn one(results: Vec<Result<String, (String, RDKafkaErrorCode)>>) -> Result<()> {
    match results.into_iter().next() {
        Some(Ok(_)) => Ok(()),
        Some(Err((topic, code))) => Err(anyhow!("{topic}: {code}")),
        None => Err(anyhow!("no answer")),
    }
}

/// Waits for one of the admin client's futures on this thread: rdkafka completes them from a thread of its own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Unpark>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
