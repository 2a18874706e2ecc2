//! Who may reach and use the clusters: each refusal is named with what would end it, and until all is in order
//! nothing is written.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::OnceLock;
use std::time::Duration;

use integration_tests::admin::Admin;
use integration_tests::checker;
use integration_tests::kafka::{Broker, BrokerOptions, CERTIFICATE, free_port};
use integration_tests::mirror::{Finished, MirrorConfig, finish};
use integration_tests::{require_kafka, unique_name, workload};

const PATIENCE: Duration = Duration::from_secs(120);
const USER: &str = "mirror";
const PASSWORD: &str = "its-secret";
const UNTIL_END: &[&str] = &["run", "-v", "--until", "end"];

struct Clusters {
    source: Broker,
    target: Broker,
}

fn clusters() -> &'static Clusters {
    static CLUSTERS: OnceLock<Clusters> = OnceLock::new();
    CLUSTERS.get_or_init(|| {
        let start = || {
            let options = BrokerOptions::default().with_sasl(&[(USER, PASSWORD)]).with_tls();
            let broker = Broker::start(&options).expect("a broker with SASL and TLS starts");
            broker.add_scram_user(USER, PASSWORD).expect("a user is made");
            broker
        };
        Clusters { source: start(), target: start() }
    })
}

/// A source topic of 2 partitions and 100 records, and a flow that copies it as somebody who has to show a password.
struct Guarded {
    name: String,
    topic: String,
    config: MirrorConfig,
}

impl Guarded {
    fn new(stem: &str) -> Guarded {
        let (name, topic) = (unique_name(stem), unique_name(&format!("{stem}-topic")));
        let Clusters { source, target } = clusters();
        Admin::connect(&source.bootstrap()).unwrap().create_topic(&topic, 2).unwrap();
        workload::fill(&source.bootstrap(), &topic, 2, 0..100, 100).unwrap();
        let mut config =
            MirrorConfig::new(&name, &source.sasl_bootstrap(), &target.sasl_bootstrap(), &[&topic])
                .set("delivery", "lanes", "2");
        for side in ["source", "target"] {
            config = config
                .text(side, "security.protocol", "SASL_PLAINTEXT")
                .text(side, "sasl.mechanism", "PLAIN")
                .text(side, "sasl.username", USER)
                .text(side, "sasl.password", PASSWORD);
        }
        Guarded { name, topic, config }
    }

    fn finish(&self) -> Finished {
        let mut finished = finish(&self.config, UNTIL_END, PATIENCE).unwrap();
        finished.stderr = finished.stderr.replace("\n  │ ", " ");
        finished
    }

    /// For tests to which it does not matter who may do what.
    fn allow_all(&self) {
        const ALL: i8 = 2;
        let ledger = format!("verbatim.{}.ledger.internal", self.name);
        for broker in [&clusters().source, &clusters().target] {
            let admin = Admin::connect(&broker.bootstrap()).unwrap();
            let (group, lane) =
                (format!("verbatim-{}", self.name), |lane| format!("verbatim-{}-{lane}", self.name));
            for (kind, name) in [(2, &self.topic), (2, &ledger), (3, &group), (5, &lane(0)), (5, &lane(1))] {
                admin.allow(USER, kind, name, ALL).unwrap();
            }
        }
    }

    fn assert_nothing_written(&self) {
        let topics = Admin::connect(&clusters().target.bootstrap()).unwrap().topics().unwrap();
        let own: Vec<&String> =
            topics.iter().filter(|topic| topic.contains(&self.name) || **topic == self.topic).collect();
        assert!(own.is_empty(), "{own:?}");
    }

    fn assert_equal(&self) {
        self.assert_has(100);
    }

    fn assert_has(&self, records: usize) {
        let (source, target) = (clusters().source.bootstrap(), clusters().target.bootstrap());
        let found = checker::assert_equal((&source, &self.topic), (&target, &self.topic));
        assert_eq!(found, records);
    }

    /// Every command that asks the clusters, by somebody who may do no more than has been allowed by now, with a
    /// ledger and copies on the target already, which only a second run meets.
    fn assert_goes_on(&self) {
        workload::fill(&clusters().source.bootstrap(), &self.topic, 2, 100..200, 100).unwrap();
        for words in [UNTIL_END, &["verify"], &["status"], &["check", "--connect"]] {
            let finished = finish(&self.config, words, PATIENCE).unwrap();
            assert_eq!(finished.code, 0, "{words:?}: {}{}", finished.stdout, finished.stderr);
            assert!(!finished.stderr.contains("refuses"), "{words:?}: {}", finished.stderr);
        }
        self.assert_has(200);
    }

    /// What README.md says that a mirror needs, for this flow's names.
    fn documented(&self) -> BTreeSet<Acl> {
        let rows = include_str!("../../README.md").lines().filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            matches!(cells.first(), Some(&"source" | &"target")).then_some(cells)
        });
        let acls: BTreeSet<Acl> = rows.flat_map(|cells| self.row(&cells)).collect();
        assert!(10 < acls.len(), "README.md has a table of what is needed: {acls:?}");
        acls
    }

    /// `source | Topic | the topics | Read, Describe`, the names as README.md writes them.
    fn row(&self, cells: &[&str]) -> Vec<Acl> {
        let [side, kind, name, operations] = cells else { panic!("a row has four cells: {cells:?}") };
        let name = name.trim_matches('`').replace("<flow>", &self.name);
        let names = match name.as_str() {
            "the topics" => vec![self.topic.clone()],
            lanes if lanes.contains("<lane>") => {
                (0..2).map(|lane: u32| lanes.replace("<lane>", &lane.to_string())).collect()
            }
            other => vec![other.to_owned()],
        };
        let acl = |resource: &String, operation: &str| Acl {
            side: side.to_string(),
            operation: operation.trim().to_owned(),
            kind: kind.to_string(),
            resource: resource.clone(),
        };
        names
            .iter()
            .flat_map(|resource| {
                operations.split(',').map(|operation| acl(resource, operation)).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// An ACL that a message says is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Acl {
    side: String,
    operation: String,
    kind: String,
    resource: String,
}

impl Acl {
    /// Reads `the target cluster refuses Write on Topic orders`, wherever it stands in a text.
    fn named_in(text: &str) -> Option<Acl> {
        let (before, after) = text.split_once(" cluster refuses ")?;
        let side = before.rsplit(' ').next()?.to_owned();
        let (operation, resource) = after.split_once(" on ")?;
        let mut words = resource.split([' ', ':', '\n']);
        Some(Acl {
            side,
            operation: operation.to_owned(),
            kind: words.next()?.to_owned(),
            resource: words.next().unwrap_or_default().to_owned(),
        })
    }

    fn grant(&self) {
        let clusters = clusters();
        let broker = if self.side == "source" { &clusters.source } else { &clusters.target };
        let (kind, name) = match self.kind.as_str() {
            "Topic" => (2, self.resource.as_str()),
            "Group" => (3, self.resource.as_str()),
            "Cluster" => (4, "kafka-cluster"),
            "TransactionalId" => (5, self.resource.as_str()),
            other => panic!("no kind of resource: {other} in {self:?}"),
        };
        let operation = match self.operation.as_str() {
            "Read" => 3,
            "Write" => 4,
            "Create" => 5,
            "Alter" => 7,
            "Describe" => 8,
            "DescribeConfigs" => 10,
            "IdempotentWrite" => 12,
            other => panic!("no operation: {other} in {self:?}"),
        };
        Admin::connect(&broker.bootstrap()).unwrap().allow(USER, kind, name, operation).unwrap();
    }
}

/// Somebody who has read README.md allows exactly what it says, and the mirror can do all its work with that: not
/// only begin, but go on with a ledger and with copies that are there already.
#[test]
fn what_the_readme_asks_for_is_enough() {
    require_kafka!();
    let flow = Guarded::new("documented");
    for acl in flow.documented() {
        acl.grant();
    }
    let finished = flow.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    flow.assert_equal();
    flow.assert_goes_on();
}

/// Somebody who knows nothing but the messages gives the mirror what it asks for, one ACL at a time.
#[test]
fn each_missing_acl_is_named_until_nothing_is_missing() {
    require_kafka!();
    let flow = Guarded::new("acl");
    let mut granted = BTreeSet::new();
    let finished = loop {
        let finished = flow.finish();
        if finished.code == 0 {
            break finished;
        }
        // 65 where only partitions are halted by what is missing.
        assert!([65, 77].contains(&finished.code), "after {granted:?}: {finished:?}");
        let missing = Acl::named_in(&finished.stderr).unwrap_or_else(|| panic!("{}", finished.stderr));
        eprintln!("missing: {missing:?}");
        if !granted.iter().any(|acl: &Acl| acl.side == "target" && acl.operation == "Create") {
            flow.assert_nothing_written();
        }
        missing.grant();
        assert!(granted.insert(missing.clone()), "asked for twice: {missing:?}");
        assert!(granted.len() < 30, "{granted:?}");
    };
    assert!(finished.stderr.contains("done"), "{}", finished.stderr);
    flow.assert_equal();
    // Each of both sides was asked for, and none that a mirror has no business with.
    let sides: BTreeSet<&str> = granted.iter().map(|acl| acl.side.as_str()).collect();
    assert_eq!(sides, BTreeSet::from(["source", "target"]));
    let writes_at_source = granted.iter().any(|acl| {
        acl.side == "source" && !["Read", "Describe", "DescribeConfigs"].contains(&acl.operation.as_str())
    });
    assert!(!writes_at_source, "{granted:?}");
    // README.md is not behind the messages.
    let documented = flow.documented();
    let unmentioned: Vec<&Acl> = granted.iter().filter(|acl| !is_documented(acl, &documented)).collect();
    assert!(unmentioned.is_empty(), "{unmentioned:?}");
}

/// Whether a permission is asked for in README.md, or comes with one that is: to brokers Read, Write and Alter imply
/// Describe, and Create on the cluster can be given for a topic by its name.
fn is_documented(acl: &Acl, documented: &BTreeSet<Acl>) -> bool {
    documented.iter().filter(|it| it.side == acl.side).any(|it| {
        let is_same_resource = it.kind == acl.kind && it.resource == acl.resource;
        let implies = it.operation == acl.operation
            || (acl.operation == "Describe" && ["Read", "Write", "Alter"].contains(&it.operation.as_str()));
        let is_of_cluster = acl.kind == "Cluster" && acl.operation == "Create";
        (is_same_resource && implies) || (is_of_cluster && it.operation == "Create")
    })
}

#[test]
fn a_wrong_password_is_an_authentication_error() {
    require_kafka!();
    for side in ["source", "target"] {
        let mut flow = Guarded::new("password");
        flow.allow_all();
        flow.config = flow.config.text(side, "sasl.password", "wrong");
        let finished = flow.finish();
        assert_eq!(finished.code, 77, "{}", finished.stderr);
        assert!(finished.stderr.contains(side), "{}", finished.stderr);
        assert!(finished.stderr.contains("uthentication failed"), "{}", finished.stderr);
        assert!(!finished.stderr.contains(PASSWORD) && !finished.stderr.contains("\"wrong\""));
        flow.assert_nothing_written();
    }
}

#[test]
fn scram_over_tls_copies() {
    require_kafka!();
    let mut flow = Guarded::new("tls");
    let directory = tempfile::tempdir().unwrap();
    let certificate = directory.path().join("ca.pem");
    std::fs::write(&certificate, CERTIFICATE).unwrap();
    let Clusters { source, target } = clusters();
    for (side, broker) in [("source", source), ("target", target)] {
        flow.config = flow
            .config
            .text(side, "bootstrap.servers", &broker.tls_bootstrap())
            .text(side, "security.protocol", "SASL_SSL")
            .text(side, "sasl.mechanism", "SCRAM-SHA-512")
            .text(side, "ssl.ca.location", &certificate.to_string_lossy());
    }
    flow.allow_all();
    let finished = flow.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    flow.assert_equal();
    let verified = finish(&flow.config, &["verify"], PATIENCE).unwrap();
    assert_eq!(verified.code, 0, "{}", verified.stderr);

    // A broker that cannot prove who it is is not talked to.
    let other = directory.path().join("none.pem");
    std::fs::write(&other, OTHER_CERTIFICATE).unwrap();
    flow.config = flow.config.text("source", "ssl.ca.location", &other.to_string_lossy());
    let finished = flow.finish();
    assert_eq!(finished.code, 77, "{}", finished.stderr);
    assert!(finished.stderr.contains("certificate verify failed"), "{}", finished.stderr);
}

#[test]
fn a_bearers_token_is_enough() {
    require_kafka!();
    let mut flow = Guarded::new("bearer");
    for side in ["source", "target"] {
        flow.config = flow
            .config
            .without(side, "sasl.username")
            .without(side, "sasl.password")
            .text(side, "sasl.mechanism", "OAUTHBEARER")
            .text(side, "enable.sasl.oauthbearer.unsecure.jwt", "true")
            // Renewed several times while the flow runs.
            .text(side, "sasl.oauthbearer.config", &format!("principal={USER} lifeSeconds=60"));
    }
    flow.allow_all();
    let finished = flow.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    flow.assert_equal();
    let verified = finish(&flow.config, &["verify"], PATIENCE).unwrap();
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

/// Of an authority that signed no broker here.
const OTHER_CERTIFICATE: &str = include_str!("support/other-ca.pem");

#[test]
fn a_cluster_that_is_not_there_is_named() {
    require_kafka!();
    for side in ["source", "target"] {
        let mut flow = Guarded::new("absent");
        flow.allow_all();
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        flow.config = flow.config.text(side, "bootstrap.servers", &address);
        let finished = flow.finish();
        assert_eq!(finished.code, 69, "{}", finished.stderr);
        assert!(finished.stderr.contains(side), "{}", finished.stderr);
        assert!(finished.stderr.contains(&address), "{}", finished.stderr);
        flow.assert_nothing_written();
    }
}

/// Something listens there, but it never says a word of Kafka's.
#[test]
fn a_wrong_port_is_named() {
    require_kafka!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::Write;
        for stream in listener.incoming() {
            stream.and_then(|mut stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")).ok();
        }
    });
    let mut flow = Guarded::new("port");
    flow.config = flow.config.text("source", "bootstrap.servers", &address);
    let finished = flow.finish();
    assert_eq!(finished.code, 69, "{}", finished.stderr);
    assert!(finished.stderr.contains(&address), "{}", finished.stderr);
    flow.assert_nothing_written();
}

#[test]
fn a_mirror_onto_itself_is_refused() {
    require_kafka!();
    let mut flow = Guarded::new("itself");
    let source = clusters().source.bootstrap();
    flow.config = MirrorConfig::new(&flow.name, &source, &source, &[&flow.topic]);
    let finished = flow.finish();
    assert_eq!(finished.code, 78, "{}", finished.stderr);
    assert!(finished.stderr.contains("same cluster"), "{}", finished.stderr);
    let topics = Admin::connect(&source).unwrap().topics().unwrap();
    assert!(!topics.iter().any(|topic| topic.contains(&format!("verbatim.{}", flow.name))), "{topics:?}");
    assert_eq!(checker::count_records(&source, &flow.topic).unwrap(), 100);
}
