//! DescribeConfigs and IncrementalAlterConfigs, of topics.
//!
//! Modelled: every setting of [`TopicConfig`], by Kafka's names and in Kafka's notation.
//! Not modelled: settings of brokers, where a value comes from, appending to lists.

use crate::api::create_topics::with_settings;
use crate::timer::Timer;
use crate::{Cluster, TopicConfig};
use kafka_types::{ErrorCode, TopicName};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeConfigsRequest {
    pub topics: Vec<TopicName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeConfigsResponse {
    pub topics: Vec<DescribedConfigs>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedConfigs {
    pub topic: TopicName,
    pub error_code: ErrorCode,
    pub configs: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IncrementalAlterConfigsRequest {
    pub topic: TopicName,
    /// A setting without a value returns to its default.
    pub configs: Vec<(String, Option<String>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IncrementalAlterConfigsResponse {
    pub error_code: ErrorCode,
}

impl Cluster {
    pub(crate) fn describe_configs(&self, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
        let described = request.topics.into_iter().map(|topic| {
            let denied = self.topics.denied.contains(&topic);
            let (error_code, configs) = match self.topics.get(&topic) {
                _ if denied => (ErrorCode::TopicAuthorizationFailed, BTreeMap::new()),
                Some(found) => (ErrorCode::None, found.config.entries()),
                None => (ErrorCode::UnknownTopicOrPartition, BTreeMap::new()),
            };
            DescribedConfigs { topic, error_code, configs }
        });
        DescribeConfigsResponse { topics: described.collect() }
    }

    pub(crate) fn incremental_alter_configs(
        &mut self,
        request: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let error_code = self.alter(&request).err().unwrap_or(ErrorCode::None);
        IncrementalAlterConfigsResponse { error_code }
    }

    fn alter(&mut self, request: &IncrementalAlterConfigsRequest) -> Result<(), ErrorCode> {
        let defaults: TopicConfig = self.config.topic.clone();
        let default_of = |name: &str| defaults.entries().get(name).cloned();
        if self.topics.denied.contains(&request.topic) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        let topic = self.topics.get_mut(&request.topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let mut settings = Vec::with_capacity(request.configs.len());
        for (name, value) in &request.configs {
            let value = value.clone().or_else(|| default_of(name)).ok_or(ErrorCode::InvalidConfig)?;
            settings.push((name.clone(), value));
        }
        topic.config = with_settings(topic.config.clone(), &settings)?;
        if topic.config.cleanup_policy.compacts() {
            self.timers.set_no_later(Timer::Cleaner, self.now + self.config.log_cleaner_interval_ms);
        }
        Ok(())
    }
}
