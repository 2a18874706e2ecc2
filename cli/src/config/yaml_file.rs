//! YAML to settings, by the same schema as TOML.

use super::error::ConfigError;
use super::place::{Place, SourceText};
use super::tree::{Item, Node, Setting, Value, flatten};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use std::fmt;
use std::sync::Arc;

pub(super) fn parse(source: &Arc<SourceText>, layer: usize) -> Result<Vec<Setting>, ConfigError> {
    let not_yaml = |error: serde_saphyr::Error| {
        let place = error.location().map(|location| place_at(source, location));
        let text = error.without_snippet().to_string();
        ConfigError { place, ..ConfigError::new(format!("not YAML: {}", text.trim_end())) }
    };
    let root: Option<Spanned<Yaml>> = serde_saphyr::from_str(&source.text).map_err(not_yaml)?;
    match root.map(|root| (root.referenced, root.value)) {
        None | Some((_, Yaml::Null)) => Ok(Vec::new()),
        Some((_, Yaml::Map(map))) => Ok(flatten(children(source, map), layer)),
        Some((location, _)) => {
            let place = place_at(source, location);
            Err(ConfigError::at(&place, "not a configuration: keys with values are expected"))
        }
    }
}

fn children(
    source: &Arc<SourceText>,
    map: Vec<(Spanned<String>, Spanned<Yaml>)>,
) -> Vec<(String, Place, Node)> {
    let child = |(key, value): (Spanned<String>, Spanned<Yaml>)| {
        let place = place_at(source, key.referenced);
        node(source, value).map(|node| (key.value, place, node))
    };
    map.into_iter().filter_map(child).collect()
}

/// A key without a value says nothing, as everywhere in YAML.
fn node(source: &Arc<SourceText>, value: Spanned<Yaml>) -> Option<Node> {
    let place = place_at(source, value.referenced);
    let value = match value.value {
        Yaml::Null => return None,
        Yaml::Map(map) => return Some(Node::Table(children(source, map))),
        Yaml::Text(text) => Value::Text(text),
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Integer(number) => Value::Number(number.to_string()),
        // As it was written: 1.10 is not 1.1 when it is a version.
        Yaml::Fraction(number) => {
            let written = place.text().trim();
            Value::Number(if written.is_empty() { number.to_string() } else { written.into() })
        }
        Yaml::List(list) => {
            let item = |element| match node(source, element) {
                Some(Node::Leaf(item)) => item,
                Some(Node::Table(_)) | None => Item { value: Value::Empty, place: place.clone() },
            };
            Value::List(list.into_iter().map(item).collect())
        }
    };
    Some(Node::Leaf(Item { value, place }))
}

fn place_at(source: &Arc<SourceText>, location: Location) -> Place {
    let span = location.span();
    let start = span.byte_offset().and_then(|offset| usize::try_from(offset).ok());
    let length = span.byte_len().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    let start = start.unwrap_or_else(|| offset_of(&source.text, location.line(), location.column()));
    Place::new(source, start..start + length)
}

fn offset_of(text: &str, line: u64, column: u64) -> usize {
    let index = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let start: usize = text.split_inclusive('\n').take(index(line)).map(str::len).sum();
    start + text[start..].chars().take(index(column)).map(char::len_utf8).sum::<usize>()
}

enum Yaml {
    Null,
    Bool(bool),
    Integer(i128),
    Fraction(f64),
    Text(String),
    List(Vec<Spanned<Yaml>>),
    Map(Vec<(Spanned<String>, Spanned<Yaml>)>),
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Yaml, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
        Yaml::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
        Ok(Yaml::Fraction(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Yaml, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Yaml::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Yaml::Map(entries))
    }
}
