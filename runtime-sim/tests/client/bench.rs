//! One process's clients on two clusters, without a mirror and without a network: what is sent arrives at once, and
//! what is answered too, unless a test says otherwise.

use bytes::Bytes;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{
    BrokerId, Cluster, ClusterConfig, Millis, Outcome, Reply, Request, RequestHeader, RequestToken,
};
use kafka_types::{Record, RecordBatch, TopicPartition};
use runtime_sim::client::{Effect, Process, ProcessSettings};
use runtime_sim::{ClientFaults, ClientMutants, Random};
use std::collections::BTreeMap;
use verbatim_core::command::{Command, LaneCommand};
use verbatim_core::config::FlowName;
use verbatim_core::event::{Event, LaneEvent};
use verbatim_core::failure::Side;
use verbatim_core::{Attempt, LaneId};

pub const LANE: LaneId = LaneId(0);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// It is done, and the connection breaks before the answer comes.
    Unanswered,
    /// The connection breaks before it arrives.
    Lost,
}

type Script = Box<dyn FnMut(Side, &Request) -> Fate>;

pub struct Bench {
    pub now: Millis,
    pub source: Cluster,
    pub target: Cluster,
    pub process: Process,
    /// Names of the requests sent, in order.
    pub sent: Vec<&'static str>,
    sides: BTreeMap<RequestToken, (Side, Fate)>,
    script: Script,
    own_tokens: u64,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with_faults(ClientFaults::default())
    }

    pub fn with_faults(faults: ClientFaults) -> Bench {
        let brokers = [BrokerId(1), BrokerId(2), BrokerId(3)];
        let cluster = |id: &str| {
            let config = ClusterConfig {
                cluster_id: id.into(),
                auto_create_topics: false,
                ..ClusterConfig::default()
            };
            Cluster::new(0, &brokers, config)
        };
        let settings = ProcessSettings {
            start: 1,
            flow: FlowName::new("f").unwrap(),
            instance_id: None,
            brokers: brokers.to_vec(),
            mutants: ClientMutants::default(),
        };
        let mut bench = Bench {
            now: 0,
            source: cluster("source"),
            target: cluster("target"),
            process: Process::new(settings, Random::new(1), faults),
            sent: Vec::new(),
            sides: BTreeMap::new(),
            script: Box::new(|_, _| Fate::Answered),
            own_tokens: 0,
        };
        bench.create_topic(Side::Source, "t", &[]);
        bench.create_topic(Side::Target, "t", &[]);
        bench.create_topic(Side::Target, "verbatim.f.ledger.internal", &[("cleanup.policy", "compact")]);
        bench
    }

    /// Decides of each request that the process sends from now on.
    pub fn script(&mut self, script: impl FnMut(Side, &Request) -> Fate + 'static) {
        self.script = Box::new(script);
    }

    pub fn cluster(&mut self, side: Side) -> &mut Cluster {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }

    pub fn create_topic(&mut self, side: Side, name: &str, configs: &[(&str, &str)]) {
        let topic = NewTopic {
            name: name.into(),
            num_partitions: 1,
            replication_factor: 3,
            configs: configs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        };
        self.ask(side, BrokerId(1), CreateTopicsRequest { topics: vec![topic], validate_only: false });
    }

    /// A request of the test's own.
    pub fn ask(&mut self, side: Side, broker: BrokerId, request: impl Into<Request>) -> Vec<Reply> {
        self.own_tokens += 1;
        let token = RequestToken(self.own_tokens);
        let header = RequestHeader { broker, token, client_id: "test".into(), api_version: 9 };
        let now = self.now;
        let replies = self.cluster(side).handle(now, header, request.into());
        self.answer(replies.iter().filter(|reply| reply.token != token).cloned().collect());
        replies
    }

    /// Puts records into partition 0 of the source's topic `t`.
    pub fn source_records(&mut self, values: &[&str]) {
        let record = |value: &&str| Record::new(1_000, None, Some(Bytes::copy_from_slice(value.as_bytes())));
        let batch = RecordBatch::new(values.iter().map(record).collect());
        let place = TopicPartition::new("t", 0);
        let leader = self.source.leader(&place).expect("it has one");
        let partitions = vec![ProducePartition { topic_partition: place, topic_id: None, batch }];
        let request =
            ProduceRequest { transactional_id: None, acks: ACKS_ALL, timeout_ms: 1_000, partitions };
        self.ask(Side::Source, leader, request);
    }

    /// The source's partition gets another leader, of those in sync.
    pub fn move_source_leader(&mut self, place: &TopicPartition) {
        let view = self.source.partition_view(place).expect("it exists");
        let others = view.in_sync.iter().find(|broker| Some(**broker) != view.leader);
        let replies = self.source.move_leader(self.now, place, *others.expect("there are three"));
        self.answer(replies);
    }

    pub fn lane(&mut self, command: LaneCommand) {
        self.process.submit(self.now, Command::Lane(LANE, Attempt(1), command));
    }

    /// Lets time pass until the next event, at most so long.
    pub fn event_within(&mut self, limit: Millis) -> Option<Event> {
        let until = self.now + limit;
        loop {
            self.work();
            if let Some(event) = self.process.next_event() {
                return Some(event);
            }
            let next = [self.process.wake_at(), self.source.next_deadline(), self.target.next_deadline()];
            let next = next.into_iter().flatten().min().unwrap_or(until).max(self.now + 1);
            if until < next {
                return None;
            }
            self.now = next;
            let mut replies = self.source.tick(next);
            replies.extend(self.target.tick(next));
            self.answer(replies);
        }
    }

    #[track_caller]
    pub fn lane_event(&mut self) -> LaneEvent {
        match self.event_within(60_000) {
            Some(Event::Lane(LANE, Attempt(1), event)) => event,
            other => panic!("{other:?} at {} ms", self.now),
        }
    }

    /// Until nothing more happens without time passing.
    fn work(&mut self) {
        loop {
            self.process.advance(self.now);
            let effects = self.process.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                if let Effect::Send { side, header, request, .. } = effect {
                    self.sent.push(request.name());
                    let (token, now) = (header.token, self.now);
                    let fate = (self.script)(side, &request);
                    self.sides.insert(token, (side, fate));
                    if fate == Fate::Lost {
                        let lost = [(token, Outcome::ConnectionClosed)];
                        self.process.arrive(now, lost.into_iter());
                        continue;
                    }
                    let replies = self.cluster(side).handle(now, header, request);
                    self.answer(replies);
                }
            }
        }
    }

    fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            let Some((_, fate)) = self.sides.get(&reply.token) else { continue };
            let outcome = match fate {
                Fate::Answered => reply.outcome,
                Fate::Unanswered | Fate::Lost => Outcome::ConnectionClosed,
            };
            self.process.arrive(self.now, [(reply.token, outcome)].into_iter());
        }
    }
}
