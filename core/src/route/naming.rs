use kafka_types::TopicName;

/// A rename template that cannot give every topic a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{template:?} is not a rename rule: {why}")]
pub struct BadRename {
    pub template: String,
    pub why: &'static str,
}

/// What a source topic is called on the target: text around one `{topic}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rename {
    before: String,
    after: String,
}

impl Rename {
    pub const PLACEHOLDER: &str = "{topic}";

    pub fn new(template: &str) -> Result<Rename, BadRename> {
        let bad = |why| BadRename { template: template.into(), why };
        let Some((before, after)) = template.split_once(Rename::PLACEHOLDER) else {
            return Err(bad("it must contain {topic}, or all topics would become one"));
        };
        if after.contains(Rename::PLACEHOLDER) {
            return Err(bad("it may contain {topic} only once"));
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !before.chars().chain(after.chars()).all(legal) {
            return Err(bad("topic names hold only letters, digits, '.', '_' and '-'"));
        }
        Ok(Rename { before: before.into(), after: after.into() })
    }

    /// Every topic keeps its name.
    pub fn identity() -> Rename {
        Rename { before: String::new(), after: String::new() }
    }

    pub fn target(&self, source: &TopicName) -> TopicName {
        if self.before.is_empty() && self.after.is_empty() {
            return source.clone();
        }
        TopicName::new(format!("{}{source}{}", self.before, self.after))
    }

    /// The rule as it stands in a claim: two instances with different rules must never share a ledger (H8).
    pub fn fingerprint(&self) -> String {
        format!("{}{}{}", self.before, Rename::PLACEHOLDER, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames() {
        let target = |template: &str| Rename::new(template).unwrap().target(&"orders".into());
        assert_eq!(target("{topic}").as_str(), "orders");
        assert_eq!(target("dc1.{topic}").as_str(), "dc1.orders");
        assert_eq!(target("dc1.{topic}-copy").as_str(), "dc1.orders-copy");
    }

    #[test]
    fn templates_that_would_join_topics_are_refused() {
        for template in ["", "orders", "{topic}{topic}", "dc 1.{topic}", "{Topic}"] {
            assert!(Rename::new(template).is_err(), "{template:?}");
        }
    }

    #[test]
    fn the_fingerprint_is_the_rule() {
        assert_eq!(Rename::new("dc1.{topic}").unwrap().fingerprint(), "dc1.{topic}");
        assert_eq!(Rename::identity().fingerprint(), "{topic}");
    }
}
