//! Questions as requests, and responses as answers. Pure.

use super::Question;
use crate::client::offsets::{Found, NoOffset, ToldOffset};
use crate::client::trouble::{trouble, unreachable};
use crate::client::wire::Answer;
use kafka_model::api::configs::DescribeConfigsRequest;
use kafka_model::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse};
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::metadata::{MetadataRequest, MetadataResponse, MetadataTopics};
use kafka_model::{Request, Response};
use kafka_types::{
    ErrorCode, OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName,
    TopicPartition,
};
use std::collections::BTreeMap;
use verbatim_core::command::Topics;
use verbatim_core::event::{Ask, ConfigValue, Event, Listing, TargetEnd, TopicConfig, TopicInfo};
use verbatim_core::failure::{Side, Trouble};

pub(super) fn of_source(place: &SourcePartition) -> TopicPartition {
    TopicPartition { topic: place.topic.clone(), partition: place.partition }
}

pub(super) fn of_target(place: &TargetPartition) -> TopicPartition {
    TopicPartition { topic: place.topic.clone(), partition: place.partition }
}

pub(super) fn metadata(topics: &Topics) -> MetadataRequest {
    let topics = match topics {
        Topics::All => MetadataTopics::All,
        Topics::Named(names) => MetadataTopics::Named(names.clone()),
    };
    MetadataRequest { topics, allow_auto_topic_creation: false }
}

/// The one request of a question that needs only one.
pub(super) fn request(question: &Question) -> Request {
    match question {
        Question::Describe(topics) => metadata(topics).into(),
        Question::Configs(topics) => DescribeConfigsRequest { topics: topics.clone() }.into(),
        Question::Create(topics) => {
            let topics = topics.iter().map(|topic| NewTopic {
                name: topic.name.clone(),
                num_partitions: i32::try_from(topic.partitions).unwrap_or(i32::MAX),
                replication_factor: topic.replication_factor.unwrap_or(-1),
                configs: topic.config.clone().into_iter().collect(),
            });
            CreateTopicsRequest { topics: topics.collect(), validate_only: false }.into()
        }
        Question::Grow(topics) => {
            let count =
                |(name, count): (&TopicName, &u32)| (name.clone(), i32::try_from(*count).unwrap_or(i32::MAX));
            let topics = topics.iter().map(count).collect();
            CreatePartitionsRequest { topics, validate_only: false }.into()
        }
        Question::SourceOffsets(..) | Question::TargetEnds(_) | Question::OpenTransactions(_) => {
            unreachable!("these need several")
        }
    }
}

/// No broker answered.
pub(super) fn failed(side: Side, ask: Ask, question: &Question, why: &Trouble) -> Event {
    let each =
        |names: &mut dyn Iterator<Item = TopicName>| names.map(|name| (name, Err(why.clone()))).collect();
    match question {
        Question::Describe(_) => Event::Described { side, ask, answer: Err(why.clone()) },
        Question::Configs(_) => Event::Configs { side, ask, answer: Err(why.clone()) },
        Question::Create(topics) => {
            Event::TopicsCreated { ask, answer: each(&mut topics.iter().map(|topic| topic.name.clone())) }
        }
        Question::Grow(topics) => Event::TopicsGrown { ask, answer: each(&mut topics.keys().cloned()) },
        Question::SourceOffsets(..) | Question::TargetEnds(_) | Question::OpenTransactions(_) => {
            unreachable!("these answer for each partition")
        }
    }
}

pub(super) fn answer(side: Side, ask: Ask, question: &Question, response: Response) -> Event {
    match (question, response) {
        (Question::Describe(topics), Response::Metadata(response)) => {
            Event::Described { side, ask, answer: Ok(listing(topics, response)) }
        }
        (Question::Configs(_), Response::DescribeConfigs(response)) => {
            Event::Configs { side, ask, answer: configs(response.topics) }
        }
        (Question::Create(_), Response::CreateTopics(response)) => {
            let answer = response.topics.into_iter().map(|topic| {
                let outcome = match topic.error_code {
                    ErrorCode::None | ErrorCode::TopicAlreadyExists => Ok(()),
                    error => Err(trouble(error, "Create", topic.name.as_str())),
                };
                (topic.name, outcome)
            });
            Event::TopicsCreated { ask, answer: answer.collect() }
        }
        (question, _) => failed(side, ask, question, &unreachable()),
    }
}

fn listing(asked: &Topics, response: MetadataResponse) -> Listing {
    let mut listing = Listing {
        cluster_id: response.cluster_id,
        brokers: response.brokers.len() as u32,
        ..Listing::default()
    };
    for topic in response.topics {
        let Some(name) = topic.name else { continue };
        match (topic.error_code, topic.topic_id) {
            (ErrorCode::None, Some(id)) => {
                let internal = name.as_str().starts_with("__");
                let info = TopicInfo { id, partitions: topic.partitions.len() as u32, internal };
                listing.topics.insert(name, info);
            }
            (ErrorCode::UnknownTopicOrPartition, _) => {
                // Deleted between two answers, so not among all topics.
                if matches!(asked, Topics::Named(_)) {
                    listing.unknown.push(name);
                }
            }
            (error, _) => {
                drop(listing.trouble.insert(name.clone(), trouble(error, "Describe", name.as_str())))
            }
        }
    }
    listing
}

fn configs(
    described: Vec<kafka_model::api::configs::DescribedConfigs>,
) -> Result<BTreeMap<TopicName, TopicConfig>, Trouble> {
    let defaults = kafka_model::TopicConfig::default().entries();
    let mut configs = BTreeMap::new();
    for topic in described {
        match topic.error_code {
            ErrorCode::None => {}
            error => match trouble(error, "DescribeConfigs", topic.topic.as_str()) {
                // A topic that has no answer just now is left out.
                Trouble::Passing(_) => continue,
                other => return Err(other),
            },
        }
        let config = topic.configs.into_iter().map(|(name, value)| {
            let overridden = defaults.get(name) != Some(&value);
            (name.to_owned(), ConfigValue { value, overridden })
        });
        configs.insert(topic.topic, config.collect());
    }
    Ok(configs)
}

/// The topics that would not grow.
pub(super) fn not_grown(response: &CreatePartitionsResponse) -> BTreeMap<TopicName, Trouble> {
    let refused = response.topics.iter().filter(|(_, error)| error.is_error());
    let why = |name: &TopicName, error: ErrorCode| match error {
        // It has as many, or more; a broker that shows fewer has not heard of it yet.
        ErrorCode::InvalidPartitions => Trouble::Passing("cannot see how many partitions it has".into()),
        _ => trouble(error, "Alter", name.as_str()),
    };
    refused.map(|(name, error)| (name.clone(), why(name, *error))).collect()
}

pub(super) fn all_grown(ask: Ask, wanted: &BTreeMap<TopicName, u32>) -> Event {
    Event::TopicsGrown { ask, answer: wanted.keys().map(|name| (name.clone(), Ok(()))).collect() }
}

/// Of those that would not grow, some may have that many partitions already.
pub(super) fn grown(
    ask: Ask,
    wanted: &BTreeMap<TopicName, u32>,
    mut refused: BTreeMap<TopicName, Trouble>,
    look: Answer,
) -> Event {
    if let Ok(Response::Metadata(response)) = look {
        for topic in response.topics {
            let Some(name) = topic.name else { continue };
            if wanted.get(&name).is_some_and(|wanted| *wanted <= topic.partitions.len() as u32) {
                refused.remove(&name);
            }
        }
    }
    let outcome = |name: &TopicName| refused.get(name).map_or(Ok(()), |why| Err(why.clone()));
    Event::TopicsGrown { ask, answer: wanted.keys().map(|name| (name.clone(), outcome(name))).collect() }
}

fn known(
    found: Option<&Result<ToldOffset, NoOffset>>,
    place: &TopicPartition,
) -> Result<ToldOffset, Trouble> {
    match found {
        Some(Ok(told)) if 0 <= told.offset => Ok(*told),
        Some(Ok(_)) => Err(Trouble::Passing("the broker named no offset".into())),
        Some(Err(NoOffset::Error(error))) => Err(trouble(*error, "Describe", place.topic.as_str())),
        Some(Err(NoOffset::Unanswered)) | None => Err(unreachable()),
    }
}

/// Where no record is young enough, the end as it was before.
pub(super) fn or_ends(mut by_time: Found, mut ends: Found) -> Found {
    for (place, told) in &mut by_time {
        if matches!(told, Ok(told) if told.offset < 0)
            && let Some(end) = ends.remove(place)
        {
            *told = end;
        }
    }
    by_time
}

pub(super) fn source_offsets(ask: Ask, found: Found) -> Event {
    let answer = found.iter().map(|(place, offset)| {
        let source = SourcePartition { topic: place.topic.clone(), partition: place.partition };
        let at = |told: ToldOffset| OffsetAndEpoch { offset: SourceOffset(told.offset), epoch: told.epoch };
        (source, known(Some(offset), place).map(at))
    });
    Event::SourceOffsets { ask, answer: answer.collect() }
}

pub(super) fn target_ends(ask: Ask, stable: Found, high: &Found) -> Event {
    let answer = stable.iter().map(|(place, stable)| {
        let end = known(Some(stable), place).and_then(|stable| {
            let high_watermark = TargetOffset(known(high.get(place), place)?.offset);
            Ok(TargetEnd { high_watermark, last_stable: TargetOffset(stable.offset) })
        });
        (TargetPartition { topic: place.topic.clone(), partition: place.partition }, end)
    });
    Event::TargetEnds { ask, answer: answer.collect() }
}
