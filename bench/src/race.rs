//! The race itself: one topic, loaded once, and every peer in turn.

use std::time::Instant;

use anyhow::{Context, Result};
use integration_tests::admin::Admin;
use integration_tests::kafka::{Broker, BrokerOptions};
use integration_tests::{unique_name, workload};

use crate::arguments::Arguments;
use crate::figures::{Measure, Run};
use crate::peers::{Course, Peer, Runner, clean_up};
use crate::watch::{Watched, watch};

pub fn race(arguments: &Arguments) -> Result<Vec<Run>> {
    for peer in &arguments.only {
        peer.prepare()?;
    }
    eprintln!("starting two brokers");
    let options = BrokerOptions::default()
        .heap_mib(1024)
        .on_host_network()
        // What a run leaves behind is gone from the disk before it can be in the way of the next.
        .property("log.segment.delete.delay.ms", "1000");
    let (source, target) = (Broker::start(&options)?, Broker::start(&options)?);
    let topic = unique_name("race");
    let course = Course { source: source.bootstrap(), target: target.bootstrap(), topic };
    load(arguments, &course)?;
    let mut runs = Vec::new();
    for round in 0..arguments.rounds {
        for &peer in &arguments.only {
            let number = runs.len();
            let run = run(arguments, &course, peer, round, number)
                .with_context(|| format!("{} in round {}", peer.title(), round + 1))?;
            tell(arguments, &run);
            runs.push(run);
            clean_up(&course)?;
        }
    }
    Ok(runs)
}

fn load(arguments: &Arguments, course: &Course) -> Result<()> {
    eprintln!("writing {} records of {} bytes", arguments.records, arguments.bytes);
    let partitions = arguments.partitions;
    Admin::connect(&course.source)?.create_topic(&course.topic, usize::try_from(partitions)?)?;
    workload::fill(&course.source, &course.topic, partitions, 0..arguments.records, arguments.bytes)
}

fn run(arguments: &Arguments, course: &Course, peer: Peer, round: usize, number: usize) -> Result<Run> {
    let started = Instant::now();
    let Runner { mut process, target_topic } = peer.start(arguments, course, number)?;
    let what = Watched {
        bootstrap: &course.target,
        topic: &target_topic,
        partitions: arguments.partitions,
        records: arguments.records,
        ending: peer.ending(),
    };
    let arrival = watch(&what, &mut process, started)?;
    let peak_memory_kib = process.peak_memory_kib()?;
    process.stop()?;
    Ok(Run { peer, round, arrival, peak_memory_kib })
}

/// A line while it lasts.
fn tell(arguments: &Arguments, run: &Run) {
    let of = |measure: Measure| measure.of(run, arguments);
    eprintln!(
        "round {} {:<28} {:>7.1} MB/s {:>6.2} CPU s/GB {:>6.0} MB, first record after {:.1} s",
        run.round + 1,
        run.peer.title(),
        of(Measure::Throughput),
        of(Measure::Cpu),
        of(Measure::Memory),
        of(Measure::Startup),
    );
}
