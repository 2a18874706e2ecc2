//! Faults of every kind against three instances.

use crate::support::{TOPIC, await_all_copied, burst, create_topic, is_all_copied, produce, start};
use kafka_model::{BrokerId, ClientId, CoordinatorKind};
use kafka_types::TopicPartition;
use runtime_sim::{ClientFaults, Handle, Moment, NetworkFaults, Random, Rate, Record, Setup, Slot, simulate};
use verbatim_core::failure::Side;

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
        disconnect_end_txn: log_uniform(random, 200_000),
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
        match random.below(8) {
            0 => handle.crash(slot),
            1 | 2 => handle.crash_at(slot, *random.pick(Moment::ALL).unwrap()),
            3 => {
                handle.pause(slot);
                handle.sleep(random.between(100, 20_000)).await;
                handle.resume(slot);
            }
            4 => handle.set_network(network(random)),
            _ => cluster_fault(handle, random).await,
        }
        (0..3).filter(|slot| !handle.is_running(Slot(*slot))).for_each(|slot| start(handle, slot, 4));
    }
}

/// What operators, disks and elections do to a cluster, of which none may cost or double a record.
async fn cluster_fault(handle: &Handle, random: &mut Random) {
    let side = if random.below(2) == 0 { Side::Source } else { Side::Target };
    let broker = BrokerId(random.between(1, 3) as i32);
    let partition = random.between(0, 3) as i32;
    let ledger = TopicPartition::new("verbatim.f.ledger.internal", partition);
    let place = match random.below(2) {
        0 if side == Side::Target => ledger.clone(),
        _ => TopicPartition::new(TOPIC, partition),
    };
    let lasts = random.between(100, 5_000);
    match random.below(9) {
        0 | 1 => {
            handle.administer(side, |cluster, now| cluster.crash_broker(now, broker));
            handle.sleep(lasts).await;
            handle.administer(side, |cluster, now| cluster.restart_broker(now, broker));
        }
        2 => handle.administer(side, |cluster, now| cluster.move_leader(now, &place, broker)),
        3 => handle.administer(side, |cluster, now| {
            let id = format!("verbatim-f-{partition}");
            cluster.move_coordinator(now, CoordinatorKind::Transaction, &id, broker)
        }),
        4 => handle.administer(side, |cluster, now| {
            cluster.move_coordinator(now, CoordinatorKind::Group, "verbatim-f", broker)
        }),
        5 => {
            handle.administer(side, |cluster, now| cluster.stall_replica(now, &place, broker, true));
            handle.sleep(lasts).await;
            handle.administer(side, |cluster, now| cluster.stall_replica(now, &place, broker, false));
        }
        6 => {
            handle.administer(side, |cluster, now| cluster.fill_disk(now, broker, true));
            handle.sleep(lasts).await;
            handle.administer(side, |cluster, now| cluster.fill_disk(now, broker, false));
        }
        7 => {
            let client: ClientId = format!("verbatim-f-lane-{partition}").into();
            handle.administer(side, |cluster, _| {
                cluster.throttle(client.clone(), lasts);
                Vec::new()
            });
            handle.sleep(5_000).await;
            handle.administer(side, |cluster, _| {
                cluster.throttle(client, 0);
                Vec::new()
            });
        }
        _ => handle.administer(Side::Target, |cluster, now| cluster.compact_partition(now, &ledger)),
    }
}

/// Faults of every kind for a minute, then none, and all must be copied soon.
pub fn storm(seed: u64, change: impl FnOnce(&mut Setup)) -> Record {
    let mut random = Random::of(seed, "plan");
    let client = ClientFaults {
        batch_records_max: [1, 3, 10_000][random.below(3) as usize],
        fetch_records_max: [2, 10, 1_000][random.below(3) as usize],
        slow_step: log_uniform(&mut random, 20_000),
        ..ClientFaults::default()
    };
    let mut setup = Setup { network: network(&mut random), client, ..Setup::default() };
    setup.target.marker_delay_ms = random.between(0, 20);
    setup.target.replication_delay_ms = random.between(0, 10);
    setup.target.coordinator_load_ms = random.between(0, 1_000);
    setup.target.failover_ms = random.between(0, 3_000);
    setup.source.failover_ms = random.between(0, 3_000);
    change(&mut setup);
    simulate(seed, setup, async move |handle: Handle| {
        create_topic(&handle, 4).await;
        (0..3).for_each(|slot| start(&handle, slot, 4));
        let producer = handle.clone();
        handle.spawn(async move { produce(&producer, 300, 200).await });
        let bursts = handle.clone();
        handle.spawn(async move {
            while bursts.now() < 60_000 {
                bursts.sleep(1_000 + (bursts.draw() % 5_000) as i64).await;
                burst(&bursts, 4, 1 + (bursts.draw() % 40) as u32).await;
            }
        });
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
