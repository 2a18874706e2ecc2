//! The built binary as a user meets it: exit codes, and errors that show where.

use assert_cmd::Command;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
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
        self.command(args).envs(variables.iter().copied()).output().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("verbatim").unwrap();
        let is_ours = |name: &OsString| name.as_bytes().starts_with(b"VERBATIM_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        command.current_dir(&self.directory).args(args);
        command
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

/// Whatever is wrong with or around a password, no error shows it.
#[test]
fn no_error_shows_a_secret() {
    const SECRET: &str = "hunter2";
    let jaas = format!("M required username=\\\"u\\\" password=\\\"{SECRET}\\\"");
    for (wrong, place) in [
        // A value that is a secret itself.
        (format!("sasl.jaas.config = \"{jaas}\""), ":6:20: sasl.jaas.config: it must end with a ;"),
        (
            format!("sasl.jaas.config = \"M password={SECRET};\""),
            ":6:20: sasl.jaas.config: required is expected",
        ),
        (format!("sasl.password = [\"{SECRET}\", true]"), ":6:17: target.sasl.password is a text"),
        // A key that was meant for one.
        (format!("sasl.pasword = \"{SECRET}\""), ":6:6: unknown client property target.sasl.pasword"),
        (format!("sasl.pwd = \"{SECRET}\""), ":6:6: unknown client property target.sasl.pwd"),
        // What stands beside one.
        (format!("sasl.password = \"{SECRET}\"\nacks = \"1\""), ":7:8: acks is always all"),
        (format!("acks = \"1\"\nsasl.password = \"{SECRET}\""), ":6:8: acks is always all"),
        // What is not even TOML.
        (format!("sasl.password = \"{SECRET}"), "not TOML"),
        (format!("ssl.key.pem = \"\"\"\n{SECRET}\n\\q\"\"\""), "not TOML"),
    ] {
        let (code, shown) = check(&format!("name = \"f\"\n{CLUSTERS}{wrong}\n"));
        assert_eq!(code, Some(78), "{wrong}: {shown}");
        assert!(shown.contains(place), "{wrong}: {shown}");
        assert!(!shown.contains(SECRET), "{wrong}: {shown}");
    }
}

#[test]
fn no_error_shows_a_secret_from_the_environment_or_a_flag() {
    let place = Place::with("mirror.toml", &format!("name = \"f\"\n{CLUSTERS}"));
    let check = ["check", "-c", "mirror.toml"];
    for name in
        ["VERBATIM_SOURCE_SASL_PASWORD", "VERBATIM_SOURCE_SASL_JAAS_CONFIG", "VERBATIM_SORCE_SASL_PASSWORD"]
    {
        let output = place.run(&check, &[(name, "hunter2")]);
        assert_eq!(output.status.code(), Some(78), "{name}");
        let shown = stderr(&output);
        assert!(shown.contains(name) && !shown.contains("hunter2"), "{shown}");
    }
    for key in ["source.sasl.pasword", "source.sasl.jaas.config", "sorce.sasl.password"] {
        let flag = format!("{key}=hunter2");
        let output = place.run(&[&check[..], &["--set", &flag]].concat(), &[]);
        assert_eq!(output.status.code(), Some(78), "{key}");
        let shown = stderr(&output);
        assert!(shown.contains(key) && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn an_environment_that_is_not_text_is_nobody_s_bug() {
    let place = Place::with("mirror.toml", &format!("name = \"f\"\n{CLUSTERS}"));
    let not_text = OsStr::from_bytes(b"\xff\xfe");
    let check = |name: &str| {
        let output = place.command(&["check", "-c", "mirror.toml"]).env(name, not_text).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    assert_eq!(check("SOMEBODY_ELSES"), (Some(0), String::new()));
    let (code, shown) = check("VERBATIM_DELIVERY_LANES");
    assert_eq!(code, Some(78));
    assert!(shown.contains("VERBATIM_DELIVERY_LANES") && shown.contains("not text"), "{shown}");
}

/// A mirror whose clusters do not answer, until it gives up or is told to end.
#[test]
fn a_hangup_ends_nothing() {
    let place = Place::with("mirror.toml", &format!("name = \"f\"\n{CLUSTERS}"));
    let log = place.directory.path().join("log");
    let mut mirror = std::process::Command::new(env!("CARGO_BIN_EXE_verbatim"))
        .args(["run", "-c", "mirror.toml"])
        .current_dir(&place.directory)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let signal = |name: &str| {
        let status = std::process::Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", mirror.id())])
            .status()
            .unwrap();
        assert!(status.success());
    };
    let wait_for = |words: &str| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !std::fs::read_to_string(&log).unwrap().contains(words) {
            assert!(Instant::now() < deadline, "{words}: {}", std::fs::read_to_string(&log).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("mirroring");
    signal("HUP");
    wait_for("SIGHUP changes nothing");
    signal("TERM");
    wait_for("stopping: settling what was read");
    let status = mirror.wait().unwrap();
    assert!(status.code().is_some(), "it ends by itself: {status}");
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
