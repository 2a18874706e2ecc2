//! Kafka client properties: Java's names and values to librdkafka's, and none that would break a promise.
//!
//! A property either does what its name says or is refused with its place; none is dropped in silence, save
//! those that ask for what the mirror does anyway.

mod jaas;
mod names;
mod promises;
mod ssl;

use super::error::ConfigError;
use super::place::Place;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use verbatim_core::failure::Side;

pub(super) use names::nearest;

/// A client property as it was written under `[source]` or `[target]`.
#[derive(Clone)]
pub(super) struct Property {
    pub name: String,
    pub value: String,
    pub name_place: Place,
    pub value_place: Place,
    pub layer: usize,
}

/// One cluster's properties under librdkafka's names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl fmt::Debug for Properties {
    /// By their names alone: some hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Deref for Properties {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

/// Whether librdkafka takes a property.
pub(super) enum Verdict {
    Taken,
    Unknown,
    /// Known, but not with this value.
    Invalid(String),
}

/// Translates one side's properties. `ask` has librdkafka itself judge a name and value.
pub(super) fn translate(
    side: Side,
    properties: Vec<Property>,
    ask: &dyn Fn(&str, &str) -> Verdict,
) -> Result<Properties, Vec<ConfigError>> {
    let mut errors = Vec::new();
    let mut merged: BTreeMap<String, (String, Property)> = BTreeMap::new();
    let (properties, certificates) = ssl::separate(properties);
    let mut pairs: Vec<(String, String, Property)> = Vec::new();
    match ssl::translate(certificates) {
        Ok(translated) => pairs.extend(translated),
        Err(error) => errors.push(error),
    }
    for property in properties {
        match one(side, &property) {
            Ok(translated) => {
                pairs.extend(translated.into_iter().map(|(name, value)| (name, value, property.clone())));
            }
            Err(error) => errors.push(error),
        }
    }
    for (name, value, property) in pairs {
        let verdict = judge(side, &name, &value, &property, ask);
        if let Err(error) = verdict.and_then(|()| merge(&mut merged, name, value, property)) {
            errors.push(error);
        }
    }
    if errors.is_empty() {
        Ok(Properties(merged.into_iter().map(|(name, (value, _))| (name, value)).collect()))
    } else {
        Err(errors)
    }
}

/// Two names of one property in one layer contradict each other; in two layers the later wins.
fn merge(
    merged: &mut BTreeMap<String, (String, Property)>,
    name: String,
    value: String,
    property: Property,
) -> Result<(), ConfigError> {
    if let Some((earlier_value, earlier)) = merged.get(&name) {
        if earlier.layer == property.layer && *earlier_value != value {
            let message = format!("{} and {} are one property, given twice", earlier.name, property.name);
            return Err(ConfigError::at(&property.name_place, message)
                .label("given here again")
                .help(format!("it stands at {} too; keep one of them", earlier.name_place)));
        }
        if property.layer < earlier.layer {
            return Ok(());
        }
    }
    merged.insert(name, (value, property));
    Ok(())
}

/// What librdkafka is told for one property: nothing where the mirror does it anyway.
fn one(side: Side, property: &Property) -> Result<Vec<(String, String)>, ConfigError> {
    if promises::check(side, property)? == promises::Asked::WhatIsDoneAnyway {
        return Ok(Vec::new());
    }
    let Property { name, value, .. } = property;
    let set = |name: &str, value: &str| Ok(vec![(name.to_string(), value.to_string())]);
    match name.as_str() {
        "sasl.jaas.config" => jaas::translate(property),
        "sasl.login.callback.handler.class" => login_handler(property),
        "buffer.memory" => {
            let bytes: u64 = value.parse().map_err(|_| not_a_number(property))?;
            set("queue.buffering.max.kbytes", &bytes.div_ceil(1024).to_string())
        }
        // -1 leaves it to the operating system in the Java client, 0 does in librdkafka.
        "send.buffer.bytes" => set("socket.send.buffer.bytes", value.replace("-1", "0").as_str()),
        "receive.buffer.bytes" => set("socket.receive.buffer.bytes", value.replace("-1", "0").as_str()),
        "ssl.endpoint.identification.algorithm" if value.is_empty() => set(name, "none"),
        _ => set(names::canonical(name), value),
    }
}

fn login_handler(property: &Property) -> Result<Vec<(String, String)>, ConfigError> {
    let class = property.value.rsplit('.').next().unwrap_or_default();
    if class == "OAuthBearerLoginCallbackHandler" {
        return Ok(vec![("sasl.oauthbearer.method".into(), "oidc".into())]);
    }
    let message = format!("the login handler {:?} is a Java class and cannot be loaded", property.value);
    Err(ConfigError::at(&property.value_place, message).help(
        "for OAUTHBEARER over HTTP set sasl.oauthbearer.token.endpoint.url, \
         sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret",
    ))
}

fn not_a_number(property: &Property) -> ConfigError {
    ConfigError::at(&property.value_place, format!("{} wants a whole number", property.name))
        .label("not a whole number")
}

/// Refuses what would have no effect on this side, and what librdkafka does not take.
fn judge(
    side: Side,
    name: &str,
    value: &str,
    property: &Property,
    ask: &dyn Fn(&str, &str) -> Verdict,
) -> Result<(), ConfigError> {
    if let Some((other, why)) = names::misplaced(side, name) {
        let message = format!("{} has no effect under [{side}]: {why}", property.name);
        return Err(ConfigError::at(&property.name_place, message)
            .label("no effect here")
            .help(format!("set it under [{other}]")));
    }
    match ask(name, value) {
        Verdict::Taken => Ok(()),
        Verdict::Unknown => Err(unknown(side, property)),
        Verdict::Invalid(why) => {
            let written = &property.name;
            let known_as = if written == name { String::new() } else { format!(" ({name} in librdkafka)") };
            let message = format!("{written}{known_as} cannot have this value: {why}");
            Err(ConfigError::at(&property.value_place, message).label("refused"))
        }
    }
}

fn unknown(side: Side, property: &Property) -> ConfigError {
    let name = &property.name;
    if names::is_java_only(name) {
        let message = format!("{name} is known to the Java client only and cannot be honoured here");
        return ConfigError::at(&property.name_place, message).label("remove it");
    }
    let error = ConfigError::at(&property.name_place, format!("unknown client property {side}.{name}"))
        .label("not a Kafka client property");
    match nearest(name) {
        Some(near) => error.help(format!("did you mean {near}?")),
        None => error,
    }
}

#[cfg(test)]
mod tests;
