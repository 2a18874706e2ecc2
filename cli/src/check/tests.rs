use super::*;
use crate::fake::{Fake, flow, record};
use std::collections::BTreeMap;
use verbatim_core::route::Rename;

fn fake() -> Fake {
    let mut fake = Fake::new();
    fake.topic("orders", vec![record(0, "k", "v")], 1);
    fake
}

#[track_caller]
fn fails(fake: &Fake, flow: &Flow, code: Code, words: &str) {
    let findings = connect(fake, flow, &[]);
    assert_eq!((findings.ok, findings.code()), (false, code), "{}", text(&findings));
    assert!(
        text(&findings).lines().any(|line| line.starts_with("FAIL") && line.contains(words)),
        "{}",
        text(&findings)
    );
}

#[test]
fn a_sound_flow_passes() {
    let findings = connect(&fake(), &flow(), &[]);
    assert!(findings.ok);
    insta::assert_snapshot!(text(&findings));
}

#[test]
fn rules_that_match_nothing_are_doubtful() {
    let include = ["oders".to_string()];
    let filter = verbatim_core::route::TopicFilter::new(&include, &[]).unwrap();
    let findings = connect(&fake(), &Flow { filter, ..flow() }, &include);
    assert_eq!((findings.ok, findings.code()), (true, Code::Done));
    let shown = text(&findings);
    let warned: Vec<&str> = shown.lines().filter(|line| line.starts_with("warn")).collect();
    assert_eq!(warned.len(), 2, "{shown}");
    assert!(warned[0].contains(r#"matches topics.include = ["oders"]"#), "{shown}");
    assert!(warned[1].contains("names oders"), "{shown}");
}

#[test]
fn a_target_topic_that_holds_less_is_doubtful() {
    let mut fake = fake();
    let small = BTreeMap::from([("max.message.bytes".to_string(), "1000".to_string())]);
    let large = BTreeMap::from([("max.message.bytes".to_string(), "2000".to_string())]);
    fake.set_configs(Side::Source, &"orders".into(), large);
    fake.set_configs(Side::Target, &"orders".into(), small);
    let findings = connect(&fake, &flow(), &[]);
    assert!(findings.ok, "{}", text(&findings));
    assert!(
        text(&findings).contains("warn  target topic orders  has max.message.bytes=1000"),
        "{}",
        text(&findings)
    );
}

#[test]
fn a_topic_without_a_leader_is_named() {
    let mut fake = fake();
    fake.silent.insert((Side::Source, "orders".into()));
    fails(&fake, &flow(), Code::TryAgain, "orders has no leader");
}

#[test]
fn clusters_that_do_not_answer_are_named() {
    let mut fake = fake();
    fake.trouble.insert(Side::Target, Trouble::Unreachable("no broker".into()));
    fails(&fake, &flow(), Code::Unreachable, "target         unreachable: no broker");
    fake.trouble.insert(Side::Target, Trouble::Authentication("bad password".into()));
    fails(&fake, &flow(), Code::NotAuthorized, "authentication failed");
}

#[test]
fn missing_acls_are_named() {
    let mut fake = fake();
    fake.unreadable.push("orders".into());
    fails(&fake, &flow(), Code::NotAuthorized, "the source needs an ACL: allow Read on Topic orders");
}

#[test]
fn one_cluster_must_not_feed_itself() {
    let mut fake = fake();
    fake.target.cluster_id = "source-id".into();
    fake.ledger.clear();
    fails(&fake, &flow(), Code::Configuration, "copied onto itself");
    let renamed = Flow { rename: Rename::new("x.{topic}").unwrap(), ..flow() };
    fails(&fake, &renamed, Code::Configuration, "x.orders, the copy of orders, would be copied again");
}

#[test]
fn a_ledger_of_another_flow_or_an_unsafe_one_is_refused() {
    let mut other = fake();
    other.source.cluster_id = "another".into();
    fails(&other, &flow(), Code::Configuration, "source cluster");
    fails(
        &fake(),
        &Flow { lanes: 4, ..flow() },
        Code::Configuration,
        "has 2 partitions, but delivery.lanes is 4",
    );
    let mut deleting = fake();
    let config = BTreeMap::from([("cleanup.policy".to_string(), "delete".to_string())]);
    deleting.set_configs(Side::Target, &flow().name.ledger(), config);
    fails(&deleting, &flow(), Code::Configuration, "cleanup.policy=delete");
}

#[test]
fn what_the_target_cannot_do_is_named() {
    fails(
        &fake(),
        &Flow { replication_factor: Some(3), ..flow() },
        Code::Configuration,
        "is 3, but the target has 1",
    );
    let mut stamping = fake();
    let config = BTreeMap::from([("message.timestamp.type".to_string(), "LogAppendTime".to_string())]);
    stamping.set_configs(Side::Target, &"orders".into(), config);
    fails(&stamping, &flow(), Code::Configuration, "would alter every timestamp");
}
