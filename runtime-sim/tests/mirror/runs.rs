use crate::support::{await_all_copied, create_topic, produce, start};
use runtime_sim::{Handle, Setup, simulate};

fn setup() -> Setup {
    Setup::default()
}

#[test]
fn one_instance_copies_everything() {
    let trace = std::env::var("SIM_TRACE").is_ok();
    let setup = Setup { trace: if trace { runtime_sim::TraceMode::Text } else { Default::default() }, ..setup() };
    let ((), record) = simulate(1, setup, async |handle: Handle| {
        create_topic(&handle, 2).await;
        produce(&handle, 20, 0).await;
        start(&handle, 0, 2);
        if trace { handle.sleep(20_000).await } else {
        await_all_copied(&handle, 2, 30_000).await; }
        produce(&handle, 20, 50).await;
        if trace { handle.sleep(2_000).await } else {
        await_all_copied(&handle, 2, 5_000).await; }
    });
    for line in &record.lines { println!("{line}"); }
    assert!(0 < record.counters.settled, "{:?}", record.counters);
}
