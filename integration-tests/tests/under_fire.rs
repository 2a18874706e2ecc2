//! Instances are killed and frozen, brokers die: nothing is lost, nothing doubled, order kept.

#[path = "support/stage.rs"]
mod stage;

use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use integration_tests::flow::{Flow, PARTITIONS, incarnation};
use integration_tests::kafka::{Broker, BrokerOptions, IMAGE_3_9};
use integration_tests::mirror::Mirror;
use integration_tests::transactions::TransactionState;
use integration_tests::workload::now_ms;
use integration_tests::{batch, require_kafka, wait_for};
use stage::{PATIENCE, alone, source, target};

fn target_3_9() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| Broker::start(&BrokerOptions::kafka_3_9()).expect("a broker starts"))
}

#[test]
fn twenty_kills_on_4_1() {
    require_kafka!();
    kill_nine(target(), 20, 300_000);
}

#[test]
fn five_kills_on_3_9() {
    require_kafka!(IMAGE_3_9);
    kill_nine(target_3_9(), 5, 50_000);
}

/// Two instances are killed again and again under a live load. Three kills of four strike while the victim
/// has a transaction open; the fourth strikes it again at any moment while it is coming back.
fn kill_nine(target: &Broker, kills: u64, records: u64) {
    let _alone = alone();
    let flow = Flow::new(source(), target, "killed").unwrap();
    let preloaded = records / 3;
    flow.fill(0..preloaded).unwrap();
    let visible = flow.follow().unwrap();
    let names = ["first", "second"];
    let mut instances = names.map(|name| flow.start_as(name).unwrap());
    let load = flow.load(preloaded, 3000).unwrap();
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    let (mut victim, mut inside) = (0, 0);
    for kill in 0..kills {
        if kill % 4 == 3 {
            sleep(Duration::from_millis(kill * 397 % 1500));
            instances[victim].kill().unwrap();
        } else {
            victim = 1 - victim;
            kill_inside(&flow, &mut instances[victim]);
            inside += 1;
        }
        if kill % 4 == 3 {
            let rows = flow.status().unwrap();
            assert!(0 < rows.iter().filter_map(|row| row.lag).sum::<u64>(), "nothing left to copy: {rows:?}");
        }
        instances[victim] = flow.start_as(names[victim]).unwrap();
        eprintln!("kill {kill}: {} records are visible", visible.count());
    }
    assert!(kills / 2 <= inside);
    let loaded = preloaded + load.stop().unwrap();
    flow.fill(loaded..records.max(loaded)).unwrap();
    let records = records.max(loaded);
    visible.wait_for_count(records, PATIENCE);
    for instance in &mut instances {
        instance.terminate().unwrap();
        assert_eq!(instance.wait(PATIENCE).unwrap(), 0);
    }
    flow.judge(records);
}

/// Kills an instance, and proves that a transaction of its own, with records in it, was open by then: so there
/// was something left to copy.
fn kill_inside(flow: &Flow<'_>, victim: &mut Mirror) {
    let mut misses = 0;
    wait_for("a kill within a transaction", PATIENCE, || {
        if !victim.is_running() {
            // Killed by the attempt before, between two transactions.
            misses += 1;
            *victim = flow.start_as(incarnation(victim)?.rsplit_once('-')?.0).unwrap();
        }
        let own = flow.lanes_of(victim).ok()?;
        let open = own_transactions(flow, &own);
        if open.is_empty() {
            return None;
        }
        victim.kill().unwrap();
        let killed = incarnation(victim)?;
        // Still the same transaction, after its producer's death, and nobody has claimed the lane since.
        open.iter().find_map(|(lane, before)| {
            let after = flow.transaction(*lane).unwrap()?;
            let same = |it: &TransactionState| (it.producer_id, it.producer_epoch);
            let open = after.is_open() && same(&after) == same(before);
            (open && flow.owner(*lane).unwrap().as_deref() == Some(&killed)).then_some(())
        })
    });
    if 0 < misses {
        eprintln!("{misses} kills fell between two transactions");
    }
}

fn own_transactions(flow: &Flow<'_>, lanes: &[i32]) -> Vec<(i32, TransactionState)> {
    let open = flow.open_transactions().unwrap();
    open.into_iter().filter(|(lane, _)| lanes.contains(lane)).collect()
}

#[test]
fn five_zombies_on_4_1() {
    require_kafka!();
    let _alone = alone();
    zombies(target(), &[2, 2, 1]);
}

#[test]
fn a_zombie_on_3_9() {
    require_kafka!(IMAGE_3_9);
    let _alone = alone();
    zombies(target_3_9(), &[1]);
}

/// What an instance that is frozen may write under if it does not know that its time is over.
struct Zombie {
    place: usize,
    logged: usize,
    incarnation: String,
    /// Lane, producer id and epoch.
    producers: Vec<(i32, i64, i16)>,
}

/// In each round so many of three instances are frozen for longer than the session and the transaction may last.
fn zombies(target: &Broker, rounds: &[usize]) {
    let mut flow = Flow::new(source(), target, "frozen").unwrap();
    flow.config = flow.config.set("target", "transaction.timeout.ms", "10000");
    let mut instances = [(); 3].map(|()| flow.start().unwrap());
    let load = flow.load(0, 1000).unwrap();
    let visible = flow.follow().unwrap();
    let mut next = 0;
    for &count in rounds {
        flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
        let places = [next % 3, (next + 1) % 3];
        next += count;
        let frozen: Vec<Zombie> =
            places[..count].iter().map(|place| freeze(&flow, &instances, *place)).collect();
        freeze_and_wake(&flow, &mut instances, &frozen);
    }
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    for instance in &mut instances {
        instance.terminate().unwrap();
        assert_eq!(instance.wait(PATIENCE).unwrap(), 0);
    }
    flow.judge(records);
}

/// Freezes an instance while a transaction of its own is open.
fn freeze(flow: &Flow<'_>, instances: &[Mirror], place: usize) -> Zombie {
    let mirror = &instances[place];
    let own = flow.lanes_of(mirror).unwrap();
    wait_for("an open transaction", PATIENCE, || {
        if own_transactions(flow, &own).is_empty() {
            return None;
        }
        mirror.freeze().unwrap();
        let open = own_transactions(flow, &own);
        if open.is_empty() {
            mirror.thaw().unwrap();
        }
        (!open.is_empty()).then_some(())
    });
    let producer = |lane: &i32| {
        let state = flow.transaction(*lane).unwrap().expect("a lane that was claimed");
        (*lane, state.producer_id, state.producer_epoch)
    };
    Zombie {
        place,
        logged: mirror.stderr().len(),
        incarnation: incarnation(mirror).expect("a name in the log"),
        producers: flow.lanes_of(mirror).unwrap().iter().map(producer).collect(),
    }
}

/// Waits until others have the lanes of the frozen, wakes them, and asserts that they write nothing any more.
fn freeze_and_wake(flow: &Flow<'_>, instances: &mut [Mirror], frozen: &[Zombie]) {
    let since = Instant::now();
    for zombie in frozen {
        assert!(!zombie.producers.is_empty());
        for (lane, _, _) in &zombie.producers {
            wait_for(&format!("lane {lane} of a frozen instance to be taken"), PATIENCE, || {
                (flow.owner(*lane).unwrap()? != zombie.incarnation).then_some(())
            });
        }
    }
    eprintln!("the lanes of {} frozen instances were taken after {:?}", frozen.len(), since.elapsed());
    // Longer than the session of 8 s, and than the transaction with the broker's look at it every second.
    sleep(Duration::from_millis(12_500).saturating_sub(since.elapsed()));
    let ends = flow.log_ends().unwrap();
    for zombie in frozen {
        instances[zombie.place].thaw().unwrap();
    }
    for zombie in frozen {
        let mirror = &instances[zombie.place];
        wait_for("a zombie to notice", PATIENCE, || {
            let log = mirror.stderr().split_off(zombie.logged);
            (log.contains("fenced: another instance has the lane") || log.contains("lanes lost"))
                .then_some(())
        });
    }
    // Long enough for whatever they still had in their queues, and for them to come back as they should.
    flow.wait_until_shared(&instances.iter().collect::<Vec<_>>(), PATIENCE);
    sleep(Duration::from_secs(1));
    for (topic, partition, end) in ends {
        for header in batch::fetch_headers(&flow.target.bootstrap(), &topic, partition, end).unwrap() {
            let by_zombie = frozen.iter().flat_map(|zombie| &zombie.producers).any(|(_, id, epoch)| {
                (header.producer_id, header.producer_epoch) == (*id, *epoch) && !header.control
            });
            assert!(!by_zombie, "{topic} {partition}: a zombie wrote {header:?}");
        }
    }
}

#[test]
fn the_target_broker_dies() {
    require_kafka!();
    broker_dies(target(), "target");
}

#[test]
fn the_source_broker_dies() {
    require_kafka!();
    broker_dies(source(), "source");
}

/// A cluster's only broker, with all its coordinators, is killed under load and comes back: copying goes on
/// within 15 s, without help.
fn broker_dies(victim: &Broker, side: &str) {
    let _alone = alone();
    let flow = Flow::new(source(), target(), &format!("{side}-dies")).unwrap();
    let mut instances = [flow.start().unwrap(), flow.start().unwrap()];
    let load = flow.load(0, 1000).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    visible.wait_for_count(2000, PATIENCE);
    victim.kill().unwrap();
    sleep(Duration::from_secs(3));
    victim.start_again().unwrap();
    let partitions: Vec<i32> = (0..PARTITIONS).collect();
    let again = visible.wait_for_newer(&partitions, now_ms(), Duration::from_secs(15));
    eprintln!("all partitions of the {side} were copied again {again:?} after its return");
    assert!(instances.iter_mut().all(Mirror::is_running));
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    for instance in &mut instances {
        instance.terminate().unwrap();
        assert_eq!(instance.wait(PATIENCE).unwrap(), 0);
    }
    flow.judge(records);
}
