use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A topic's name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicName(Arc<str>);

impl TopicName {
    pub fn new(name: impl Into<Arc<str>>) -> TopicName {
        TopicName(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether Kafka accepts a topic of this name: 1 to 249 of `[a-zA-Z0-9._-]`, and neither `.` nor `..`
    /// (org.apache.kafka.common.internals.Topic).
    pub fn is_legal(&self) -> bool {
        let name = self.as_str();
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        (1..=249).contains(&name.len()) && name != "." && name != ".." && name.chars().all(legal)
    }
}

impl From<&str> for TopicName {
    fn from(name: &str) -> TopicName {
        TopicName::new(name)
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A partition's number within its topic, zero or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(pub i32);

impl Partition {
    /// The position in a list that has one element a partition.
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("partition numbers are not negative")
    }

    /// All partitions of a topic with `count` of them.
    pub fn all(count: u32) -> impl Iterator<Item = Partition> {
        (0..count).map(|p| Partition(i32::try_from(p).expect("partition counts fit an i32")))
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! topic_partition {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name {
            pub topic: TopicName,
            pub partition: Partition,
        }

        impl $name {
            pub fn new(topic: impl Into<TopicName>, partition: i32) -> $name {
                $name { topic: topic.into(), partition: Partition(partition) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.topic, self.partition)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

topic_partition! {
    /// A partition of a topic, where only one cluster is in sight.
    TopicPartition
}

topic_partition! {
    /// A partition of a topic on the source cluster.
    SourcePartition
}

topic_partition! {
    /// A partition of a topic on the target cluster.
    TargetPartition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_topic_names() {
        for (name, legal) in [
            ("orders", true),
            ("a.b_c-D9", true),
            ("", false),
            (".", false),
            ("..", false),
            ("...", true),
            ("space d", false),
            ("umläut", false),
        ] {
            assert_eq!(TopicName::from(name).is_legal(), legal, "{name:?}");
        }
        assert!(TopicName::new("x".repeat(249)).is_legal());
        assert!(!TopicName::new("x".repeat(250)).is_legal());
    }
}
