//! Where a value was written, down to line and column.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that configuration came from.
#[derive(PartialEq, Eq)]
pub struct SourceText {
    /// A file's path as the user gave it, or what else the text is.
    pub name: String,
    pub text: String,
    pub kind: Kind,
}

impl fmt::Debug for SourceText {
    /// Without the text, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceText")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    /// `NAME=value`, one variable of the environment.
    Environment,
    /// `--set key=value`.
    Flag,
}

/// A stretch of a [`SourceText`].
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    pub source: Arc<SourceText>,
    pub span: Range<usize>,
    /// What stands there must not be shown.
    pub secret: bool,
}

impl Place {
    pub fn new(source: &Arc<SourceText>, span: Range<usize>) -> Place {
        let end = span.end.min(source.text.len());
        Place { source: Arc::clone(source), span: span.start.min(end)..end, secret: false }
    }

    /// A part of this place, as secret as the whole.
    fn part(&self, span: Range<usize>) -> Place {
        Place { secret: self.secret, ..Place::new(&self.source, span) }
    }

    pub fn text(&self) -> &str {
        self.source.text.get(self.span.clone()).unwrap_or("")
    }

    /// Line and column of the first character, both from 1, in characters.
    pub fn line_column(&self) -> (usize, usize) {
        let before = self.source.text.get(..self.span.start).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The place of character `index` of a value that was written here as a text with or without quotes;
    /// the whole place where that cannot be told, as after an environment reference was replaced.
    pub fn character(&self, value: &str, index: usize) -> Place {
        let raw = self.text();
        let characters = raw_characters(raw);
        let written: String = characters.iter().map(|(c, _)| *c).collect();
        match (written == value).then(|| characters.get(index)).flatten() {
            Some((_, range)) => {
                let start = self.span.start;
                self.part(start + range.start..start + range.end)
            }
            None => self.clone(),
        }
    }

    /// The place of `needle` within this one, the whole where it is not found literally.
    pub fn within(&self, needle: &str) -> Place {
        match self.text().find(needle) {
            Some(at) => {
                let start = self.span.start + at;
                self.part(start..start + needle.len())
            }
            None => self.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source.kind {
            Kind::File => {
                let (line, column) = self.line_column();
                write!(f, "{}:{line}:{column}", self.source.name)
            }
            Kind::Environment => write!(f, "environment variable {}", self.source.name),
            Kind::Flag => write!(f, "--set {}", self.source.name),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The characters of a written text with the bytes each takes up, quotes dropped and one-letter escapes
/// resolved. Longer escapes come out wrong, which only costs the caller an exact column.
fn raw_characters(raw: &str) -> Vec<(char, Range<usize>)> {
    let (quote, escapes) = match raw.as_bytes() {
        [b'"', b'"', b'"', ..] => (3, true),
        [b'\'', b'\'', b'\'', ..] => (3, false),
        [b'"', ..] => (1, true),
        [b'\'', ..] => (1, false),
        _ => (0, false),
    };
    let end = raw.len().saturating_sub(quote).max(quote);
    let body = raw.get(quote..end).unwrap_or("");
    let mut characters = Vec::new();
    let mut rest = body.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let escaped = if escapes && c == '\\' { rest.next() } else { None };
        let end = rest.peek().map_or(body.len(), |(next, _)| *next);
        characters.push((escaped.map_or(c, |(_, e)| unescape(e)), quote + at..quote + end));
    }
    characters
}

fn unescape(letter: char) -> char {
    match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, needle: &str) -> Place {
        let source = SourceText { name: "a.toml".into(), text: text.into(), kind: Kind::File };
        let start = text.find(needle).unwrap();
        Place::new(&Arc::new(source), start..start + needle.len())
    }

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        assert_eq!(place("a\nbä = cd\n", "cd").to_string(), "a.toml:2:6");
        assert_eq!(place("a\n", "a").to_string(), "a.toml:1:1");
    }

    #[test]
    fn a_character_is_found_through_quotes_and_escapes() {
        let at = |written: &str, value: &str, index| {
            place(&format!("x = {written}\n"), written).character(value, index).to_string()
        };
        assert_eq!(at(r#""ab[""#, "ab[", 2), "a.toml:1:8");
        assert_eq!(at(r#""a\\b[""#, "a\\b[", 3), "a.toml:1:10");
        assert_eq!(at(r"'a\b['", "a\\b[", 3), "a.toml:1:9");
        assert_eq!(at("ab[", "ab[", 2), "a.toml:1:7");
        assert_eq!(at(r#""${X}""#, "replaced", 3), "a.toml:1:5");
    }
}
