//! MirrorMaker 1, the `kafka-mirror-maker.sh` of Kafka 3.9, with its default heap.

use anyhow::Result;
use integration_tests::admin::Admin;

use super::{Course, Runner};
use crate::arguments::Arguments;
use crate::java::{LOGGING, MIRROR_MAKER_1};
use crate::process::{Process, directory_with};

pub(super) fn start(arguments: &Arguments, course: &Course, run: usize) -> Result<Runner> {
    // It can give its copies no other name, and leaves it to the broker to make the topic.
    let partitions = usize::try_from(arguments.partitions)?;
    Admin::connect(&course.target)?.create_topic(&course.topic, partitions)?;
    let consumer =
        format!("bootstrap.servers={}\ngroup.id=race-{run}\nauto.offset.reset=earliest\n", course.source);
    // acks=all and unlimited retries are its own defaults.
    let producer = format!("bootstrap.servers={}\n", course.target);
    let files = [("consumer.properties", consumer.as_str()), ("producer.properties", producer.as_str())];
    let directory = directory_with(&[files, LOGGING].concat())?;
    let mut command = MIRROR_MAKER_1.command(&["-Xmx256M"], "kafka.tools.MirrorMaker")?;
    command.args(["--consumer.config", "consumer.properties", "--producer.config", "producer.properties"]);
    command.args(["--num.streams", &arguments.mm1_streams.to_string(), "--whitelist", &course.topic]);
    Ok(Runner { process: Process::start(command, directory)?, target_topic: course.topic.clone() })
}
