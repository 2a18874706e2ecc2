//! How soon lanes move on: to be judged on a quiet machine; part of `membership.rs` once they hold.

#[test]
fn lanes_move_on_after_a_kill() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "moved").unwrap();
    let mut instances = [flow.start().unwrap(), flow.start().unwrap()];
    let load = flow.load(0, 500).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    let lost = flow.partitions_of(&flow.lanes_of(&instances[0]).unwrap()).unwrap();
    assert!(!lost.is_empty() && lost.len() < PARTITIONS as usize);
    instances[0].kill().unwrap();
    let after = visible.wait_for_newer(&lost, now_ms(), Duration::from_secs(15));
    eprintln!("partitions {lost:?} go on {after:?} after their instance was killed");
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    assert_eq!(flow.lanes_of(&instances[1]).unwrap().len(), EVERY_LANE);
    flow.judge(records);
}

#[test]
fn the_same_id_takes_over_at_once() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "same-id").unwrap();
    let mut instances = [flow.start_as("one").unwrap(), flow.start_as("two").unwrap()];
    let load = flow.load(0, 500).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    let own = flow.lanes_of(&instances[0]).unwrap();
    let lost = flow.partitions_of(&own).unwrap();
    instances[0].kill().unwrap();
    let killed = now_ms();
    instances[0] = flow.start_as("one").unwrap();
    let after = visible.wait_for_newer(&lost, killed, Duration::from_secs(5));
    eprintln!("partitions {lost:?} go on {after:?} after their instance was killed and started again");
    assert_eq!(flow.lanes_of(&instances[0]).unwrap(), own, "the lanes stay where they were");
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    flow.judge(records);
}

