use super::*;
use std::env::VarError;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;
use verbatim_core::config::Start;
use verbatim_core::time::Timestamp;

struct NoVariables;

impl Lookup for NoVariables {
    fn variable(&self, name: &str) -> Result<String, VarError> {
        if name == "LANES" { Ok("16".into()) } else { Err(VarError::NotPresent) }
    }

    fn file(&self, _path: &str) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

fn read(name: &str, text: &str) -> Result<Config, ConfigErrors> {
    let mut layers = Layers::default();
    layers.file(name, text.into(), &NoVariables);
    validate(layers)
}

/// A whole configuration around what a test is about.
fn toml(rest: &str) -> String {
    format!("name = \"f\"\nsource.bootstrap.servers = \"a:1\"\ntarget.bootstrap.servers = \"b:1\"\n{rest}\n")
}

fn errors(text: &str) -> Vec<String> {
    let with_help = |error: &ConfigError| match &error.help {
        Some(help) => format!("{error} | {help}"),
        None => error.to_string(),
    };
    read("m.toml", text).unwrap_err().0.iter().map(with_help).collect()
}

#[track_caller]
fn refuses(rest: &str, expected: &str) {
    let errors = errors(&toml(rest));
    assert!(errors.len() == 1 && errors[0].contains(expected), "{errors:#?}");
}

#[test]
fn defaults_are_those_of_the_manual() {
    let Config { flow, instance, source, memory, .. } = read("m.toml", &toml("")).unwrap();
    assert_eq!(flow.name.as_str(), "f");
    assert_eq!(instance, None);
    assert_eq!(source["bootstrap.servers"], "a:1");
    assert_eq!(flow.refresh, Duration::from_secs(30));
    assert_eq!(flow.commit_interval, Duration::from_millis(500));
    assert_eq!((flow.lanes, flow.start, memory), (8, Start::Earliest, 512 << 20));
    assert!(flow.filter.takes(&"orders".into()));
}

#[test]
fn memory_bounds_what_is_under_way() {
    let intake = |rest: &str| read("m.toml", &toml(rest)).unwrap().flow.intake_bytes_max;
    assert_eq!(intake("limits.memory = \"128MiB\""), 32 << 20);
    assert_eq!(intake("target.buffer.memory = 33554432"), 32 << 20);
    assert_eq!(intake("target.buffer.memory = 1073741824"), 128 << 20);
}

#[test]
fn the_starter_file_is_valid() {
    read("starter.toml", STARTER).unwrap();
}

#[test]
fn yaml_and_toml_say_the_same() {
    let toml = r#"
name = "orders-dr"
instance = "i-1"
[source]
bootstrap.servers = "a:1,a:2"
sasl.mechanism = "PLAIN"
fetch.min.bytes = 1
[target]
"bootstrap.servers" = ["b:1", "b:2"]
linger.ms = 5.5
socket.keepalive.enable = true
[topics]
include = ["orders", 'payments\..*']
rename = "dc1.{topic}"
replication.factor = 3
[delivery]
start = 2026-11-29T10:00:00Z
commit.interval = "1s"
lanes = "${LANES}"
ledger.replication.factor = 1
[limits]
memory = "128MiB"
"#;
    let yaml = r#"
name: orders-dr
instance: i-1
source:
  bootstrap.servers: a:1,a:2
  sasl.mechanism: PLAIN
  fetch.min.bytes: 1
target:
  bootstrap: {servers: ["b:1", "b:2"]}
  linger.ms: 5.5
  socket.keepalive.enable: true
topics:
  include: [orders, 'payments\..*']
  exclude:
  rename: "dc1.{topic}"
  replication.factor: 3
delivery:
  start: "2026-11-29T10:00:00Z"
  commit.interval: 1s
  lanes: ${LANES}
  ledger.replication.factor: 1
limits: {memory: 128MiB}
"#;
    let from_toml = read("m.toml", toml).unwrap();
    let from_yaml = read("m.yaml", yaml).unwrap();
    assert_eq!(from_toml.flow, from_yaml.flow);
    assert_eq!(from_toml.flow.lanes, 16);
    assert_eq!(from_toml.flow.start, Start::Time(Timestamp(1_795_946_400_000)));
    assert_eq!((&from_toml.source, &from_toml.target), (&from_yaml.source, &from_yaml.target));
    assert_eq!(from_toml.target["bootstrap.servers"], "b:1,b:2");
    assert_eq!(from_toml.target["linger.ms"], "5.5");
    assert_eq!(from_toml.instance, from_yaml.instance);
    assert_eq!(from_toml.memory, from_yaml.memory);
}

#[test]
fn later_layers_win() {
    let mut layers = Layers::default();
    layers.file(
        "a.toml",
        toml("topics.include = [\"a\"]\ndelivery.lanes = 1\nlimits.memory = \"64MiB\""),
        &NoVariables,
    );
    layers.file("b.yaml", "delivery: {lanes: 2}\ntopics: {include: b}".into(), &NoVariables);
    let variables = [
        ("VERBATIM_DELIVERY_LANES", "3"),
        ("VERBATIM_TOPICS_INCLUDE", "[\"c\", \"d\"]"),
        ("VERBATIM_SOURCE_SASL_PASSWORD", "pa${ss"),
        ("VERBATIM_TOPICS_EXCLUDE", "[xyz]+"),
        ("VERBATIM_KAFKA_IMAGE", "not ours"),
        ("VERBATIM_SERVICE_HOST", "not ours"),
    ];
    layers.environment(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    layers.flag("delivery.lanes=4", &NoVariables);
    let config = validate(layers).unwrap();
    assert_eq!((config.flow.lanes, config.memory), (4, 64 << 20));
    assert_eq!(config.source["sasl.password"], "pa${ss");
    let takes = |topic: &str| config.flow.filter.takes(&topic.into());
    assert_eq!(
        [takes("a"), takes("b"), takes("c"), takes("d"), takes("x")],
        [false, false, true, true, false]
    );
    assert!(!config.flow.filter.takes(&"x".into()));
}

#[test]
fn a_wrong_value_is_named_by_its_origin() {
    let from = |environment: &[(&str, &str)], flags: &[&str]| {
        let mut layers = Layers::default();
        layers.file("a.toml", toml(""), &NoVariables);
        layers.environment(environment.iter().map(|(name, value)| (name.into(), value.into())));
        flags.iter().for_each(|flag| layers.flag(flag, &NoVariables));
        validate(layers).unwrap_err().to_string()
    };
    assert_eq!(
        from(&[("VERBATIM_DELIVERY_LANES", "many")], &[]),
        "environment variable VERBATIM_DELIVERY_LANES: delivery.lanes is a whole number, not a text"
    );
    assert_eq!(
        from(&[("VERBATIM_TOPIC_INCLUDE", "x")], &[]),
        "environment variable VERBATIM_TOPIC_INCLUDE: unknown key topic.include"
    );
    assert!(from(&[], &["delivery.lanes=0"]).starts_with("--set delivery.lanes: delivery.lanes is between"));
}

#[test]
fn unknown_keys_are_refused_by_place_with_the_nearest() {
    refuses(
        "[topics]\ninculde = []",
        "m.toml:5:1: unknown key topics.inculde | did you mean topics.include?",
    );
    refuses("colour = 1", "m.toml:4:1: unknown key colour | the sections are source, target");
    refuses("[topcs]", "m.toml:4:2: unknown key topcs | did you mean topics?");
    refuses("name.x = 1", "m.toml:4:1: not TOML");
    let yaml = read("m.yaml", "name: f\nsource:\n  bootstrap.server: a\n").unwrap_err().to_string();
    assert!(yaml.contains("m.yaml:3:3: unknown client property source.bootstrap.server"), "{yaml}");
}

#[test]
fn what_comes_later_is_refused_as_such() {
    refuses("[http]\nlisten = \"x\"", "m.toml:5:1: http.listen is not in this version");
    refuses("[http]", "m.toml:4:2: http is not in this version");
    refuses("limits.rate = \"50MiB/s\"", "limits.rate = \"50MiB/s\" is not in this version");
    refuses("delivery.streams = 2", "delivery.streams = \"2\" is not in this version");
    refuses("delivery.streams = true", "delivery.streams is a text or a number");
    refuses("delivery.mode = \"at-least-once\"", "delivery.mode = \"at-least-once\" is not in this version");
    refuses("[on]\ngap = \"continue\"", "m.toml:5:7: on.gap = \"continue\" is not in this version");
    refuses("on.oversized = \"skip\"", "is not in this version");
    refuses("on.recreated = \"restart\"", "is not in this version");
    refuses("on.gap = \"ignore\"", "on.gap cannot be \"ignore\" | in this version it is \"halt\"");
}

#[test]
fn what_comes_later_may_be_given_as_it_is_by_default() {
    read("m.toml", &toml("delivery.streams = 1\nlimits.rate = \"none\"\ndelivery.mode = \"exactly-once\""))
        .unwrap();
    read("m.toml", &toml("delivery.streams = \"1\"")).unwrap();
}

#[test]
fn a_key_given_twice_in_one_file_is_refused_however_it_is_spelled() {
    refuses(
        "[topics]\nreplication.factor = 1\n\"replication.factor\" = 3",
        "m.toml:6:1: topics.replication.factor is given twice | it stands at m.toml:5:13 too; keep one of them",
    );
    let dotted =
        "name: f\nsource: {bootstrap.servers: a}\ntarget: {bootstrap.servers: b, bootstrap: {servers: c}}\n";
    let yaml = read("m.yaml", dotted).unwrap_err().to_string();
    assert!(yaml.contains("target.bootstrap.servers is given twice"), "{yaml}");
}

#[test]
fn what_is_not_text_in_the_environment_is_no_panic() {
    let not_text = || OsString::from_vec(vec![0xff, 0xfe]);
    let from = |variables: Vec<(OsString, OsString)>| {
        let mut layers = Layers::default();
        layers.file("a.toml", toml(""), &NoVariables);
        layers.environment(variables.into_iter());
        validate(layers)
    };
    from(vec![("LS_COLORS".into(), not_text()), (not_text(), "x".into())]).unwrap();
    let error = from(vec![("VERBATIM_DELIVERY_LANES".into(), not_text())]).unwrap_err().to_string();
    assert_eq!(error, "environment variable VERBATIM_DELIVERY_LANES: its value is not text in UTF-8");
}

#[test]
fn a_commit_interval_fits_into_a_transaction() {
    let interval = "delivery.commit.interval = \"20s\"\n";
    read("m.toml", &toml(interval)).unwrap();
    refuses(
        &format!("{interval}target.transaction.timeout.ms = 30000"),
        "delivery.commit.interval is at most half of target.transaction.timeout.ms, which is 30000 ms",
    );
}

#[test]
fn neither_properties_nor_values_show_what_they_hold() {
    let mut layers = Layers::default();
    layers.file("a.toml", toml("source.sasl.password = \"hunter2\""), &NoVariables);
    assert!(!format!("{layers:?}").contains("hunter2"), "{layers:?}");
    let config = validate(layers).unwrap();
    assert_eq!(config.source["sasl.password"], "hunter2");
    let shown = format!("{config:?}");
    assert!(shown.contains("sasl.password") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn wrong_values_are_refused_by_place() {
    refuses(
        "topics.include = [\"ok\", \"orders[\"]",
        "m.toml:4:32: topics.include: \"orders[\" is not a regular expression: unclosed character class",
    );
    refuses("topics.include = [\"(?=x)\"]", "look-around");
    refuses("topics.include = [7]", "topics.include is a list of texts, not of a number");
    refuses("topics.rename = \"x\"", "m.toml:4:17: topics.rename: \"x\" is not a rename rule");
    refuses("topics.refresh = \"soon\"", "topics.refresh: \"soon\" is not a duration");
    refuses("topics.refresh = \"0s\"", "topics.refresh is between");
    refuses("delivery.lanes = 1.5", "delivery.lanes is a whole number, not a number");
    refuses("delivery.lanes = true", "delivery.lanes is a whole number, not true or false");
    refuses("delivery.start = \"first\"", "neither \"earliest\" nor \"latest\" nor a time");
    refuses("limits.memory = \"1MiB\"", "limits.memory is at least 32MiB");
    refuses("instance = \"a b\"", "\"a b\" is not an instance id");
    refuses("source.sasl.password = \"${NOPE}\"", "m.toml:4:25: the environment has no variable NOPE");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let errors = errors("name = \"a.b\"\n[source]\nacks = \"1\"\n[topics]\ninclude = \"(\"\nx = 1\n");
    let starts: Vec<&str> = errors.iter().map(|error| error.split(": ").next().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "target.bootstrap.servers is missing | where is the target? [target] bootstrap.servers = \"host:9092\"",
            "m.toml:1:8",
            "m.toml:3:8",
            "m.toml:5:12",
            "m.toml:6:1"
        ]
    );
}

#[test]
fn what_is_not_toml_or_yaml_is_named_by_place() {
    assert!(errors("name = \"f\nx")[0].starts_with("m.toml:1:"), "{:?}", errors("name = \"f\nx"));
    let yaml = read("m.yml", "name: [f\n").unwrap_err().to_string();
    assert!(yaml.starts_with("m.yml:") && yaml.contains("not YAML"), "{yaml}");
}
