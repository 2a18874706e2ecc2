//! This mirror, as a user would run it: its defaults, and a new name for the copies.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use integration_tests::mirror::MirrorConfig;

use super::{Course, Runner};
use crate::arguments::Setting;
use crate::process::{Process, directory_with};

pub(super) fn start(binary: &Path, set: &[Setting], course: &Course, run: usize) -> Result<Runner> {
    let flow = format!("race-{run}");
    let mut config = MirrorConfig::new(&flow, &course.source, &course.target, &[&course.topic]).text(
        "topics",
        "rename",
        &format!("{flow}.{{topic}}"),
    );
    for (section, key, value) in set {
        config = config.set(section, key, value);
    }
    let directory = directory_with(&[("mirror.toml", &config.to_toml())])?;
    let mut command = Command::new(binary);
    command.args(["run", "-c", "mirror.toml"]);
    let process = Process::start(command, directory)?;
    Ok(Runner { process, target_topic: format!("{flow}.{}", course.topic) })
}
