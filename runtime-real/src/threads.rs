//! Threads that nobody joins. One that breaks, or cannot start, is told of: its silence would be waited on for ever.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use tokio::sync::mpsc::UnboundedSender;

/// Runs `work` on a thread called `name`. If it panics, or no thread can be started, `broken` is told why.
pub(crate) fn start(
    name: &str,
    work: impl FnOnce() + Send + 'static,
    broken: impl Fn(String) + Send + Sync + 'static,
) {
    start_on(Builder::new(), name, work, broken);
}

fn start_on(
    builder: Builder,
    name: &str,
    work: impl FnOnce() + Send + 'static,
    broken: impl Fn(String) + Send + Sync + 'static,
) {
    let broken = Arc::new(broken);
    let (named, tells) = (name.to_string(), Arc::clone(&broken));
    let body = move || {
        // Whatever `work` had is gone by the time anything is told, so nobody sees it half changed.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            tells(format!("a bug in verbatim: the thread {named} panicked: {}", words(&*panic)));
        }
    };
    if let Err(error) = builder.name(name.into()).spawn(body) {
        broken(format!("the thread {name} cannot be started: {error}"));
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}

/// Tells the World of a thread of its own that broke. Without such a thread questions go unanswered or the group
/// unheard, so the World ends the process.
#[derive(Clone)]
pub(crate) struct Alarm(pub(crate) UnboundedSender<String>);

impl Alarm {
    /// Runs `work` on a thread; if it breaks, so does the World.
    pub(crate) fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        let alarm = self.clone();
        start(name, work, move |why| {
            // Nobody listens any more once the World is shut down.
            let _ = alarm.0.send(why);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn work_that_ends_is_not_told_of() {
        let (alarm, mut told) = unbounded_channel();
        let (done, ended) = channel();
        Alarm(alarm).start("busy", move || done.send(()).unwrap());
        ended.recv().unwrap();
        assert_eq!(told.blocking_recv(), None);
    }

    #[test]
    fn a_panic_is_told_with_its_words() {
        let (alarm, mut told) = unbounded_channel();
        Alarm(alarm.clone()).start("one", || panic!("offset {}", 7));
        assert_eq!(
            told.blocking_recv().as_deref(),
            Some("a bug in verbatim: the thread one panicked: offset 7")
        );
        Alarm(alarm).start("two", || panic!("plain"));
        assert!(told.blocking_recv().is_some_and(|why| why.ends_with("plain")));
    }

    #[test]
    fn a_thread_that_cannot_start_is_told_of() {
        let (told, heard) = channel();
        let no_room = Builder::new().stack_size(1 << 60);
        start_on(no_room, "huge", || unreachable!("it never runs"), move |why| told.send(why).unwrap());
        assert!(heard.recv().unwrap().starts_with("the thread huge cannot be started"));
    }
}
