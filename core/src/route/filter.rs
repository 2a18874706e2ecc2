use kafka_types::TopicName;
use regex::Regex;
use std::hash::{Hash, Hasher};

/// A pattern that is not a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a regular expression: {why}")]
pub struct BadPattern {
    pub pattern: String,
    pub why: String,
}

/// The rules that take or leave a source topic. Patterns match a topic's whole name, as MirrorMaker's do.
#[derive(Clone, Debug)]
pub struct TopicFilter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    fn compile(text: &str) -> Result<Pattern, BadPattern> {
        let why = |error: regex::Error| BadPattern { pattern: text.into(), why: error.to_string() };
        // Compiled alone first: `a)|(b` must be refused although `(?:a)|(b)` is well formed.
        Regex::new(text).map_err(why)?;
        let regex = Regex::new(&format!("^(?:{text})$")).map_err(why)?;
        Ok(Pattern { text: text.into(), regex })
    }

    /// The topic that this pattern is the name of, if it is a name. A dot that nobody escaped stands for itself too.
    fn literal(&self) -> Option<TopicName> {
        let name = self.text.replace("\\.", ".").replace("\\-", "-");
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        (!name.is_empty() && name.chars().all(is_name)).then(|| TopicName::from(name.as_str()))
    }
}

impl TopicFilter {
    pub fn new(include: &[String], exclude: &[String]) -> Result<TopicFilter, BadPattern> {
        let compile = |patterns: &[String]| -> Result<Vec<Pattern>, BadPattern> {
            patterns.iter().map(|text| Pattern::compile(text)).collect()
        };
        Ok(TopicFilter { include: compile(include)?, exclude: compile(exclude)? })
    }

    /// Whether the mirror takes `topic`. Internal topics are never taken, whatever the patterns say.
    pub fn takes(&self, topic: &TopicName) -> bool {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|p| p.regex.is_match(topic.as_str()));
        !is_internal(topic) && matches(&self.include) && !matches(&self.exclude)
    }

    /// The topics that the include patterns name literally: those can be asked for although no listing shows them.
    pub fn named(&self) -> impl Iterator<Item = TopicName> {
        self.include.iter().filter_map(Pattern::literal).filter(|topic| self.takes(topic))
    }

    fn texts(&self) -> (Vec<&str>, Vec<&str>) {
        (
            self.include.iter().map(|p| p.text.as_str()).collect(),
            self.exclude.iter().map(|p| p.text.as_str()).collect(),
        )
    }
}

/// Kafka's and its tools' own topics, by the rule of MirrorMaker 2: `__consumer_offsets`, `.x`, `x.internal`,
/// `x-internal`. Every flow's ledger is one of them.
pub fn is_internal(topic: &TopicName) -> bool {
    let name = topic.as_str();
    name.starts_with("__")
        || name.starts_with('.')
        || name.ends_with(".internal")
        || name.ends_with("-internal")
}

impl PartialEq for TopicFilter {
    fn eq(&self, other: &TopicFilter) -> bool {
        self.texts() == other.texts()
    }
}

impl Eq for TopicFilter {}

impl Hash for TopicFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(include: &[&str], exclude: &[&str], topic: &str) -> bool {
        let owned = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        TopicFilter::new(&owned(include), &owned(exclude)).unwrap().takes(&topic.into())
    }

    #[test]
    fn patterns_match_the_whole_name() {
        assert!(takes(&["orders"], &[], "orders"));
        assert!(!takes(&["orders"], &[], "orders-eu"));
        assert!(!takes(&["orders"], &[], "my-orders"));
        assert!(takes(&["a|b"], &[], "b"));
        assert!(!takes(&["a|b"], &[], "ab"));
        assert!(takes(&[r"payments\..*"], &[], "payments.eu"));
    }

    #[test]
    fn exclude_beats_include_and_internal_topics_are_never_taken() {
        assert!(!takes(&[".*"], &["tmp-.*"], "tmp-1"));
        for internal in ["__consumer_offsets", ".hidden", "mm2-offsets.a.internal", "connect-internal"] {
            assert!(!takes(&[".*"], &[], internal), "{internal}");
        }
        assert!(takes(&[".*"], &[], "internal"));
    }

    #[test]
    fn patterns_that_are_names_are_known_as_such() {
        let owned = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let include = owned(&["orders", r"pay\.eu", "a.b", "x.*", "c|d", "no", "__own"]);
        let filter = TopicFilter::new(&include, &owned(&["no"])).unwrap();
        let named: Vec<TopicName> = filter.named().collect();
        assert_eq!(named, ["orders", "pay.eu", "a.b"].map(TopicName::from));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let refuse = |text: &str| TopicFilter::new(&[text.to_string()], &[]).unwrap_err();
        assert_eq!(refuse("orders[").pattern, "orders[");
        assert_eq!(refuse("a)|(b").pattern, "a)|(b");
    }
}
