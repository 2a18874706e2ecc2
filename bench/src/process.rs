//! A mirror's process: started with its output in files, its cost read from /proc.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const STOP_MAX: Duration = Duration::from_secs(30);
/// USER_HZ, in which Linux counts for user programs on all machines that matter here.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running mirror. Dropping it kills it.
pub struct Process {
    child: Child,
    directory: TempDir,
}

impl Process {
    /// Its working directory is `directory`, with its configuration in it.
    pub fn start(mut command: Command, directory: TempDir) -> Result<Process> {
        let stdout = File::create(directory.path().join("stdout"))?;
        let stderr = File::create(directory.path().join("stderr"))?;
        let child = command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        Ok(Process { child, directory })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fails, with what it last said, once the process has ended by itself.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("it ended with {status}; its log ends so:\n{}", self.last_words()),
        }
    }

    /// The most resident memory it ever had, in KiB.
    pub fn peak_memory_kib(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        text.lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok())
            .context("no VmHWM in the process's status")
    }

    /// SIGTERM, and SIGKILL when that does not help.
    pub fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let until = Instant::now() + STOP_MAX;
        while self.child.try_wait()?.is_none() && Instant::now() < until {
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    pub fn last_words(&self) -> String {
        let read = |name| std::fs::read(self.directory.path().join(name)).unwrap_or_default();
        let text = [read("stdout"), read("stderr")].concat();
        String::from_utf8_lossy(&text[text.len().saturating_sub(4000)..]).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Seconds of processor time, user and system, that all threads of a process have used, ended ones too.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = ticks_of(&text).with_context(|| format!("not the figures of a process: {text}"))?;
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

fn ticks_of(stat: &str) -> Option<u64> {
    // The name in brackets may hold anything; utime and stime are the 12th and 13th word after it.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(user + system)
}

/// A new directory with these files in it.
pub fn directory_with(files: &[(&str, &str)]) -> Result<TempDir> {
    let directory = TempDir::with_prefix("peers-")?;
    for (name, text) in files {
        std::fs::write(Path::new(directory.path()).join(name), text)?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 9 9 9 9 250 30 1 2 20 0 9 0 77 1 1";
        assert_eq!(ticks_of(stat), Some(280));
        assert_eq!(ticks_of("nonsense"), None);
    }

    #[test]
    fn this_process_has_figures() {
        assert!(0.0 <= cpu_seconds(std::process::id()).unwrap());
    }
}
