//! What the topic rules take of what the source has. A rule that matches nothing is said aloud, since a typing error
//! would look like success.

use crate::table::count;
use kafka_types::TopicName;
use verbatim_core::config::Flow;
use verbatim_core::event::{Listing, TopicInfo};

/// The source topics that the flow takes.
pub(crate) fn taken<'a>(
    flow: &'a Flow,
    source: &'a Listing,
) -> impl Iterator<Item = (&'a TopicName, &'a TopicInfo)> {
    source.topics.iter().filter(|(topic, info)| !info.internal && flow.filter.takes(topic))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matched {
    pub topics: usize,
    pub partitions: u64,
    /// Topics that `topics.include` names and that no listing shows.
    pub missing: Vec<TopicName>,
}

impl Matched {
    pub(crate) fn of(flow: &Flow, source: &Listing) -> Matched {
        let is_missing = |topic: &TopicName| !source.topics.contains_key(topic);
        Matched {
            topics: taken(flow, source).count(),
            partitions: taken(flow, source).map(|(_, info)| u64::from(info.partitions)).sum(),
            missing: flow.filter.named().filter(is_missing).collect(),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!("{}, {}", count(self.topics, "topic"), count(self.partitions, "partition"))
    }

    /// What somebody should know who expects these rules to copy something.
    pub(crate) fn warnings(&self, include: &[String]) -> Vec<String> {
        let nothing = (self.topics == 0).then(|| {
            format!("no source topic matches topics.include = {include:?} less topics.exclude: there is nothing to copy")
        });
        let missing = self.missing.iter().map(|topic| {
            format!("topics.include names {topic}: the source has no such topic, or it may not be described")
        });
        nothing.into_iter().chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, flow};
    use verbatim_core::route::TopicFilter;

    fn matched(include: &[&str]) -> (Matched, Vec<String>) {
        let include: Vec<String> = include.iter().map(|pattern| pattern.to_string()).collect();
        let mut fake = Fake::new();
        fake.topic("orders", Vec::new(), 0);
        fake.topic("payments.eu", Vec::new(), 0);
        let flow = Flow { filter: TopicFilter::new(&include, &[]).unwrap(), ..flow() };
        let matched = Matched::of(&flow, &fake.source);
        let warnings = matched.warnings(&include);
        (matched, warnings)
    }

    #[test]
    fn rules_that_match_need_no_warning() {
        let (matched, warnings) = matched(&["orders", r"payments\..*"]);
        assert_eq!((matched.text().as_str(), warnings), ("2 topics, 2 partitions", vec![]));
    }

    #[test]
    fn rules_that_match_nothing_are_named() {
        let (matched, warnings) = matched(&["order.+s", "oders"]);
        assert_eq!(matched.topics, 0);
        assert_eq!(
            warnings,
            [
                r#"no source topic matches topics.include = ["order.+s", "oders"] less topics.exclude: there is nothing to copy"#,
                "topics.include names oders: the source has no such topic, or it may not be described"
            ]
        );
    }

    #[test]
    fn one_name_that_is_missing_is_said_beside_others_that_are_there() {
        let (matched, warnings) = matched(&["orders", "refunds"]);
        assert_eq!((matched.topics, warnings.len()), (1, 1));
        assert!(warnings[0].contains("refunds"), "{warnings:?}");
    }
}
