//! The built binary as a user meets it: exit codes, and errors that show where.

use assert_cmd::Command;
use std::process::Output;
use tempfile::TempDir;

/// A directory with one configuration file.
struct Place {
    directory: TempDir,
}

impl Place {
    fn with(name: &str, text: &str) -> Place {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), text).unwrap();
        Place { directory }
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::cargo_bin("verbatim").unwrap();
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("VERBATIM_")) {
            command.env_remove(name);
        }
        command.current_dir(&self.directory).args(args).envs(variables.iter().copied()).output().unwrap()
    }
}

fn run(args: &[&str]) -> Output {
    Place::with("unused", "").run(args, &[])
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn check(text: &str) -> (Option<i32>, String) {
    let output = Place::with("mirror.toml", text).run(&["check", "-c", "mirror.toml"], &[]);
    (output.status.code(), stderr(&output))
}

const CLUSTERS: &str =
    "[source]\nbootstrap.servers = \"localhost:1\"\n[target]\nbootstrap.servers = \"localhost:2\"\n";

#[test]
fn a_wrong_command_line_is_64() {
    for args in [
        &["frobnicate"][..],
        &["run", "--until"],
        &["run", "--until", "tomorrow"],
        &["run", "--wait-open", "5s"],
        &["status", "--nope"],
        &["check", "--set", "novalue"],
        &["check", "--output", "xml"],
        &["config"],
        &[],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn help_and_version_are_0() {
    for args in [&["--help"][..], &["run", "--help"], &["--version"]] {
        assert_eq!(run(args).status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn commands_of_later_versions_are_refused_as_such() {
    for args in [
        &["plan"][..],
        &["explain", "orders"],
        &["demo"],
        &["mirror-maker", "--consumer.config", "x"],
        &["completions", "bash"],
        &["man"],
        &["config", "print"],
        &["config", "schema"],
        &["status", "--format", "kafka"],
        &["status", "--broker-info"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}");
        assert!(
            stderr(&output).contains("is not in this version of verbatim"),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn the_starter_file_passes_check() {
    let starter = stdout(&run(&["config", "init"]));
    let place = Place::with("mirror.toml", &starter);
    let output = place.run(&["check", "-c", "mirror.toml"], &[]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(stdout(&output), "ok    configuration  valid; --connect asks the clusters too\n");
    let json = place.run(&["check", "-c", "mirror.toml", "--output", "json"], &[]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ok"], true);
}

#[test]
fn flags_beat_the_environment_which_beats_files() {
    let place = Place::with("mirror.toml", &format!("name = \"f\"\ndelivery.lanes = 0\n{CLUSTERS}"));
    let code = |args: &[&str], variables: &[(&str, &str)]| {
        let args: Vec<&str> = ["check", "-c", "mirror.toml"].iter().chain(args).copied().collect();
        place.run(&args, variables).status.code()
    };
    assert_eq!(code(&[], &[]), Some(78));
    assert_eq!(code(&[], &[("VERBATIM_DELIVERY_LANES", "4")]), Some(0));
    assert_eq!(code(&["--set", "delivery.lanes=0"], &[("VERBATIM_DELIVERY_LANES", "4")]), Some(78));
    assert_eq!(code(&["--set", "delivery.lanes=4"], &[("VERBATIM_DELIVERY_LANES", "0")]), Some(0));
}

#[test]
fn yaml_is_read_by_its_name() {
    let yaml = "name: f\nsource: {bootstrap.servers: 'a:1'}\ntarget: {bootstrap.servers: 'b:1'}\n";
    let output = Place::with("mirror.yaml", yaml).run(&["check", "-c", "mirror.yaml"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let yaml = format!("{yaml}topics:\n  inculde: [a]\n");
    let output = Place::with("mirror.yml", &yaml).run(&["check", "-c", "mirror.yml"], &[]);
    assert_eq!(output.status.code(), Some(78));
    assert!(stderr(&output).contains("mirror.yml:5:3: unknown key topics.inculde"), "{}", stderr(&output));
}

#[test]
fn configuration_errors_show_the_place() {
    let text = format!(
        "name = \"orders.dr\"\n{CLUSTERS}sasl.password = \"${{NO_SUCH}}\"\nacks = \"1\"\n\
         [topics]\ninculde = [\"a\"]\nexclude = [\"tmp\", \"a\\\\.(b\"]\n[on]\ngap = \"continue\"\n"
    );
    let (code, shown) = check(&text.replace("sasl.password = \"${NO_SUCH}\"\n", ""));
    assert_eq!(code, Some(78));
    insta::assert_snapshot!("all_at_once", shown);
    let (code, shown) = check(&text);
    assert_eq!(code, Some(78));
    insta::assert_snapshot!("unresolved_reference", shown);
}

#[test]
fn files_that_cannot_be_read_or_parsed_are_78() {
    let missing = run(&["check", "-c", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(78));
    assert!(stderr(&missing).contains("cannot read nowhere.toml"), "{}", stderr(&missing));
    let (code, shown) = check("name = \n");
    assert_eq!(code, Some(78));
    insta::assert_snapshot!("not_toml", shown);
    assert_eq!(run(&["check"]).status.code(), Some(78));
}

#[test]
fn clusters_that_do_not_answer_are_69() {
    let text = format!("name = \"f\"\n{CLUSTERS}");
    let place = Place::with("mirror.toml", &text);
    let is_69 = |command: &[&str]| {
        let args: Vec<&str> = command.iter().copied().chain(["-c", "mirror.toml"]).collect();
        let output = place.run(&args, &[]);
        assert_eq!(output.status.code(), Some(69), "{command:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"));
    };
    // Each waits its own time for an answer.
    std::thread::scope(|scope| {
        for command in [&["check", "--connect"][..], &["status"], &["verify"]] {
            scope.spawn(move || is_69(command));
        }
    });
}
