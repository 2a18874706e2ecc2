//! The configuration: written text -> settings with places -> one layer over another -> a validated flow.
//!
//! Every value keeps its place, so whatever is wrong with it can be shown where it was written.

mod client;
mod error;
mod flow;
mod layers;
mod place;
mod reader;
mod reference;
mod schema;
mod secrets;
mod starter;
mod toml_file;
mod tree;
mod values;
mod yaml_file;

pub use client::Properties;
pub use error::{ConfigError, ConfigErrors};
pub use flow::Config;
pub use layers::Layers;
pub use place::{Kind, Place, SourceText};
pub use reference::{Lookup, Process};
pub(crate) use secrets::excerpt;
pub use starter::STARTER;
pub use values::{parse_duration, parse_time};

use std::path::PathBuf;

/// Reads the files, the environment and the flags of this process and validates what they say together.
pub fn load(files: &[PathBuf], flags: &[String]) -> Result<Config, ConfigErrors> {
    let mut layers = Layers::default();
    let mut errors = Vec::new();
    for file in files {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => layers.file(&name, text, &Process),
            Err(error) => errors.push(ConfigError::new(format!("cannot read {name}: {error}"))),
        }
    }
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }
    layers.environment(std::env::vars_os());
    for flag in flags {
        layers.flag(flag, &Process);
    }
    validate(layers)
}

/// Validates what `layers` say together.
pub fn validate(layers: Layers) -> Result<Config, ConfigErrors> {
    flow::validate(layers.finish()?)
}

#[cfg(test)]
mod tests;
