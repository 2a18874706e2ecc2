//! What must not be shown: passwords and keys, in whatever an error quotes.

use super::place::{Kind, Place};
use super::schema;
use std::ops::Range;

/// Last words of keys that hold secrets, and of some that do not: an error says where it is all the same.
const SECRET: [&str; 8] = ["password", "passwd", "secret", "passphrase", "token", "pem", "key", "config"];

/// Whether what `key` holds may be a secret. The key may be mistyped, or a variable's name.
pub(super) fn is_secret(key: &str) -> bool {
    let last = key.rsplit(['.', '_', '-']).next().unwrap_or(key).to_ascii_lowercase();
    schema::near(&last, SECRET.into_iter()).is_some()
}

/// What may be shown of the text that `place` lies in, each character at its place; nothing where that would be
/// the secret itself, or no more than the message says already.
pub(crate) fn excerpt(place: &Place) -> Option<String> {
    if place.secret {
        return None;
    }
    match place.source.kind {
        Kind::File => Some(hide(&place.source.text, &place.span)),
        // A mark at the beginning is the name, and what stands behind it may be meant for a secret.
        Kind::Environment | Kind::Flag => (place.span.start != 0).then(|| place.source.text.clone()),
    }
}

/// Hides what secret keys hold, and what the marked key holds: that key is wrong, and may be a secret's. Places
/// stay right, since each byte is replaced by one.
fn hide(text: &str, marked: &Range<usize>) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut going_on: Option<GoingOn> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let is_covered = going_on.as_ref().is_some_and(|it| it.covers(line));
        let shown = if is_covered { 0 } else { shown(line, start, marked) };
        going_on = match going_on {
            Some(it) if is_covered => it.after(line),
            Some(_) | None if shown < line.len() => Some(GoingOn::after_key(line, shown)),
            Some(_) | None => None,
        };
        hidden.push_str(&line[..shown]);
        hidden.extend(masked(&line[shown..]));
        start += line.len();
    }
    hidden
}

/// A secret that may take up further lines.
#[derive(Clone, Copy)]
enum GoingOn {
    /// Until the next line with these quotes.
    Quoted(&'static str),
    /// As far as lines are indented by more than this, as in YAML.
    Indented(usize),
}

impl GoingOn {
    fn after_key(line: &str, shown: usize) -> GoingOn {
        let opens = |quotes: &&'static str| line[shown..].matches(*quotes).count() % 2 == 1;
        match ["\"\"\"", "'''"].into_iter().find(opens) {
            Some(quotes) => GoingOn::Quoted(quotes),
            None => GoingOn::Indented(indentation(line)),
        }
    }

    fn covers(&self, line: &str) -> bool {
        match self {
            GoingOn::Quoted(_) => true,
            GoingOn::Indented(indented) => line.trim().is_empty() || *indented < indentation(line),
        }
    }

    /// What is left of it after a line that it covers.
    fn after(self, line: &str) -> Option<GoingOn> {
        match self {
            GoingOn::Quoted(quotes) if line.contains(quotes) => None,
            GoingOn::Quoted(_) | GoingOn::Indented(_) => Some(self),
        }
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// How much of a line may be shown: up to what the first secret or marked key holds. The line starts at `start`.
fn shown(line: &str, start: usize, marked: &Range<usize>) -> usize {
    let mut separators = line.char_indices().filter(|(_, c)| matches!(c, '=' | ':')).map(|(at, _)| at);
    let hides = |at: &usize| {
        let key = key_before(line, *at);
        let text = line[key.clone()].trim();
        let is_marked = start + key.start <= marked.end
            && marked.start <= start + key.end
            && marked.end <= start + at
            && !text.is_empty();
        is_marked || (!text.is_empty() && is_secret(text))
    };
    separators.find(hides).map_or(line.len(), |at| at + 1)
}

/// The key that ends before a separator, without its quotes.
fn key_before(line: &str, separator: usize) -> Range<usize> {
    let before = line[..separator].trim_end().trim_end_matches(['"', '\'']);
    let is_outside = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    let start =
        before.rfind(is_outside).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    start..before.len()
}

fn masked(text: &str) -> impl Iterator<Item = char> {
    let leading = text.len() - text.trim_start().len();
    let stars = |c: char| match c {
        '\n' | '\r' => vec![c],
        other => vec!['*'; other.len_utf8()],
    };
    text[..leading].chars().chain(text[leading..].chars().flat_map(stars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, marked: &str, expected: &str) {
        let start = text.find(marked).unwrap();
        let hidden = hide(text, &(start..start + marked.len()));
        assert_eq!(hidden, expected);
        assert_eq!(hidden.len(), text.len(), "places stay right");
    }

    #[test]
    fn secrets_are_known_by_their_keys_mistyped_or_not() {
        for key in [
            "source.sasl.password",
            "target.ssl.key.pem",
            "ssl.keystore.key",
            "sasl.jaas.config",
            "sasl.oauthbearer.client.secret",
            "VERBATIM_SOURCE_SASL_PASSWORD",
            "sasl.pasword",
            "password",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["topics.include", "bootstrap.servers", "ssl.key.location", "sasl.username", "name"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn what_secret_keys_hold_is_hidden_wherever_they_stand() {
        check("a = 1\nsasl.password = \"pä\"\nb = x", "x", "a = 1\nsasl.password = *****\nb = x");
        check("\"sasl.password\"=\"p\"\nb = x", "x", "\"sasl.password\"=***\nb = x");
        check("s = { user = \"u\", password = \"p\" }\n", "u\"", "s = { user = \"u\", password = *****\n");
        check("sasl: {password: p, x: y}", "y", "sasl: {password: ********");
        check("sasl:\n  password: p\n  mechanism: M\n", "M", "sasl:\n  password: *\n  mechanism: M\n");
    }

    #[test]
    fn what_a_marked_key_holds_is_hidden_and_a_marked_value_is_shown() {
        check("sasl.pswd = \"p\"\n", "sasl.pswd", "sasl.pswd = ***\n");
        check("lanes = 0\n", "0", "lanes = 0\n");
        check("bootstrap.servers = \"a:1\"\n", "\"a:1\"", "bootstrap.servers = \"a:1\"\n");
    }

    #[test]
    fn secrets_of_many_lines_are_hidden_to_their_end() {
        let toml = "k.pem = \"\"\"\nBEGIN\nx\"\"\"\nb = 1\n";
        check(toml, "1", "k.pem = ***\n*****\n****\nb = 1\n");
        let yaml = "s:\n  key.pem: |\n    BEGIN\n\n    x\n  b: 1\n";
        check(yaml, "1", "s:\n  key.pem: *\n    *****\n\n    *\n  b: 1\n");
    }
}
