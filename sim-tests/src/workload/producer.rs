use super::client::{Answer, Client, Identity, may_retry};
use super::content::RecordMaker;
use super::transactions;
use crate::plan::{Draw, Plan, ProducerKind, ProducerPlan};
use kafka_model::ClientId;
use kafka_types::{Partition, Record, RecordBatch, TopicId, TopicPartition};
use runtime_sim::{Handle, Random};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use verbatim_core::failure::Side;

/// How far the workload is. Clones are of one and the same.
#[derive(Clone, Default)]
pub struct Workload {
    over: Rc<Cell<bool>>,
    running: Rc<Cell<usize>>,
}

impl Workload {
    /// Nobody begins anything new.
    pub fn end(&self) {
        self.over.set(true);
    }

    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    pub fn is_finished(&self) -> bool {
        self.running.get() == 0
    }

    fn begin(&self) {
        self.running.set(self.running.get() + 1);
    }

    fn finish(&self) {
        self.running.set(self.running.get() - 1);
    }
}

/// Starts every producer of the plan.
pub fn start(handle: &Handle, plan: &Plan) -> Workload {
    let workload = Workload::default();
    let compacted: BTreeSet<String> =
        plan.topics.iter().filter(|topic| topic.is_compacted).map(|topic| topic.name.clone()).collect();
    for (number, producer) in plan.producers.iter().enumerate() {
        let task = Producer {
            client: Client { handle: handle.clone(), id: ClientId::from(format!("producer-{number}")) },
            plan: producer.clone(),
            random: Random::new(producer.seed),
            maker: RecordMaker::new(number, producer.bytes_max, plan.rare.zero_timestamps),
            number,
            compacted: compacted.clone(),
            identity: None,
            sequences: BTreeMap::new(),
            workload: workload.clone(),
        };
        workload.begin();
        handle.spawn(task.run());
    }
    workload
}

pub(super) struct Producer {
    pub client: Client,
    pub plan: ProducerPlan,
    pub random: Random,
    maker: RecordMaker,
    pub number: usize,
    compacted: BTreeSet<String>,
    pub identity: Option<Identity>,
    /// Of the next record to each partition, by topic id: a topic made anew begins anew.
    pub sequences: BTreeMap<(TopicId, TopicPartition), i32>,
    workload: Workload,
}

/// Tries of an idempotent producer before it gives a batch up and becomes somebody else.
const TRIES_MAX: u32 = 8;

impl Producer {
    async fn run(mut self) {
        while !self.workload.is_over() {
            let bursts = self.random.chance(self.plan.burst);
            for _ in 0..if bursts { 10 } else { 1 } {
                match self.plan.kind {
                    ProducerKind::Plain => self.send_plainly().await,
                    ProducerKind::Idempotent => self.send_idempotently().await,
                    ProducerKind::Transactional => transactions::run_one(&mut self).await,
                }
            }
            let pause = self.random.until_next(self.plan.rate).clamp(1, 5_000);
            self.client.handle.sleep(pause).await;
        }
        self.workload.finish();
    }

    /// Any partition that is there now; none while there is no topic.
    pub fn choose(&mut self) -> Option<(TopicId, TopicPartition)> {
        let places: Vec<(TopicId, TopicPartition)> = self.client.handle.view(Side::Source, |cluster| {
            cluster
                .topic_names()
                .flat_map(|(name, id, count)| {
                    Partition::all(u32::try_from(count).unwrap_or(0))
                        .map(move |partition| (id, TopicPartition { topic: name.clone(), partition }))
                })
                .collect()
        });
        self.random.pick(&places).cloned()
    }

    pub fn records(&mut self, tp: &TopicPartition) -> Vec<Record> {
        let now = self.client.handle.now();
        let needs_key = self.compacted.contains(tp.topic.as_str());
        let count = self.random.between(1, self.plan.records_max);
        (0..count).map(|_| self.maker.make(&mut self.random, now, needs_key)).collect()
    }

    /// The next sequence number of a partition, and counts on.
    pub fn sequence(&mut self, place: &(TopicId, TopicPartition), records: usize) -> i32 {
        let next = self.sequences.entry(place.clone()).or_default();
        let sequence = *next;
        *next += i32::try_from(records).unwrap_or(0);
        sequence
    }

    pub fn forget_identity(&mut self) {
        self.identity = None;
        self.sequences.clear();
    }

    async fn send_plainly(&mut self) {
        let Some((_, tp)) = self.choose() else { return };
        let batch = RecordBatch::new(self.records(&tp));
        // Without a producer id a second try might be a second record.
        self.client.produce(&tp, None, batch).await;
    }

    async fn send_idempotently(&mut self) {
        let Some(place) = self.choose() else { return };
        if self.identity.is_none() {
            self.identity = self.client.init(None, 0).await;
        }
        let Some(identity) = self.identity else { return };
        let records = self.records(&place.1);
        let sequence = self.sequence(&place, records.len());
        let batch = RecordBatch::new(records).from_producer(identity.id, identity.epoch, sequence);
        for _ in 0..TRIES_MAX {
            match self.client.produce(&place.1, None, batch.clone()).await {
                Answer::Done => return,
                Answer::Refused(code) if !may_retry(code) => break,
                Answer::Refused(_) | Answer::Unknown | Answer::Unsent => {
                    if self.workload.is_over() {
                        break;
                    }
                    let pause = self.random.between(10, 500);
                    self.client.handle.sleep(pause).await;
                }
            }
        }
        // What became of it is not known, so the next sequence number is not either.
        self.forget_identity();
    }
}
