//! A configuration as it was written, whatever the language: a flat list of dotted keys with their values.

use super::place::Place;
use std::fmt;

/// One key with its value. `[source]` with `sasl.mechanism = "PLAIN"` is `source.sasl.mechanism`, however its
/// dots were nested: TOML makes tables of them, Kafka means one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub key_place: Place,
    pub value: Item,
    /// Later layers win over earlier ones.
    pub layer: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub value: Value,
    pub place: Place,
}

impl Item {
    /// Lets no error show what stands here.
    pub(super) fn hide(&mut self) {
        self.place.secret = true;
        if let Value::List(items) = &mut self.value {
            items.iter_mut().for_each(Item::hide);
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    /// An integer or a decimal fraction, as it was written.
    Number(String),
    Bool(bool),
    List(Vec<Item>),
    /// A section without keys.
    Empty,
}

impl Value {
    /// What the value is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Empty => "a section",
        }
    }
}

impl fmt::Debug for Value {
    /// Without what it holds, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// A value before its dots are flattened.
pub(super) enum Node {
    Leaf(Item),
    Table(Vec<(String, Place, Node)>),
}

/// Puts all values under dotted keys, in the order they were written.
pub(super) fn flatten(table: Vec<(String, Place, Node)>, layer: usize) -> Vec<Setting> {
    let mut settings = Vec::new();
    flatten_into(&mut settings, "", table, layer);
    settings
}

fn flatten_into(settings: &mut Vec<Setting>, prefix: &str, table: Vec<(String, Place, Node)>, layer: usize) {
    for (name, key_place, node) in table {
        let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match node {
            Node::Leaf(value) => settings.push(Setting { key, key_place, value, layer }),
            Node::Table(inner) if inner.is_empty() => {
                let value = Item { value: Value::Empty, place: key_place.clone() };
                settings.push(Setting { key, key_place, value, layer });
            }
            Node::Table(inner) => flatten_into(settings, &key, inner, layer),
        }
    }
}
