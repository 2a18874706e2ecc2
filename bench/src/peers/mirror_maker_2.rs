//! MirrorMaker 2 as a process of its own, the `connect-mirror-maker.sh` of Kafka 4.1, with its default heap.

use anyhow::Result;
use integration_tests::kafka::free_port;

use super::{Course, Runner};
use crate::arguments::Arguments;
use crate::java::{LOGGING, MIRROR_MAKER_2};
use crate::process::{Process, directory_with};

pub(super) fn start(
    arguments: &Arguments,
    course: &Course,
    run: usize,
    exactly_once: bool,
) -> Result<Runner> {
    let source = format!("race{run}");
    let properties = properties(arguments, course, &source, exactly_once)?;
    let files = [("mm2.properties", properties.as_str())];
    let directory = directory_with(&[files.as_slice(), &LOGGING].concat())?;
    let class = "org.apache.kafka.connect.mirror.MirrorMaker";
    let mut command = MIRROR_MAKER_2.command(&["-Xms256M", "-Xmx2G"], class)?;
    command.arg("mm2.properties");
    Ok(Runner {
        process: Process::start(command, directory)?,
        target_topic: format!("{source}.{}", course.topic),
    })
}

/// The alias of the source is new in each run, and with it the names of all its internal topics.
fn properties(arguments: &Arguments, course: &Course, source: &str, exactly_once: bool) -> Result<String> {
    let mut lines = vec![
        format!("clusters = {source}, target"),
        format!("{source}.bootstrap.servers = {}", course.source),
        format!("target.bootstrap.servers = {}", course.target),
        format!("{source}->target.enabled = true"),
        format!("{source}->target.topics = {}", course.topic),
        format!("target->{source}.enabled = false"),
        format!("{source}.consumer.auto.offset.reset = earliest"),
        format!("tasks.max = {}", arguments.mm2_tasks),
        // One broker has room for one replica.
        "replication.factor = 1".to_owned(),
        "offset-syncs.topic.replication.factor = 1".to_owned(),
        "heartbeats.topic.replication.factor = 1".to_owned(),
        "checkpoints.topic.replication.factor = 1".to_owned(),
        "config.storage.replication.factor = 1".to_owned(),
        "offset.storage.replication.factor = 1".to_owned(),
        "status.storage.replication.factor = 1".to_owned(),
        // Nothing but the copying.
        "emit.heartbeats.enabled = false".to_owned(),
        "emit.checkpoints.enabled = false".to_owned(),
        "sync.topic.acls.enabled = false".to_owned(),
    ];
    if exactly_once {
        lines.push("exactly.once.source.support = enabled".to_owned());
        lines.push("dedicated.mode.enable.internal.rest = true".to_owned());
        lines.push(format!("listeners = http://127.0.0.1:{}", free_port()?));
    }
    Ok(lines.join("\n") + "\n")
}
