//! Takes settings out of the layers one by one, each as the type it should have.

use super::error::{ConfigError, ConfigErrors};
use super::layers::Layered;
use super::place::Place;
use super::schema;
use super::tree::{Item, Setting, Value};

/// What remains to be read, and what was wrong so far. Reading goes on after an error, so that a user sees
/// all that is wrong at once.
pub(super) struct Reader {
    settings: Layered,
    errors: Vec<ConfigError>,
}

/// A value with its place.
pub(super) struct Placed<T> {
    pub value: T,
    pub place: Place,
}

impl Reader {
    pub(super) fn new(settings: Layered) -> Reader {
        Reader { settings, errors: Vec::new() }
    }

    pub(super) fn error(&mut self, error: ConfigError) {
        self.errors.push(error);
    }

    /// The settings under `section`, as they are.
    pub(super) fn section(&mut self, section: &str) -> Vec<Setting> {
        let prefix = format!("{section}.");
        let keys: Vec<String> =
            self.settings.keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
        keys.iter().filter_map(|key| self.settings.remove(key)).collect()
    }

    pub(super) fn text(&mut self, key: &str) -> Option<Placed<String>> {
        let item = self.settings.remove(key)?.value;
        match item.value {
            Value::Text(value) => Some(Placed { value, place: item.place }),
            Value::Number(_) | Value::Bool(_) | Value::List(_) | Value::Empty => {
                self.wrong_kind(key, "a text", &item)
            }
        }
    }

    /// A text or a number, as it was written.
    pub(super) fn written(&mut self, key: &str) -> Option<Placed<String>> {
        let item = self.settings.remove(key)?.value;
        match item.value {
            Value::Text(value) | Value::Number(value) => Some(Placed { value, place: item.place }),
            Value::Bool(_) | Value::List(_) | Value::Empty => {
                self.wrong_kind(key, "a text or a number", &item)
            }
        }
    }

    /// A text that `parse` understands.
    pub(super) fn parsed<T, E: ToString>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Placed<T>> {
        let Placed { value, place } = self.text(key)?;
        match parse(&value) {
            Ok(value) => Some(Placed { value, place }),
            Err(error) => {
                self.errors.push(ConfigError::at(&place, format!("{key}: {}", error.to_string())));
                None
            }
        }
    }

    /// A whole number; a text that holds one will do, since references and the environment give only texts.
    pub(super) fn integer(&mut self, key: &str, range: std::ops::RangeInclusive<i64>) -> Option<Placed<i64>> {
        let item = self.settings.remove(key)?.value;
        let (Value::Number(text) | Value::Text(text)) = &item.value else {
            return self.wrong_kind(key, "a whole number", &item);
        };
        match text.trim().parse::<i64>() {
            Ok(value) if range.contains(&value) => Some(Placed { value, place: item.place }),
            Ok(_) => {
                let message = format!("{key} is between {} and {}", range.start(), range.end());
                self.errors.push(ConfigError::at(&item.place, message).label("out of range"));
                None
            }
            Err(_) => self.wrong_kind(key, "a whole number", &item),
        }
    }

    /// A list of texts; a single text is a list of one.
    pub(super) fn texts(&mut self, key: &str) -> Option<Vec<Placed<String>>> {
        let item = self.settings.remove(key)?.value;
        let items = match item.value {
            Value::List(items) => items,
            Value::Text(_) => vec![item],
            Value::Number(_) | Value::Bool(_) | Value::Empty => {
                return self.wrong_kind(key, "a list of texts", &item);
            }
        };
        let mut texts = Vec::new();
        for Item { value, place } in items {
            match value {
                Value::Text(value) => texts.push(Placed { value, place }),
                other => {
                    let message = format!("{key} is a list of texts, not of {}", other.kind());
                    self.errors.push(ConfigError::at(&place, message).label("not a text"));
                }
            }
        }
        Some(texts)
    }

    /// Ends reading: whatever was not asked for is unknown, or comes in a later version.
    pub(super) fn finish<T>(mut self, value: Option<T>) -> Result<T, ConfigErrors> {
        let left: Vec<Setting> = std::mem::take(&mut self.settings).into_values().collect();
        for setting in left {
            self.errors.extend(left_over(&setting));
        }
        self.errors.sort_by_key(order);
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(ConfigErrors(self.errors)),
        }
    }

    fn wrong_kind<T>(&mut self, key: &str, wanted: &str, item: &Item) -> Option<T> {
        let message = format!("{key} is {wanted}, not {}", item.value.kind());
        self.errors.push(ConfigError::at(&item.place, message).label(format!("{wanted} is expected")));
        None
    }
}

/// Files in the order they were given, each from its top.
fn order(error: &ConfigError) -> Option<(String, usize)> {
    error.place.as_ref().map(|place| (place.source.name.clone(), place.span.start))
}

fn left_over(setting: &Setting) -> Option<ConfigError> {
    let Setting { key, key_place, value, .. } = setting;
    if schema::is_later(key) {
        return Some(not_in_this_version(key_place, key));
    }
    if value.value == Value::Empty && schema::SECTIONS.contains(&key.as_str()) {
        return None;
    }
    let error = ConfigError::at(key_place, format!("unknown key {key}")).label("unknown key");
    Some(match schema::nearest(key) {
        Some(near) => error.help(format!("did you mean {near}?")),
        None => error.help(format!("the sections are {}", schema::SECTIONS[..6].join(", "))),
    })
}

pub(super) fn not_in_this_version(place: &Place, what: &str) -> ConfigError {
    ConfigError::at(place, format!("{what} is not in this version")).label("not in this version")
}
