use super::draw::Draw;
use super::{Action, FlowPlan, Plan, ProducerKind, ProducerPlan, Profile, Rarities, TimedAction, TopicPlan};
use runtime_sim::{Random, Slot};

/// Makes the plan one of a target so slow that a transaction which takes in all that waits outlasts its time-out.
/// There is nothing else to it: what the mirror needs is the time to find a size that fits.
pub fn slow_down(plan: &mut Plan) {
    let mut random = Random::of(plan.seed, "slow target");
    if !random.chance(0.06) {
        return;
    }
    plan.profile = Profile::default();
    plan.rare = Rarities { target_throttle_ms: 400, ..Rarities::default() };
    plan.topics = vec![TopicPlan { name: "orders".to_owned(), partitions: 1, is_compacted: false }];
    let producer = ProducerPlan::draw(&mut random);
    plan.producers = vec![ProducerPlan {
        kind: ProducerKind::Plain,
        rate: 60.0,
        records_max: 20,
        bytes_max: 100,
        burst: 0.0,
        ..producer
    }];
    plan.flow = FlowPlan {
        transaction_records_max: 2_000,
        batch_records_max: 1,
        commit_interval_ms: 2_000,
        intake_bytes_max: 16_000_000,
        is_bounded: false,
        ..plan.flow.clone()
    };
    // By then there is more than one such transaction.
    let late = |slot| TimedAction { at_ms: 45_000, action: Action::Start { slot: Slot(slot) } };
    plan.actions = (0..u32::from(plan.flow.instances)).map(late).collect();
    plan.heal_ms = 900_000;
}
