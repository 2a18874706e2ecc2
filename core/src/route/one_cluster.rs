use super::{Rename, TopicFilter};
use kafka_types::TopicName;
use std::fmt;

/// Why a mirror within one cluster would never come to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loop {
    /// It would write to what it reads: every topic keeps its name.
    NamesAreKept,
    OntoItself(TopicName),
    /// It would read what it writes.
    CopiedAgain {
        topic: TopicName,
        copy: TopicName,
    },
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loop::NamesAreKept => write!(
                f,
                "topics keep their names, so each would be copied onto itself; set topics.rename, or another target"
            ),
            Loop::OntoItself(topic) => write!(
                f,
                "topic {topic} would be copied onto itself; change topics.rename, or exclude it in topics.exclude"
            ),
            Loop::CopiedAgain { topic, copy } => {
                write!(f, "{copy}, the copy of {topic}, would be copied again; exclude it in topics.exclude")
            }
        }
    }
}

/// The first loop that the rules make of these topics where source and target are one cluster.
pub fn find_loop<'a>(
    filter: &TopicFilter,
    rename: &Rename,
    topics: impl Iterator<Item = &'a TopicName>,
) -> Option<Loop> {
    let any = TopicName::from("a");
    if rename.target(&any) == any {
        return Some(Loop::NamesAreKept);
    }
    topics.filter(|topic| filter.takes(topic)).find_map(|topic| {
        let copy = rename.target(topic);
        if copy == *topic {
            return Some(Loop::OntoItself(copy));
        }
        filter.takes(&copy).then(|| Loop::CopiedAgain { topic: topic.clone(), copy })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_must_be_others_and_not_taken_again() {
        let filter = |include: &str| TopicFilter::new(&[include.to_owned()], &[]).expect("a pattern");
        let found = |include: &str, rename: &str, topics: &[&str]| {
            let rename = Rename::new(rename).expect("a rule");
            let topics: Vec<TopicName> = topics.iter().map(|topic| TopicName::from(*topic)).collect();
            find_loop(&filter(include), &rename, topics.iter())
        };
        assert_eq!(found("orders", "{topic}", &[]), Some(Loop::NamesAreKept));
        assert_eq!(found("orders", "copy.{topic}", &["orders", "copy.orders"]), None);
        let (topic, copy) = (TopicName::from("orders"), TopicName::from("copy.orders"));
        assert_eq!(found(".*", "copy.{topic}", &["orders"]), Some(Loop::CopiedAgain { topic, copy }));
        assert_eq!(found(".*", "copy.{topic}", &[]), None, "nobody can tell yet");
    }
}
