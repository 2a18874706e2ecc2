//! Part of `tests/hazards/ends_of_transactions.rs` once it holds.

#[test]
fn h09_a_transaction_that_timed_out_is_tried_again_shorter() {
    require_kafka!();
    let flow = Flow::through_target_proxy("h09").set("target", "transaction.timeout.ms", "10000");
    let (topic, load, mut mirror) = copying(&flow);
    // The transaction is begun, and its records come too late.
    let late = Action::Delay(Duration::from_secs(15));
    clusters().target_proxy.add_rule(Rule::once(PRODUCE, late).containing(topic.as_str()));
    mirror.wait_for_log("the transaction timed out", PATIENCE).unwrap();
    load.stop().unwrap();
    flow.wait_until_equal(&topic);
    flow.stop(mirror);
    flow.assert_equal(&topic);
}
