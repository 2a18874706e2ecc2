//! TOML to settings.

use super::error::ConfigError;
use super::place::{Place, SourceText};
use super::tree::{Item, Node, Setting, Value, flatten};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) fn parse(source: &Arc<SourceText>, layer: usize) -> Result<Vec<Setting>, ConfigError> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    // What comes first in the file is the cause of the rest.
    match errors.into_iter().min_by_key(|error| error.span().map(|span| span.start)) {
        None => Ok(flatten(children(source, table.into_inner()), layer)),
        Some(error) => {
            let place = Place::new(source, error.span().unwrap_or(0..0));
            Err(ConfigError::at(&place, format!("not TOML: {}", error.message())))
        }
    }
}

/// The list that `text` is in TOML, if it is one of texts only.
pub(super) fn parse_list(text: &str, place: &Place) -> Option<Vec<Item>> {
    let DeValue::Array(array) = DeValue::parse(text).ok()?.into_inner() else { return None };
    let item = |element: &Spanned<DeValue<'_>>| match element.get_ref() {
        DeValue::String(text) => Some(Item { value: Value::Text(text.to_string()), place: place.clone() }),
        _ => None,
    };
    array.iter().map(item).collect()
}

fn children(source: &Arc<SourceText>, table: DeTable<'_>) -> Vec<(String, Place, Node)> {
    let mut children: Vec<_> = table
        .into_iter()
        .map(|(key, value)| {
            let place = Place::new(source, key.span());
            (key.into_inner().into_owned(), place, node(source, value))
        })
        .collect();
    children.sort_by_key(|(_, place, _)| place.span.start);
    children
}

fn node(source: &Arc<SourceText>, value: Spanned<DeValue<'_>>) -> Node {
    let place = Place::new(source, value.span());
    let value = match value.into_inner() {
        DeValue::Table(table) => return Node::Table(children(source, table)),
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) if integer.radix() == 10 => Value::Number(integer.as_str().into()),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            Value::Number(number.map_or_else(|_| integer.to_string(), |number| number.to_string()))
        }
        DeValue::Float(float) => Value::Number(float.as_str().into()),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(array) => Value::List(
            array
                .into_iter()
                .map(|element| match node(source, element) {
                    Node::Leaf(item) => item,
                    Node::Table(_) => Item { value: Value::Empty, place: place.clone() },
                })
                .collect(),
        ),
    };
    Node::Leaf(Item { value, place })
}
