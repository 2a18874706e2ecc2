//! H1 and H9: the end of a transaction is sent twice, arrives late, is never answered, or comes too late.

use std::time::Duration;

use integration_tests::kafka::{IMAGE_3_9, default_image};
use integration_tests::mirror::Mirror;
use integration_tests::proxy::{Action, END_TXN, PRODUCE, Proxy, Rule};
use integration_tests::workload::{LiveLoad, now_ms};
use integration_tests::{require_kafka, transactions, wait_for};

use crate::flow::{Flow, PATIENCE, cluster_3_9, clusters, count};

const TAKEN: &str = "lane taken";
const UNKNOWN: &str = "outcome unknown";

#[test]
fn h01_a_delayed_end_txn_commits_nothing_twice_on_4_1() {
    require_kafka!();
    a_delayed_end_txn(Flow::through_target_proxy("h01"), &clusters().target_proxy);
}

#[test]
fn h01_a_delayed_end_txn_commits_nothing_twice_on_3_9() {
    require_kafka!(default_image());
    require_kafka!(IMAGE_3_9);
    a_delayed_end_txn(to_3_9("h01"), &cluster_3_9().1);
}

#[test]
fn h01_a_lost_answer_to_end_txn_is_an_unknown_outcome_on_4_1() {
    require_kafka!();
    a_lost_answer(&Flow::through_target_proxy("h01-answer"), &clusters().target_proxy);
}

#[test]
fn h01_a_lost_answer_to_end_txn_is_an_unknown_outcome_on_3_9() {
    require_kafka!(default_image());
    require_kafka!(IMAGE_3_9);
    a_lost_answer(&to_3_9("h01-answer"), &cluster_3_9().1);
}

fn to_3_9(stem: &str) -> Flow {
    let (target, proxy) = cluster_3_9();
    Flow::between(stem, &clusters().source.bootstrap(), &target.bootstrap()).set_text(
        "target",
        "bootstrap.servers",
        proxy.bootstrap(),
    )
}

/// A flow of one lane, so that one transactional id does everything, that has begun to copy.
fn copying(flow: &Flow) -> (String, LiveLoad, Mirror) {
    let topic = flow.make("t", 2, 0);
    let load = LiveLoad::start(flow.source(), &topic, 2, 0, 200).unwrap();
    let mut mirror = flow.run();
    mirror.wait_for_log(TAKEN, PATIENCE).unwrap();
    flow.wait_until_copied(&topic, 1);
    (topic, load, mirror)
}

/// An EndTxn waits somewhere while librdkafka sends another and reports success. It is delivered at once, or while
/// the lane's next transaction is open, as a naive mirror would not survive: harness.rs shows that.
fn a_delayed_end_txn(flow: Flow, proxy: &Proxy) {
    let flow = flow.set("delivery", "lanes", "1");
    let (topic, load, mut mirror) = copying(&flow);
    for late in [false, true, true] {
        let before = (count(&mirror.stderr(), UNKNOWN), count(&mirror.stderr(), TAKEN));
        proxy.add_rule(Rule::once(END_TXN, Action::Hold).containing(flow.name.as_str()));
        assert!(proxy.wait_for_held(1, PATIENCE), "an EndTxn is held");
        if !late {
            // The client's second EndTxn goes first.
            std::thread::sleep(Duration::from_millis(300));
            proxy.deliver_held().unwrap();
        }
        wait_for("the lane to be taken again", PATIENCE, || {
            assert!(mirror.is_running(), "{}", mirror.story());
            (before.1 < count(&mirror.stderr(), TAKEN)).then_some(())
        });
        assert!(before.0 < count(&mirror.stderr(), UNKNOWN), "it noticed: {}", mirror.story());
        if late {
            wait_for("the next transaction", PATIENCE, || {
                let state = transactions::describe(flow.target(), &format!("verbatim-{}-0", flow.name));
                state.unwrap().is_some_and(|state| state.is_open()).then_some(())
            });
            let answer = proxy.deliver_held().unwrap().expect("one is held");
            // Correlation id, throttle time, error code.
            assert_ne!(answer[8..10], [0, 0], "the broker refuses what a former producer sent");
        }
    }
    load.stop().unwrap();
    flow.wait_until_equal(&topic);
    flow.stop(mirror);
    flow.assert_equal(&topic);
}

/// The broker has committed, and nobody was told.
fn a_lost_answer(flow: &Flow, proxy: &Proxy) {
    let (topic, load, mut mirror) = copying(flow);
    for _ in 0..2 {
        let before = (count(&mirror.stderr(), UNKNOWN), count(&mirror.stderr(), TAKEN));
        proxy.add_rule(Rule::once(END_TXN, Action::CutAfter).containing(flow.name.as_str()));
        wait_for("the lane to be taken again", PATIENCE, || {
            assert!(mirror.is_running(), "{}", mirror.story());
            (before.1 < count(&mirror.stderr(), TAKEN)).then_some(())
        });
        assert!(before.0 < count(&mirror.stderr(), UNKNOWN), "it noticed: {}", mirror.story());
    }
    load.stop().unwrap();
    flow.wait_until_equal(&topic);
    flow.stop(mirror);
    flow.assert_equal(&topic);
}

#[test]
fn h09_a_transaction_that_timed_out_is_tried_again_shorter() {
    require_kafka!();
    let flow = Flow::through_target_proxy("h09")
        .set("target", "transaction.timeout.ms", "10000")
        .set_text("delivery", "commit.interval", "5s")
        .set("delivery", "lanes", "1");
    let (topic, load, mut mirror) = copying(&flow);
    // The last records of a transaction come when it is over, and yet before the client gives their requests up.
    let late = Action::Delay(Duration::from_secs(8));
    // The ledger's records name the topic too, and are not meant.
    let records = Rule::once(PRODUCE, late).containing(topic.as_str()).lacking("ledger.internal");
    let producer = format!("verbatim-{}-0", flow.name);
    let noticed = (0..5).any(|_| {
        wait_for("a transaction about to be settled", PATIENCE, || {
            let state = transactions::describe(flow.target(), &producer).unwrap();
            let age = now_ms() - state.filter(|state| state.is_open())?.begun_ms;
            (3_900..4_600).contains(&age).then_some(())
        });
        clusters().target_proxy.add_rule(records.clone());
        mirror.wait_for_log("the transaction timed out", Duration::from_secs(20)).is_ok()
    });
    assert!(noticed, "{}", mirror.story());
    load.stop().unwrap();
    flow.wait_until_equal(&topic);
    flow.stop(mirror);
    flow.assert_equal(&topic);
}
