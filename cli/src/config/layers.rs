//! Files, environment and flags put together, later ones winning, each value keeping its origin.

use super::error::{ConfigError, ConfigErrors};
use super::place::{Kind, Place, SourceText};
use super::reference::{self, Lookup};
use super::schema;
use super::tree::{Item, Setting, Value};
use super::{toml_file, yaml_file};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The settings in force, by key.
pub(super) type Layered = BTreeMap<String, Setting>;

/// What the settings come from, weakest first.
#[derive(Debug, Default)]
pub struct Layers {
    settings: Layered,
    layers: usize,
    errors: Vec<ConfigError>,
}

impl Layers {
    /// Adds a file in TOML, or in YAML if its name says so.
    pub fn file(&mut self, name: &str, text: String, lookup: &dyn Lookup) {
        let source = Arc::new(SourceText { name: name.into(), text, kind: Kind::File });
        self.layers += 1;
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        let parsed = match extension {
            Some("yaml" | "yml") => yaml_file::parse(&source, self.layers),
            _ => toml_file::parse(&source, self.layers),
        };
        match parsed {
            Ok(settings) => settings.into_iter().for_each(|setting| self.add(setting, Some(lookup))),
            Err(error) => self.errors.push(error),
        }
    }

    /// Adds the variables that name a key: `VERBATIM_TOPICS_INCLUDE` is `topics.include`. Others that begin
    /// with `VERBATIM_` belong to somebody else (service links, test harnesses), unless they look like a typo.
    pub fn environment(&mut self, variables: impl Iterator<Item = (String, String)>) {
        self.layers += 1;
        let mut named: Vec<(String, String, String)> =
            variables.filter_map(|(name, value)| Some((environment_key(&name)?, name, value))).collect();
        named.sort();
        for (key, name, value) in named {
            let text = format!("{name}={value}");
            let span = name.len() + 1..text.len();
            let source = Arc::new(SourceText { name, text, kind: Kind::Environment });
            // References are not looked for: what the environment holds is final, secrets above all.
            self.add(text_setting(key, value, &source, span, self.layers), None);
        }
    }

    /// Adds `--set key=value`.
    pub fn flag(&mut self, flag: &str, lookup: &dyn Lookup) {
        self.layers += 1;
        let (key, value) = flag.split_once('=').unwrap_or((flag, ""));
        let source = SourceText { name: key.trim().into(), text: flag.into(), kind: Kind::Flag };
        let span = (key.len() + 1).min(flag.len())..flag.len();
        let source = Arc::new(source);
        let setting = text_setting(key.trim().into(), value.into(), &source, span, self.layers);
        self.add(setting, Some(lookup));
    }

    pub(super) fn finish(self) -> Result<Layered, ConfigErrors> {
        if self.errors.is_empty() { Ok(self.settings) } else { Err(ConfigErrors(self.errors)) }
    }

    fn add(&mut self, mut setting: Setting, lookup: Option<&dyn Lookup>) {
        let resolved = lookup.map_or(Ok(()), |lookup| reference::resolve(&mut setting.value, lookup));
        match resolved {
            Ok(()) => {
                self.settings.insert(setting.key.clone(), setting);
            }
            Err(error) => self.errors.push(error),
        }
    }
}

fn environment_key(name: &str) -> Option<String> {
    let key = name.strip_prefix("VERBATIM_")?.to_ascii_lowercase().replace('_', ".");
    let first = key.split('.').next().unwrap_or_default();
    let known = schema::SECTIONS.contains(&first) || matches!(key.as_str(), "name" | "instance");
    let typo = key.contains('.') && schema::near(first, schema::SECTIONS.into_iter()).is_some();
    (known || typo).then_some(key)
}

/// A value that was given as bare text: a list if it is one in TOML, a text otherwise; numbers and truth
/// values are read from texts where they are wanted.
fn text_setting(
    key: String,
    value: String,
    source: &Arc<SourceText>,
    span: std::ops::Range<usize>,
    layer: usize,
) -> Setting {
    let place = Place::new(source, span);
    let list = toml_file::parse_list(&value, &place);
    let value = Item { value: list.map_or(Value::Text(value), Value::List), place: place.clone() };
    Setting { key, key_place: place, value, layer }
}
