//! The few things that testcontainers does not do: kill and start again the same container, and clean up
//! behind a test process however it ended. Through the docker command, which is there where the engine is.

use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Marks every container with the test process that started it.
pub const OWNER_LABEL: &str = "verbatim.owner";

/// In seconds. No command takes as long; an engine that is stuck answers none.
const COMMAND_MAX: &str = "300";

/// Runs one docker command; its standard output, trimmed.
pub fn docker(arguments: &[&str]) -> Result<String> {
    let output = Command::new("timeout")
        .args(["--kill-after=10", COMMAND_MAX, "docker"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("the docker command cannot be run")?;
    ensure!(
        output.status.success(),
        "docker {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The value of `OWNER_LABEL` in this process. From the first call on, a child waits for this process to end,
/// whether by return, panic or kill, and then removes its containers: brokers shared between
/// tests live in statics, which are never dropped.
pub fn owner() -> &'static str {
    static OWNER: OnceLock<(String, Option<Child>)> = OnceLock::new();
    let (owner, _reaper) = OWNER.get_or_init(|| {
        let started = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_millis());
        let owner = format!("{}-{started}", std::process::id());
        let reaper = start_reaper(&owner).ok();
        (owner, reaper)
    });
    owner
}

fn start_reaper(owner: &str) -> Result<Child> {
    use std::os::unix::process::CommandExt;
    // `cat` returns when the last holder of the pipe's other end, this process, is gone.
    let script =
        format!("cat; docker ps -aq --filter label={OWNER_LABEL}={owner} | xargs -r docker rm -f -v");
    Command::new("sh")
        .args(["-c", &script])
        // A group of its own, so that Ctrl-C on the tests does not end it too.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("no shell to clean up with")
}
