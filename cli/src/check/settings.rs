//! What the settings of a topic that exists already mean for copies in it.

use verbatim_core::event::TopicConfig;

/// Why a target topic would alter what it is given, if it would.
pub(super) fn stamps(config: &TopicConfig) -> Option<String> {
    let kind = config.get("message.timestamp.type").map(|kind| kind.value.as_str())?;
    (kind != "CreateTime").then(|| {
        format!("has message.timestamp.type={kind}, which would alter every timestamp; set it to CreateTime")
    })
}

/// Settings with which a target topic cannot hold all that the source topic can.
pub(super) fn holds_less(source: &TopicConfig, target: &TopicConfig) -> Vec<String> {
    let text = |config: &TopicConfig, key: &str| config.get(key).map(|value| value.value.clone());
    let pair = |key: &str| text(source, key).zip(text(target, key));
    let mut doubts = Vec::new();
    if let Some((ours, theirs)) = pair("cleanup.policy").filter(|(ours, theirs)| ours != theirs) {
        doubts.push(format!(
            "has cleanup.policy={theirs}, the source {ours}: it may keep other records, or refuse those without a key"
        ));
    }
    let number = |text: &str| text.parse::<i64>().ok();
    if let Some((ours, theirs)) = pair("max.message.bytes")
        && number(&theirs) < number(&ours)
    {
        doubts.push(format!(
            "has max.message.bytes={theirs}, the source {ours}: a partition halts at the first record that is larger"
        ));
    }
    if let Some((ours, theirs)) = pair("retention.ms")
        // A negative retention is for ever.
        && number(&theirs).is_some_and(|ms| 0 <= ms)
        && number(&ours).is_some_and(|ms| ms < 0 || number(&theirs) < Some(ms))
    {
        doubts.push(format!("has retention.ms={theirs}, the source {ours}: copies are deleted sooner"));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_core::event::ConfigValue;

    fn config(settings: &[(&str, &str)]) -> TopicConfig {
        let value = |value: &str| ConfigValue { value: value.into(), overridden: false };
        settings.iter().map(|(key, text)| (key.to_string(), value(text))).collect()
    }

    #[track_caller]
    fn doubts(source: &[(&str, &str)], target: &[(&str, &str)], words: &[&str]) {
        let found = holds_less(&config(source), &config(target));
        assert_eq!(found.len(), words.len(), "{found:?}");
        for (doubt, words) in found.iter().zip(words) {
            assert!(doubt.contains(words), "{found:?}");
        }
    }

    #[test]
    fn copies_must_find_room() {
        let source = [("cleanup.policy", "delete"), ("max.message.bytes", "2000"), ("retention.ms", "-1")];
        doubts(&source, &source, &[]);
        doubts(&source, &[("cleanup.policy", "compact")], &["refuse those without a key"]);
        doubts(&source, &[("max.message.bytes", "1999")], &["halts at the first record that is larger"]);
        doubts(&source, &[("max.message.bytes", "2001")], &[]);
        doubts(&source, &[("retention.ms", "1000")], &["deleted sooner"]);
        doubts(&[("retention.ms", "1000")], &[("retention.ms", "-1")], &[]);
        doubts(&[("retention.ms", "1000")], &[("retention.ms", "999")], &["deleted sooner"]);
    }

    #[test]
    fn only_log_append_time_alters_records() {
        assert_eq!(stamps(&config(&[])), None);
        assert_eq!(stamps(&config(&[("message.timestamp.type", "CreateTime")])), None);
        assert!(stamps(&config(&[("message.timestamp.type", "LogAppendTime")])).is_some());
    }
}
