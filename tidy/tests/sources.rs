//! Rules of the source text: small files, `unsafe` in one place, nothing asynchronous in the core.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines in a file. Past this there is a second concept in it.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_path_buf()
}

/// Every Rust file that git knows, with its text.
fn sources() -> Vec<(String, String)> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(root())
        .output()
        .expect("git runs");
    let names = String::from_utf8(output.stdout).expect("file names are text");
    let text = |name: &str| fs::read_to_string(root().join(name)).ok();
    let sources: Vec<_> = names.lines().filter_map(|name| Some((name.into(), text(name)?))).collect();
    assert!(10 < sources.len(), "git lists the sources");
    sources
}

fn offenders(is_offender: impl Fn(&str, &str) -> bool) -> Vec<String> {
    sources().into_iter().filter(|(name, text)| is_offender(name, text)).map(|(name, _)| name).collect()
}

/// Code lines only: comments may speak of anything.
fn code_has(text: &str, word: &str) -> bool {
    text.lines().any(|line| line.split("//").next().is_some_and(|code| code.contains(word)))
}

#[test]
fn files_stay_small() {
    let long = offenders(|_, text| LINES_MAX < text.lines().count());
    assert!(long.is_empty(), "split these into one concept each: {long:?}");
}

#[test]
fn unsafe_code_stays_in_its_place() {
    let allowed = |name: &str| {
        name.starts_with("runtime-real/src/ffi/")
            || name.starts_with("integration-tests/src/ffi")
            || name.starts_with("tidy/")
    };
    let found = offenders(|name, text| !allowed(name) && code_has(text, "unsafe "));
    assert!(found.is_empty(), "unsafe belongs into an ffi module: {found:?}");
}

#[test]
fn the_core_waits_for_nothing() {
    let found = offenders(|name, text| {
        name.starts_with("core/src/") && name != "core/src/drive.rs" && code_has(text, "async fn")
    });
    assert!(found.is_empty(), "only the driver is asynchronous: {found:?}");
}

#[test]
fn the_core_reads_no_clock_and_no_random_order() {
    let banned = ["std::time::Instant", "SystemTime", "HashMap", "HashSet", "std::thread"];
    // The order that a test plants, to see that it is noticed.
    let planted = "runtime-sim/src/client/unseeded.rs";
    let found = offenders(|name, text| {
        let pure = ["core/src/", "kafka-model/src/", "runtime-sim/src/client/", "runtime-sim/src/network/"]
            .iter()
            .any(|place| name.starts_with(place));
        pure && name != planted && banned.iter().any(|word| code_has(text, word))
    });
    assert!(found.is_empty(), "time and order are handed in: {found:?}");
}

#[test]
fn the_oracle_knows_neither_the_mirror_nor_what_was_planted() {
    let banned = ["verbatim_core", "runtime_sim", "Faults", "plant(", "utant"];
    let found = offenders(|name, text| {
        name.starts_with("sim-tests/src/oracle/") && banned.iter().any(|word| code_has(text, word))
    });
    assert!(found.is_empty(), "a judge that can name a planted bug proves nothing: {found:?}");
}
