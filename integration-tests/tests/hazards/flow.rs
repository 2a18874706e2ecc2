//! A flow of a test's own between two clusters that all tests here share, and what can be seen of it from outside.

use std::sync::OnceLock;
use std::time::Duration;

use integration_tests::admin::Admin;
use integration_tests::checker;
use integration_tests::kafka::{Broker, BrokerOptions};
use integration_tests::mirror::{Finished, Mirror, MirrorConfig, finish};
use integration_tests::proxy::Proxy;
use integration_tests::{unique_name, wait_for, workload};

/// For what takes a second or two on a quiet machine; a limit, and no promise.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Two clusters; the target can also be reached through a proxy.
pub struct Clusters {
    pub source: Broker,
    pub target: Broker,
    pub target_proxy: Proxy,
}

pub fn clusters() -> &'static Clusters {
    static CLUSTERS: OnceLock<Clusters> = OnceLock::new();
    CLUSTERS.get_or_init(|| {
        let source = Broker::start(&BrokerOptions::default()).expect("a source broker starts");
        let options = BrokerOptions::default().with_proxied_listener();
        let target = Broker::start(&options).expect("a target broker starts");
        let target_proxy = Proxy::start(&target).expect("a proxy starts");
        Clusters { source, target, target_proxy }
    })
}

/// A third cluster, of Kafka 3.9, behind a proxy.
pub fn cluster_3_9() -> &'static (Broker, Proxy) {
    static CLUSTER: OnceLock<(Broker, Proxy)> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let options = BrokerOptions::kafka_3_9().with_proxied_listener();
        let broker = Broker::start(&options).expect("a broker of Kafka 3.9 starts");
        let proxy = Proxy::start(&broker).expect("a proxy starts");
        (broker, proxy)
    })
}

/// A row of `verbatim status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub topic: String,
    pub partition: i32,
    pub position: String,
    pub source_end: String,
    pub lag: String,
    pub state: String,
    pub reason: String,
}

pub struct Flow {
    pub name: String,
    pub config: MirrorConfig,
    source: String,
    target: String,
    pub source_admin: Admin,
    pub target_admin: Admin,
}

impl Flow {
    /// Over the shared clusters, of topics that begin with the flow's name.
    pub fn new(stem: &str) -> Flow {
        let clusters = clusters();
        Flow::between(stem, &clusters.source.bootstrap(), &clusters.target.bootstrap())
    }

    /// With the target behind its proxy; the test itself goes to the broker directly.
    pub fn through_target_proxy(stem: &str) -> Flow {
        let flow = Flow::new(stem);
        flow.set_text("target", "bootstrap.servers", clusters().target_proxy.bootstrap())
    }

    pub fn between(stem: &str, source: &str, target: &str) -> Flow {
        let name = unique_name(stem);
        let include = format!(r"{name}\..*");
        let config = MirrorConfig::new(&name, source, target, &[&include])
            .set("delivery", "lanes", "2")
            .text("topics", "refresh", "1s");
        Flow {
            name,
            config,
            source: source.to_owned(),
            target: target.to_owned(),
            source_admin: Admin::connect(source).expect("the source answers"),
            target_admin: Admin::connect(target).expect("the target answers"),
        }
    }

    #[must_use]
    pub fn set(mut self, section: &str, key: &str, value: &str) -> Flow {
        self.config = self.config.set(section, key, value);
        self
    }

    #[must_use]
    pub fn set_text(mut self, section: &str, key: &str, value: &str) -> Flow {
        self.config = self.config.text(section, key, value);
        self
    }

    /// The same with another configuration.
    #[must_use]
    pub fn with(self, config: MirrorConfig) -> Flow {
        Flow { config, ..self }
    }

    pub fn topic(&self, stem: &str) -> String {
        format!("{}.{stem}", self.name)
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn target(&self) -> &str {
        &self.target
    }

    /// Makes a source topic and writes so many records to it.
    #[track_caller]
    pub fn make(&self, stem: &str, partitions: i32, records: u64) -> String {
        let topic = self.topic(stem);
        self.source_admin.create_topic(&topic, usize::try_from(partitions).expect("a count")).unwrap();
        self.fill(&topic, partitions, 0..records);
        topic
    }

    #[track_caller]
    pub fn fill(&self, topic: &str, partitions: i32, numbers: std::ops::Range<u64>) {
        workload::fill(&self.source, topic, partitions, numbers, 100).unwrap();
    }

    #[track_caller]
    pub fn run(&self) -> Mirror {
        Mirror::start(&self.config.to_toml(), &["run", "-v"]).unwrap()
    }

    /// `run --until end`, to its end.
    #[track_caller]
    pub fn finish(&self) -> Finished {
        self.finish_with(&["--until", "end"])
    }

    #[track_caller]
    pub fn finish_with(&self, words: &[&str]) -> Finished {
        let mut finished = finish(&self.config, &[&["run", "-v"], words].concat(), PATIENCE).unwrap();
        finished.stderr = unwrapped(&finished.stderr);
        finished
    }

    /// A run that must end with this code, having said these words.
    #[track_caller]
    pub fn ends_with(&self, code: i32, words: &str) -> Finished {
        let finished = self.finish();
        assert_eq!(finished.code, code, "{}", finished.stderr);
        assert!(finished.stderr.contains(words), "no {words:?} in {}", finished.stderr);
        finished
    }

    /// Ends an instance in good order.
    #[track_caller]
    pub fn stop(&self, mut mirror: Mirror) {
        mirror.terminate().unwrap();
        assert_eq!(mirror.wait(PATIENCE).unwrap(), 0, "{}", mirror.story());
    }

    /// Committed records of a target topic; none where there is no topic yet.
    pub fn copied(&self, topic: &str) -> usize {
        match self.target_admin.partition_count(topic) {
            Ok(Some(_)) => checker::count_records(&self.target, topic).unwrap_or(0),
            _ => 0,
        }
    }

    #[track_caller]
    pub fn wait_until_copied(&self, topic: &str, records: usize) {
        wait_for(&format!("{records} records in {topic}"), PATIENCE, || {
            (records <= self.copied(topic)).then_some(())
        });
    }

    /// Waits until the target holds as many records as the source, then compares them; the number.
    #[track_caller]
    pub fn wait_until_equal(&self, topic: &str) -> usize {
        let records = checker::count_records(&self.source, topic).unwrap();
        self.wait_until_copied(topic, records);
        self.assert_equal(topic)
    }

    #[track_caller]
    pub fn assert_equal(&self, topic: &str) -> usize {
        checker::assert_equal((&self.source, topic), (&self.target, topic))
    }

    #[track_caller]
    pub fn status(&self) -> Vec<Row> {
        let finished = finish(&self.config, &["status"], PATIENCE).unwrap();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stdout.lines().skip(1).map(row).collect()
    }

    #[track_caller]
    pub fn row(&self, topic: &str, partition: i32) -> Row {
        let rows = self.status();
        let found = rows.iter().find(|row| row.topic == topic && row.partition == partition);
        found.unwrap_or_else(|| panic!("no {topic} {partition} in {rows:?}")).clone()
    }

    pub fn ledger(&self) -> String {
        format!("verbatim.{}.ledger.internal", self.name)
    }

    pub fn wait_until_halted(&self, topic: &str, partition: i32, reason: &str) -> Row {
        wait_for(&format!("{topic} {partition} to halt: {reason}"), PATIENCE, || {
            let row = self.row(topic, partition);
            (row.state == "halted" && row.reason.starts_with(reason)).then_some(row)
        })
    }

    pub fn ledger_ends(&self) -> Vec<i64> {
        let partitions = self.target_admin.partition_count(&self.ledger()).unwrap().expect("a ledger");
        let end = |partition| {
            let partition = i32::try_from(partition).expect("a partition");
            self.target_admin.watermarks(&self.ledger(), partition).unwrap().1
        };
        (0..partitions).map(end).collect()
    }
}

fn row(line: &str) -> Row {
    // FLOW TOPIC PARTITION LANE OWNER POSITION SOURCE-END LAG LAG-TIME STATE REASON, the last of many words.
    let cells: Vec<&str> = line.split_whitespace().collect();
    Row {
        topic: cells[1].to_owned(),
        partition: cells[2].parse().expect("a partition"),
        position: cells[5].to_owned(),
        source_end: cells[6].to_owned(),
        lag: cells[7].to_owned(),
        state: cells[9].to_owned(),
        reason: cells[10..].join(" "),
    }
}

/// Error messages are broken into lines to be read; here each is to be one again.
fn unwrapped(text: &str) -> String {
    text.replace("\n  │ ", " ")
}

/// How often these words stand in a text.
pub fn count(text: &str, words: &str) -> usize {
    text.matches(words).count()
}
