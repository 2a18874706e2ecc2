//! References in texts: `${NAME}`, `${NAME:-default}`, `${file:/path}`; `$${` stands for `${`.
//!
//! They are replaced after parsing, in text values only, so that nothing a variable holds can change the
//! shape of the configuration and a comment may mention a reference.

use super::error::ConfigError;
use super::place::Place;
use super::tree::{Item, Value};
use std::env::VarError;

/// What references may look up; the process's environment, or a test's.
pub trait Lookup {
    /// A variable may be absent, or hold something that is not text.
    fn variable(&self, name: &str) -> Result<String, VarError>;
    fn file(&self, path: &str) -> std::io::Result<String>;
}

/// The environment and the files of this process.
#[derive(Debug)]
pub struct Process;

impl Lookup for Process {
    fn variable(&self, name: &str) -> Result<String, VarError> {
        std::env::var(name)
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// Replaces all references in `item`.
pub(super) fn resolve(item: &mut Item, lookup: &dyn Lookup) -> Result<(), ConfigError> {
    match &mut item.value {
        Value::Text(text) => *text = replace(text, &item.place, lookup)?,
        Value::List(items) => items.iter_mut().try_for_each(|item| resolve(item, lookup))?,
        Value::Number(_) | Value::Bool(_) | Value::Empty => {}
    }
    Ok(())
}

fn replace(text: &str, place: &Place, lookup: &dyn Lookup) -> Result<String, ConfigError> {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            replaced.push_str(before);
            replaced.push_str("${");
            rest = &reference[2..];
            continue;
        }
        replaced.push_str(before);
        let Some(end) = reference.find('}') else {
            return Err(ConfigError::at(&place.within(reference), "this reference has no closing }")
                .help("write $${ for a ${ that is meant literally"));
        };
        replaced.push_str(&one(&reference[2..end], &place.within(&reference[..=end]), lookup)?);
        rest = &reference[end + 1..];
    }
    replaced.push_str(rest);
    Ok(replaced)
}

fn one(inside: &str, place: &Place, lookup: &dyn Lookup) -> Result<String, ConfigError> {
    if let Some(path) = inside.strip_prefix("file:") {
        let text = lookup
            .file(path)
            .map_err(|error| ConfigError::at(place, format!("cannot read the file {path:?}: {error}")))?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        return Ok(line.strip_suffix('\r').unwrap_or(line).into());
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(legal) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(ConfigError::at(place, format!("${{{inside}}} is not a reference")).help(
            "use ${NAME}, ${NAME:-default} or ${file:/path}, and $${ for a ${ that is meant literally",
        ));
    }
    match (lookup.variable(name), default) {
        (Ok(value), Some(default)) if value.is_empty() => Ok(default.into()),
        (Ok(value), _) => Ok(value),
        (Err(VarError::NotUnicode(_)), _) => {
            let message = format!("the environment's variable {name} is not text in UTF-8");
            Err(ConfigError::at(place, message).label("not text"))
        }
        (Err(VarError::NotPresent), Some(default)) => Ok(default.into()),
        (Err(VarError::NotPresent), None) => {
            Err(ConfigError::at(place, format!("the environment has no variable {name}"))
                .label("not set")
                .help(format!("set it, or give a default: ${{{name}:-default}}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::{Kind, SourceText};
    use super::*;
    use std::sync::Arc;

    struct Fixed;

    impl Lookup for Fixed {
        fn variable(&self, name: &str) -> Result<String, VarError> {
            match name {
                "HOST" => Ok("broker-1".into()),
                "EMPTY" => Ok(String::new()),
                "NOT_TEXT" => Err(VarError::NotUnicode("?".into())),
                _ => Err(VarError::NotPresent),
            }
        }

        fn file(&self, path: &str) -> std::io::Result<String> {
            match path {
                "/secret" => Ok("hunter2\n".into()),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        }
    }

    fn resolved(text: &str) -> Result<String, String> {
        let source = SourceText { name: "a".into(), text: format!("k = {text}"), kind: Kind::File };
        let place = Place::new(&Arc::new(source), 4..4 + text.len());
        replace(text, &place, &Fixed).map_err(|error| error.to_string())
    }

    #[test]
    fn references_are_replaced() {
        for (text, expected) in [
            ("plain $ {x} orders$", "plain $ {x} orders$"),
            ("${HOST}:9092,${HOST}:9093", "broker-1:9092,broker-1:9093"),
            ("${NONE:-x:-y}", "x:-y"),
            ("${EMPTY:-default}", "default"),
            ("a${EMPTY}b", "ab"),
            ("${file:/secret}", "hunter2"),
            ("$${HOST}", "${HOST}"),
        ] {
            assert_eq!(resolved(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_replaced_is_named_by_place() {
        assert_eq!(resolved("x-${NONE}"), Err("a:1:7: the environment has no variable NONE".into()));
        assert_eq!(
            resolved("${NOT_TEXT:-x}"),
            Err("a:1:5: the environment's variable NOT_TEXT is not text in UTF-8".into())
        );
        assert!(resolved("${file:/none}").unwrap_err().starts_with("a:1:5: cannot read the file"));
        assert_eq!(resolved("${a b}"), Err("a:1:5: ${a b} is not a reference".into()));
        assert_eq!(resolved("${HOST"), Err("a:1:5: this reference has no closing }".into()));
    }
}
