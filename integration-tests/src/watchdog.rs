//! Ends a test process that hangs, and says where it does: a client that never closes or an engine that never answers would
//! otherwise be found out by whoever runs the tests, an hour later and with nothing to go by.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio, abort};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, ThreadId, sleep};
use std::time::{Duration, Instant};

/// The longest test takes a quarter of it on a machine with nothing else to do.
const RUNNING_MAX: Duration = Duration::from_secs(15 * 60);
const LOOK: Duration = Duration::from_secs(1);

static WATCHED: Mutex<BTreeMap<String, Watch>> = Mutex::new(BTreeMap::new());

struct Watch {
    thread: ThreadId,
    since: Instant,
    /// Waits for its turn, and cannot help how long that takes.
    waits: bool,
}

/// While it lives, the test of this thread is watched.
pub struct Watched {
    test: String,
}

/// Watches the test that runs on this thread, until the guard is dropped.
#[must_use]
pub fn watch(test: &str) -> Watched {
    static LOOKING: Once = Once::new();
    LOOKING.call_once(|| {
        thread::spawn(look);
    });
    let watch = Watch { thread: thread::current().id(), since: Instant::now(), waits: false };
    watched().insert(test.to_owned(), watch);
    Watched { test: test.to_owned() }
}

impl Drop for Watched {
    fn drop(&mut self) {
        watched().remove(&self.test);
    }
}

/// Does something that takes as long as other tests take; the time of the test on this thread begins behind it.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let set = |waits| {
        let thread = thread::current().id();
        for watch in watched().values_mut().filter(|watch| watch.thread == thread) {
            (watch.waits, watch.since) = (waits, Instant::now());
        }
    };
    set(true);
    let result = wait();
    set(false);
    result
}

fn look() {
    loop {
        sleep(LOOK);
        let is_over = |watch: &Watch| !watch.waits && RUNNING_MAX < watch.since.elapsed();
        let hanging: Vec<String> =
            watched().iter().filter(|(_, watch)| is_over(watch)).map(|(test, _)| test.clone()).collect();
        if !hanging.is_empty() {
            give_up(&hanging);
        }
    }
}

fn give_up(hanging: &[String]) -> ! {
    // Written directly: what goes through the print macros is kept back until a test ends.
    let mut out = std::io::stderr();
    writeln!(out, "HANGS for {RUNNING_MAX:?}: {}", hanging.join(", ")).ok();
    match stacks() {
        Ok(stacks) => writeln!(out, "{stacks}").ok(),
        Err(error) => writeln!(out, "no stacks, for gdb cannot be run: {error}").ok(),
    };
    abort()
}

/// The stacks of all threads, by gdb: the hanging thread is most likely in a library's C code.
fn stacks() -> std::io::Result<String> {
    let pid = std::process::id().to_string();
    let output = Command::new("gdb")
        .args(["-p", &pid, "-batch", "-ex", "set pagination off", "-ex", "thread apply all backtrace 30"])
        .stdin(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn watched() -> MutexGuard<'static, BTreeMap<String, Watch>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}
