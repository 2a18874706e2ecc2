//! The record of a run: every request, response, fault, timer and pick of the scheduler, as a rolling hash
//! always and as lines of text on demand. Two runs of one seed must have the same.

use kafka_model::Millis;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceMode {
    #[default]
    Hash,
    /// One line an event as well: slow, and long.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    hasher: Rolling,
    steps: u64,
    lines: Option<Vec<String>>,
}

/// How much of an event's text one line shows.
const TEXT_MAX: usize = 240;

impl Trace {
    pub fn new(mode: TraceMode) -> Trace {
        let lines = match mode {
            TraceMode::Hash => None,
            TraceMode::Text => Some(Vec::new()),
        };
        Trace { hasher: Rolling::default(), steps: 0, lines }
    }

    /// Notes that `what` happened to or through `who`.
    pub fn note(
        &mut self,
        now: Millis,
        kind: &'static str,
        who: &(impl Hash + Debug),
        what: &(impl Hash + Debug),
    ) {
        self.steps += 1;
        now.hash(&mut self.hasher);
        kind.hash(&mut self.hasher);
        who.hash(&mut self.hasher);
        what.hash(&mut self.hasher);
        if let Some(lines) = &mut self.lines {
            let mut text = format!("{what:?}");
            if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
                text.truncate(end);
                text.push('…');
            }
            lines.push(format!(
                "{:>10.3}s {:<10} {:<26} {text}",
                now as f64 / 1000.0,
                kind,
                format!("{who:?}")
            ));
        }
    }

    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// How many events were noted.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// A hash of all that was written so far, the same on every machine and in every process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rolling(u64);

impl Rolling {
    fn add(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

impl Hasher for Rolling {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.add(u64::from_le_bytes(word.try_into().expect("chunks of eight")));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(last) ^ ((rest.len() as u64) << 60));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_knows_what_when_and_in_which_order() {
        let hash = |events: &[(Millis, &'static str)]| {
            let mut trace = Trace::new(TraceMode::Hash);
            for (at, what) in events {
                trace.note(*at, "test", &1, what);
            }
            trace.hash()
        };
        assert_eq!(hash(&[(1, "a"), (2, "b")]), hash(&[(1, "a"), (2, "b")]));
        assert_ne!(hash(&[(1, "a"), (2, "b")]), hash(&[(1, "b"), (2, "a")]));
        assert_ne!(hash(&[(1, "a")]), hash(&[(2, "a")]));
        assert_ne!(hash(&[(1, "ab"), (1, "c")]), hash(&[(1, "a"), (1, "bc")]));
    }

    #[test]
    fn text_is_one_line_an_event() {
        let mut trace = Trace::new(TraceMode::Text);
        trace.note(1500, "request", &"a", &"x".repeat(1000));
        let lines = trace.into_lines();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("     1.500s request"), "{}", lines[0]);
        assert!(lines[0].chars().count() < 310);
    }
}
