//! Files, environment and flags put together, later ones winning, each value keeping its origin.

use super::error::{ConfigError, ConfigErrors};
use super::place::{Kind, Place, SourceText};
use super::reference::{self, Lookup};
use super::schema;
use super::tree::{Item, Setting, Value};
use super::{secrets, toml_file, yaml_file};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
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
    /// Whatever else is in the environment need not even be text.
    pub fn environment(&mut self, variables: impl Iterator<Item = (OsString, OsString)>) {
        self.layers += 1;
        let named = variables.filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((environment_key(&name)?, name, value))
        });
        let mut named: Vec<(String, String, OsString)> = named.collect();
        named.sort();
        for (key, name, value) in named {
            match value.into_string() {
                Ok(value) => self.variable(key, name, value),
                Err(_) => {
                    let message = format!("environment variable {name}: its value is not text in UTF-8");
                    self.errors.push(ConfigError::new(message));
                }
            }
        }
    }

    fn variable(&mut self, key: String, name: String, value: String) {
        let text = format!("{name}={value}");
        let spans = (0..name.len(), name.len() + 1..text.len());
        let source = Arc::new(SourceText { name, text, kind: Kind::Environment });
        // References are not looked for: what the environment holds is final, secrets above all.
        self.add(text_setting(key, value, &source, spans, self.layers), None);
    }

    /// Adds `--set key=value`.
    pub fn flag(&mut self, flag: &str, lookup: &dyn Lookup) {
        self.layers += 1;
        let (key, value) = flag.split_once('=').unwrap_or((flag, ""));
        let source = SourceText { name: key.trim().into(), text: flag.into(), kind: Kind::Flag };
        let spans = (0..key.len(), (key.len() + 1).min(flag.len())..flag.len());
        let source = Arc::new(source);
        let setting = text_setting(key.trim().into(), value.into(), &source, spans, self.layers);
        self.add(setting, Some(lookup));
    }

    pub(super) fn finish(self) -> Result<Layered, ConfigErrors> {
        if self.errors.is_empty() { Ok(self.settings) } else { Err(ConfigErrors(self.errors)) }
    }

    fn add(&mut self, mut setting: Setting, lookup: Option<&dyn Lookup>) {
        if secrets::is_secret(&setting.key) {
            setting.value.hide();
        }
        let resolved = lookup.map_or(Ok(()), |lookup| reference::resolve(&mut setting.value, lookup));
        if let Err(error) = resolved.and_then(|()| self.refuse_twice(&setting)) {
            return self.errors.push(error);
        }
        self.settings.insert(setting.key.clone(), setting);
    }

    /// Within one layer nothing says which of two values wins. A file can spell one key in two ways: `a.b = 1`
    /// and `"a.b" = 2` are two keys to TOML.
    fn refuse_twice(&self, setting: &Setting) -> Result<(), ConfigError> {
        match self.settings.get(&setting.key) {
            Some(earlier) if earlier.layer == setting.layer => {
                Err(ConfigError::at(&setting.key_place, format!("{} is given twice", setting.key))
                    .label("given here again")
                    .help(format!("it stands at {} too; keep one of them", earlier.key_place)))
            }
            Some(_) | None => Ok(()),
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
    (key_span, value_span): (Range<usize>, Range<usize>),
    layer: usize,
) -> Setting {
    let place = Place::new(source, value_span);
    let list = toml_file::parse_list(&value, &place);
    let value = Item { value: list.map_or(Value::Text(value), Value::List), place };
    Setting { key, key_place: Place::new(source, key_span), value, layer }
}
