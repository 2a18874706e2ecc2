//! The mirror as users run it: the `verbatim` binary, in a process of its own, that can be stopped, frozen and killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const POLL: Duration = Duration::from_millis(20);

/// The binary under test, built once a test process, in the profile of the tests themselves.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // For those who test a binary that is built already, a release for instance.
        if let Some(path) = std::env::var_os("VERBATIM_BINARY") {
            return path.into();
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above this crate");
        // The whole workspace is named so that dependencies get the features they have in `cargo test
        // --workspace`: with others they would all be compiled again.
        let run = escargot::CargoBuild::new()
            .manifest_path(workspace.join("Cargo.toml"))
            .target_dir(target_directory(workspace))
            .arg("--workspace")
            .bin("verbatim")
            .run()
            .expect("the mirror builds");
        run.path().to_owned()
    })
}

/// The target directory that these tests were built in: the test binary lies in its `debug/deps`.
fn target_directory(workspace: &Path) -> PathBuf {
    let above = |path: PathBuf| Some(path.parent()?.parent()?.parent()?.to_owned());
    std::env::current_exe()
        .ok()
        .and_then(above)
        .filter(|directory| directory.join("CACHEDIR.TAG").exists())
        .unwrap_or_else(|| workspace.join("target"))
}

/// A configuration file in the making. Sections come out in the order in which they were first named.
#[derive(Debug, Clone, Default)]
pub struct MirrorConfig {
    /// Section (empty for the top level), key and value, in TOML's own notation.
    entries: Vec<(String, String, String)>,
}

impl MirrorConfig {
    /// A flow from one cluster to another of the topics that these patterns match.
    pub fn new(flow: &str, source: &str, target: &str, include: &[&str]) -> MirrorConfig {
        let patterns: Vec<String> = include.iter().map(|pattern| quoted(pattern)).collect();
        MirrorConfig::default()
            .text("", "name", flow)
            .text("source", "bootstrap.servers", source)
            .text("target", "bootstrap.servers", target)
            .set("topics", "include", &format!("[{}]", patterns.join(", ")))
    }

    /// Sets a key to a value in TOML's own notation: `set("delivery", "lanes", "4")`. Replaces an earlier value.
    #[must_use]
    pub fn set(self, section: &str, key: &str, value: &str) -> MirrorConfig {
        let mut changed = self.without(section, key);
        changed.entries.push((section.to_owned(), key.to_owned(), value.to_owned()));
        changed
    }

    #[must_use]
    pub fn without(mut self, section: &str, key: &str) -> MirrorConfig {
        self.entries.retain(|entry| (entry.0.as_str(), entry.1.as_str()) != (section, key));
        self
    }

    /// Sets a key to a string.
    #[must_use]
    pub fn text(self, section: &str, key: &str, value: &str) -> MirrorConfig {
        let value = quoted(value);
        self.set(section, key, &value)
    }

    /// The whole file.
    pub fn to_toml(&self) -> String {
        let mut sections: Vec<&str> = vec![""];
        for (section, _, _) in &self.entries {
            if !sections.contains(&section.as_str()) {
                sections.push(section);
            }
        }
        let mut file = String::new();
        for section in sections {
            if !section.is_empty() {
                file.push_str(&format!("\n[{section}]\n"));
            }
            for (_, key, value) in self.entries.iter().filter(|entry| entry.0 == section) {
                file.push_str(&format!("{key} = {value}\n"));
            }
        }
        file
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A running `verbatim`. Dropping it kills it.
pub struct Mirror {
    child: Child,
    directory: TempDir,
    status: Option<ExitStatus>,
}

impl Mirror {
    /// `verbatim run`, until stopped.
    pub fn run(config: &MirrorConfig) -> Result<Mirror> {
        Mirror::start(&config.to_toml(), &["run"])
    }

    /// `verbatim WORDS... -c FILE`, for a file with this text; words may be a command and its flags.
    pub fn start(config: &str, words: &[&str]) -> Result<Mirror> {
        let directory = TempDir::with_prefix("verbatim-")?;
        let file = directory.path().join("mirror.toml");
        std::fs::write(&file, config)?;
        let mut command = Command::new(binary());
        let (first, rest) = words.split_first().context("no command")?;
        command.arg(first).arg("-c").arg(&file).args(rest);
        Mirror::spawn(command, directory)
    }

    /// `verbatim WORDS...`, with no file.
    pub fn start_bare(words: &[&str]) -> Result<Mirror> {
        let mut command = Command::new(binary());
        command.args(words);
        Mirror::spawn(command, TempDir::with_prefix("verbatim-")?)
    }

    fn spawn(mut command: Command, directory: TempDir) -> Result<Mirror> {
        // Files and not pipes: what a killed process wrote is all there, and none has to be drained.
        let stdout = File::create(directory.path().join("stdout"))?;
        let stderr = File::create(directory.path().join("stderr"))?;
        let child = command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .context("the mirror cannot be started")?;
        Ok(Mirror { child, directory, status: None })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits until it is dead.
    pub fn kill(&mut self) -> Result<()> {
        if self.status.is_none() {
            self.child.kill()?;
            self.status = Some(self.child.wait()?);
        }
        Ok(())
    }

    /// SIGTERM: settle and leave.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGSTOP: frozen, with all its connections open.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        Ok(kill_process(pid, signal)?)
    }

    pub fn is_running(&mut self) -> bool {
        self.poll_status().is_ok_and(|status| status.is_none())
    }

    /// Waits for the end of the process; its exit code. Fails when the time is up or a signal ended it.
    pub fn wait(&mut self, timeout: Duration) -> Result<i32> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.poll_status()? {
                return status.code().with_context(|| format!("ended by a signal: {status}"));
            }
            if deadline < Instant::now() {
                bail!("still running after {timeout:?}; {}", self.story());
            }
            sleep(POLL);
        }
    }

    fn poll_status(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// Waits until these words stand in its standard error. Fails when it ends first or the time is up.
    pub fn wait_for_log(&mut self, words: &str, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        loop {
            // Asked first: what it wrote before it ended is then all there to be read.
            let running = self.is_running();
            if self.stderr().contains(words) {
                return Ok(());
            }
            if !running || deadline < Instant::now() {
                bail!("{words:?} was never logged; {}", self.story());
            }
            sleep(POLL);
        }
    }

    /// Resident memory in KiB.
    pub fn memory_kib(&self) -> Result<u64> {
        self.status_field("VmRSS:")
    }

    /// The most resident memory it ever had, in KiB.
    pub fn peak_memory_kib(&self) -> Result<u64> {
        self.status_field("VmHWM:")
    }

    fn status_field(&self, name: &str) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
            .with_context(|| format!("no {name} in the process's status"))
    }

    /// How it stands and how its log ends, for a failure's message.
    pub fn story(&self) -> String {
        let log = self.stderr();
        let tail = &log[log.floor_char_boundary(log.len().saturating_sub(4000))..];
        format!("status {:?}, standard error ends so:\n{tail}", self.status)
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.directory.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.kill().ok();
        if std::thread::panicking() {
            eprintln!("mirror {}: {}", self.pid(), self.story());
        }
    }
}

/// What a command that ends by itself left behind.
#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command to its end: `finish(&config, &["run", "--until", "end"], timeout)`.
pub fn finish(config: &MirrorConfig, words: &[&str], timeout: Duration) -> Result<Finished> {
    let mut mirror = Mirror::start(&config.to_toml(), words)?;
    let code = mirror.wait(timeout)?;
    Ok(Finished { code, stdout: mirror.stdout(), stderr: mirror.stderr() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_written_section_by_section() {
        let config = MirrorConfig::new("flow", "a:1", "b:2", &["orders", r"payments\..*"])
            .set("delivery", "lanes", "4")
            .text("", "instance", "one")
            .set("delivery", "lanes", "2");
        let expected = r#"name = "flow"
instance = "one"

[source]
bootstrap.servers = "a:1"

[target]
bootstrap.servers = "b:2"

[topics]
include = ["orders", "payments\\..*"]

[delivery]
lanes = 2
"#;
        assert_eq!(config.to_toml(), expected);
    }
}
