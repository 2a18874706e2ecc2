//! Anything may happen in any order, and what a cluster promises holds all the same.

use crate::support::*;
use kafka_model::api::fetch::IsolationLevel::ReadCommitted;
use kafka_model::api::produce::ACKS_ALL;
use kafka_model::{BrokerId, ClusterConfig, CoordinatorKind, RequestToken};
use kafka_types::{ErrorCode, TransactionResult};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Happening {
    Produce,
    ProduceInTransaction,
    Init,
    End(TransactionResult),
    Fetch,
    Wait(i64),
    Crash(i32),
    Restart(i32),
    MoveLeader(i32),
    MoveCoordinator(i32),
    Stall(i32, bool),
}

fn happening() -> impl Strategy<Value = Happening> {
    let broker = || 1..=3_i32;
    prop_oneof![
        4 => Just(Happening::Produce),
        6 => Just(Happening::ProduceInTransaction),
        1 => Just(Happening::Init),
        2 => Just(Happening::End(Commit)),
        1 => Just(Happening::End(Abort)),
        2 => Just(Happening::Fetch),
        6 => (0..80_i64).prop_map(Happening::Wait),
        1 => (30_000..90_000_i64).prop_map(Happening::Wait),
        1 => broker().prop_map(Happening::Crash),
        2 => broker().prop_map(Happening::Restart),
        1 => broker().prop_map(Happening::MoveLeader),
        1 => broker().prop_map(Happening::MoveCoordinator),
        1 => (broker(), any::<bool>()).prop_map(|(broker, is)| Happening::Stall(broker, is)),
    ]
}

struct Story {
    bench: Bench,
    identity: Option<Identity>,
    sequence: i32,
    values: usize,
    /// Plain produces with acks=all, by the value that each wrote.
    plain: Vec<(RequestToken, String)>,
}

impl Story {
    fn tell(&mut self, happening: &Happening) {
        let t = tp("t", 0);
        let now = self.bench.now;
        let leader = self.bench.cluster.leader(&t);
        let replies = match happening {
            Happening::Wait(millis) => return self.bench.wait(*millis),
            Happening::Init => return self.init(),
            Happening::End(result) => {
                if let Some(identity) = self.identity {
                    let _ = self.bench.try_end(identity, *result);
                }
                return;
            }
            Happening::Produce | Happening::ProduceInTransaction | Happening::Fetch => {
                if let Some(leader) = leader {
                    self.ask_leader(happening, leader);
                }
                return;
            }
            Happening::Crash(id) => self.bench.cluster.crash_broker(now, BrokerId(*id)),
            Happening::Restart(id) => self.bench.cluster.restart_broker(now, BrokerId(*id)),
            Happening::MoveLeader(id) => self.bench.cluster.move_leader(now, &t, BrokerId(*id)),
            Happening::MoveCoordinator(id) => {
                let kind = CoordinatorKind::Transaction;
                self.bench.cluster.move_coordinator(now, kind, "tx", BrokerId(*id))
            }
            Happening::Stall(id, is_stalled) => {
                self.bench.cluster.stall_replica(now, &t, BrokerId(*id), *is_stalled)
            }
        };
        self.bench.take(replies);
    }

    fn init(&mut self) {
        if let Some(Ok(identity)) = self.bench.init_if_possible() {
            (self.identity, self.sequence) = (Some(identity), 0);
        }
    }

    fn ask_leader(&mut self, happening: &Happening, leader: BrokerId) {
        let t = tp("t", 0);
        self.values += 1;
        let value = format!("{}", self.values);
        match (happening, self.identity) {
            (Happening::Fetch, _) => {
                let mut request = self.bench.fetch_request(&t, 0, ReadCommitted);
                request.max_wait_ms = 100;
                self.bench.send(leader, request);
            }
            (Happening::Produce, _) => {
                let request = produce_request(&t, None, batch(&[&value]), ACKS_ALL);
                self.plain.push((self.bench.send(leader, request), value));
            }
            (_, Some((id, epoch))) => {
                self.bench.try_add((id, epoch), &t);
                let batch = batch(&[&value]).from_producer(id, epoch, self.sequence).transactional();
                let token = self.bench.send(leader, produce_request(&t, Some("tx".into()), batch, ACKS_ALL));
                // Pending and acknowledged batches count; a refused one leaves no gap.
                if self.bench.produce_error(token).is_none_or(|error| error == ErrorCode::None) {
                    self.sequence += 1;
                }
            }
            (_, None) => {}
        }
    }

    /// Everything heals, and time passes until every transaction is over.
    fn heal(&mut self) {
        for id in 1..=3 {
            self.tell(&Happening::Restart(id));
            self.tell(&Happening::Stall(id, false));
        }
        self.bench.wait(200_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_by_all_in_sync_is_there_in_the_end(
        happenings in proptest::collection::vec(happening(), 1..80),
    ) {
        let config =
            ClusterConfig { replication_delay_ms: 7, marker_delay_ms: 15, ..ClusterConfig::default() };
        let bench = Bench::with(config, &[]);
        let mut story = Story { bench, identity: None, sequence: 0, values: 0, plain: Vec::new() };
        for happening in &happenings {
            story.tell(happening);
        }
        story.heal();
        let t = tp("t", 0);
        let committed = story.bench.committed(&t);
        let read = story.bench.read_committed(&t, 0);
        prop_assert_eq!(&committed, &read, "the view is what a reader gets once all is written");
        let view = story.bench.cluster.partition_view(&t).expect("t");
        prop_assert_eq!(view.last_stable_offset, view.log_end_offset, "nothing hangs");
        for (token, value) in &story.plain {
            let copies = read.iter().filter(|it| *it == value).count();
            match story.bench.produce_error(*token) {
                Some(ErrorCode::None) => prop_assert_eq!(copies, 1, "acknowledged: {}", value),
                Some(_) | None => prop_assert!(copies <= 1, "unknown: {}", value),
            }
        }
        let decisions = story.bench.cluster.decisions().since(0);
        prop_assert!(decisions.iter().all(|it| it.completed_at.is_some()), "every decision is carried out");
    }
}
