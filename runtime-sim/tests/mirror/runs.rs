use crate::support::{await_all_copied, create_topic, is_all_copied, produce, start};
use runtime_sim::{
    ClientFaults, Handle, Moment, NetworkFaults, Random, Rate, Record, Setup, Slot, TraceMode, simulate,
};
use verbatim_core::failure::Side;

fn setup() -> Setup {
    Setup::default()
}

#[test]
fn one_instance_copies_everything() {
    let ((), record) = simulate(1, setup(), async |handle: Handle| {
        create_topic(&handle, 2).await;
        produce(&handle, 20, 0).await;
        start(&handle, 0, 2);
        await_all_copied(&handle, 2, 30_000).await;
        produce(&handle, 20, 50).await;
        await_all_copied(&handle, 2, 5_000).await;
    });
    assert!(0 < record.counters.settled, "{:?}", record.counters);
}

#[test]
fn three_instances_share_the_lanes() {
    let ((), record) = simulate(2, setup(), async |handle: Handle| {
        create_topic(&handle, 6).await;
        (0..3).for_each(|slot| start(&handle, slot, 6));
        produce(&handle, 100, 100).await;
        await_all_copied(&handle, 6, 60_000).await;
        let owned = (0..3).map(|slot| handle.reports(Slot(slot)).map_or(0, |report| report.lanes_owned));
        assert_eq!(owned.collect::<Vec<_>>(), [2, 2, 2]);
    });
    assert!(3 <= record.counters.rebalances, "{:?}", record.counters);
}

fn log_uniform(random: &mut Random, most: u32) -> Rate {
    if random.below(2) == 0 {
        return Rate::NEVER;
    }
    Rate((f64::from(most) * 10f64.powf(-(random.below(2_000) as f64) / 1_000.0)) as u32)
}

fn network(random: &mut Random) -> NetworkFaults {
    NetworkFaults {
        delay_max_ms: [1, 5, 30][random.below(3) as usize],
        slow: log_uniform(random, 20_000),
        request_lost: log_uniform(random, 20_000),
        response_lost: log_uniform(random, 20_000),
        disconnect: log_uniform(random, 20_000),
        silent: log_uniform(random, 500_000),
        refused: log_uniform(random, 20_000),
        refused_after_apply: log_uniform(random, 20_000),
        ..NetworkFaults::default()
    }
}

async fn instance_faults(handle: &Handle, random: &mut Random, until: i64) {
    while handle.now() < until {
        handle.sleep(random.between(200, 6_000)).await;
        let slot = Slot(random.below(3) as u32);
        match random.below(6) {
            0 => handle.crash(slot),
            1 | 2 => handle.crash_at(slot, *random.pick(Moment::ALL).unwrap()),
            3 => {
                handle.pause(slot);
                handle.sleep(random.between(100, 20_000)).await;
                handle.resume(slot);
            }
            4 => handle.set_network(network(random)),
            _ => {
                let broker = kafka_model::BrokerId(random.between(1, 3) as i32);
                let side = if random.below(2) == 0 { Side::Source } else { Side::Target };
                handle.administer(side, |cluster, now| cluster.crash_broker(now, broker));
                handle.sleep(random.between(100, 5_000)).await;
                handle.administer(side, |cluster, now| cluster.restart_broker(now, broker));
            }
        }
        (0..3).filter(|slot| !handle.is_running(Slot(*slot))).for_each(|slot| start(handle, slot, 4));
    }
}

/// Faults of every kind for a minute, then none, and all must be copied soon.
fn storm(seed: u64, trace: TraceMode) -> Record {
    let mut random = Random::of(seed, "plan");
    let client = ClientFaults {
        batch_records_max: [1, 3, 10_000][random.below(3) as usize],
        fetch_records_max: [2, 10, 1_000][random.below(3) as usize],
        slow_step: log_uniform(&mut random, 20_000),
        ..ClientFaults::default()
    };
    let mut setup = Setup { network: network(&mut random), client, trace, ..setup() };
    setup.target.marker_delay_ms = random.between(0, 20);
    setup.target.replication_delay_ms = random.between(0, 10);
    simulate(seed, setup, async move |handle: Handle| {
        create_topic(&handle, 4).await;
        (0..3).for_each(|slot| start(&handle, slot, 4));
        let producer = handle.clone();
        handle.spawn(async move { produce(&producer, 300, 200).await });
        instance_faults(&handle, &mut random, 60_000).await;
        is_all_copied(&handle, 4);
        handle.set_network(NetworkFaults::default());
        handle.set_client_faults(ClientFaults::default());
        for slot in 0..3 {
            handle.crash_at_no_moment(Slot(slot));
            handle.resume(Slot(slot));
        }
        await_all_copied(&handle, 4, 120_000).await;
    })
    .1
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn storms_lose_nothing_and_double_nothing() {
    let first = from_environment("SIM_SEED");
    let count = from_environment("SIM_NUM").unwrap_or(if first.is_some() { 1 } else { 20 });
    let first = first.unwrap_or(0);
    let mut counters = runtime_sim::Counters::default();
    let (mut failed, mut virtual_millis) = (Vec::new(), 0);
    let began = std::time::Instant::now();
    for seed in first..first + count {
        let trace = if std::env::var_os("SIM_TRACE").is_some() { TraceMode::Text } else { TraceMode::Hash };
        match std::panic::catch_unwind(|| storm(seed, trace)) {
            Ok(record) => {
                record.lines.iter().for_each(|line| println!("{line}"));
                counters.add(&record.counters);
                virtual_millis += record.virtual_millis;
            }
            Err(_) => failed.push(seed),
        }
    }
    let wall = began.elapsed().as_secs_f64();
    println!("{:.1} seeds/s, {:.0} virtual s/s", count as f64 / wall, virtual_millis as f64 / 1000.0 / wall);
    println!("{counters:#?}");
    assert!(failed.is_empty(), "failed seeds: {failed:?}");
}
