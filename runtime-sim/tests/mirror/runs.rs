use crate::support::{await_all_copied, create_topic, produce, start};
use runtime_sim::{Handle, Setup, Slot, simulate};

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
    // They may all come into one generation of the group.
    assert!(0 < record.counters.rebalances, "{:?}", record.counters);
}
