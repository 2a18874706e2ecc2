//! Which keys there are, which come in a later version, and what a mistyped one may have meant.

use super::client;

/// Every key of this version outside `[source]` and `[target]`.
pub(super) const KEYS: [&str; 18] = [
    "name",
    "instance",
    "topics.include",
    "topics.exclude",
    "topics.rename",
    "topics.refresh",
    "topics.replication.factor",
    "delivery.mode",
    "delivery.start",
    "delivery.commit.interval",
    "delivery.lanes",
    "delivery.ledger.replication.factor",
    "on.gap",
    "on.truncated",
    "on.recreated",
    "on.oversized",
    "limits.memory",
    // The one client property that must be there; `[target]` has it too.
    "source.bootstrap.servers",
];

/// Sections, each with keys of its own. Those of later versions are known, so that nobody calls them a typo.
pub(super) const SECTIONS: [&str; 7] = ["source", "target", "topics", "delivery", "on", "limits", "http"];

/// Keys of a later version. `delivery.streams` and `limits.rate` are too, but may be given as they are by default.
pub(super) fn is_later(key: &str) -> bool {
    key == "http" || key.starts_with("http.")
}

/// The valid key nearest to `key`, if any is near enough to have been meant.
pub(super) fn nearest(key: &str) -> Option<String> {
    if let Some((side, property)) = client_property(key) {
        return client::nearest(property).map(|near| format!("{side}.{near}"));
    }
    let keys = || KEYS.iter().copied().chain(["target.bootstrap.servers"]);
    // Written under the wrong section, or none.
    let bare = key.rsplit_once('.').map_or(key, |(_, last)| last);
    let misplaced = |valid: &&str| {
        let ends_with = |part: &str| valid.strip_suffix(part).is_some_and(|head| head.ends_with('.'));
        ends_with(key) || ends_with(bare)
    };
    near(key, keys())
        .or_else(|| keys().find(misplaced))
        .or_else(|| {
            let section = key.split_once('.').map_or(key, |(section, _)| section);
            near(section, SECTIONS.iter().copied())
        })
        .map(str::to_string)
}

/// The candidate with the fewest edits to `word`, if those are few.
pub(crate) fn near<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = (word.len() / 4).clamp(1, 4);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= edits_max)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Splits `source.PROPERTY` and `target.PROPERTY`.
pub(super) fn client_property(key: &str) -> Option<(&'static str, &str)> {
    let (section, property) = key.split_once('.')?;
    let side = ["source", "target"].into_iter().find(|side| *side == section)?;
    Some((side, property))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_suggested() {
        for (typo, meant) in [
            ("topics.inculde", Some("topics.include")),
            ("topic.include", Some("topics.include")),
            ("include", Some("topics.include")),
            ("delivery.commit_interval", Some("delivery.commit.interval")),
            ("limit.memory", Some("limits.memory")),
            ("nmae", Some("name")),
            ("source.bootstrap.server", Some("source.bootstrap.servers")),
            ("target.sasl.mechanisn", Some("target.sasl.mechanism")),
            ("sorce.bootstrap.servers", Some("source.bootstrap.servers")),
            ("sorce.ssl.ca.location", Some("source")),
            ("colour", None),
        ] {
            assert_eq!(nearest(typo).as_deref(), meant, "{typo}");
        }
    }
}
