//! What may depend on what: the table of ARCHITECTURE.md, read against `cargo metadata`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A crate, what it must never use directly, and whether tests are bound too.
struct Rule {
    of: &'static str,
    never: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        of: "kafka-types",
        never: &["verbatim-core", "runtime-real", "kafka-model", "tokio", "rdkafka", "madsim", "rand"],
    },
    Rule {
        of: "verbatim-core",
        never: &["runtime-real", "runtime-sim", "kafka-model", "tokio", "rdkafka", "madsim", "rand"],
    },
    Rule {
        of: "kafka-model",
        never: &["verbatim-core", "runtime-real", "tokio", "madsim", "rdkafka", "rand"],
    },
    Rule { of: "runtime-real", never: &["runtime-sim", "kafka-model", "madsim", "clap"] },
    Rule { of: "runtime-sim", never: &["tokio", "rdkafka", "runtime-real"] },
    Rule { of: "embedded-kafka", never: &["verbatim-core", "madsim", "rdkafka", "runtime-real"] },
    Rule { of: "verbatim", never: &["runtime-sim", "madsim", "sim-tests"] },
    Rule { of: "sim-tests", never: &["runtime-real", "rdkafka"] },
    // Judges of the mirror share no code with it.
    Rule { of: "integration-tests", never: &["verbatim-core", "runtime-real", "verbatim"] },
    Rule { of: "bench", never: &["verbatim-core", "runtime-real", "verbatim"] },
];

/// Direct dependencies of each workspace member, for tests included.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_string();
    packages
        .iter()
        .map(|package| {
            let list = package["dependencies"].as_array().expect("dependencies");
            (name(package), list.iter().map(name).collect())
        })
        .collect()
}

#[test]
fn crates_use_only_what_they_may() {
    let dependencies = dependencies();
    let mut broken = Vec::new();
    for Rule { of, never } in RULES {
        let Some(used) = dependencies.get(*of) else { continue };
        broken.extend(never.iter().filter(|it| used.contains(**it)).map(|it| format!("{of} uses {it}")));
    }
    assert!(broken.is_empty(), "against ARCHITECTURE.md: {broken:?}");
}

#[test]
fn every_member_has_a_rule_or_is_a_tool() {
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.of).chain(["tidy"]).collect();
    let unknown: Vec<String> = dependencies().into_keys().filter(|it| !known.contains(it.as_str())).collect();
    assert!(unknown.is_empty(), "say in ARCHITECTURE.md and here what these may use: {unknown:?}");
}
