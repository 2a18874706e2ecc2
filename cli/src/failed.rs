//! Why a command ended without doing what was asked, as it is shown on stderr.

use crate::config::{ConfigError, ConfigErrors, Kind, excerpt};
use crate::exit_code::Code;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};
use std::fmt;
use verbatim_core::failure::{Side, Trouble};

#[derive(Debug)]
pub(crate) struct Failed {
    pub code: Code,
    reports: Vec<Report>,
}

impl Failed {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failed {
        Failed { code, reports: vec![Report::new(message.into())] }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Failed {
        if let Some(report) = self.reports.last_mut() {
            report.help = Some(help.into());
        }
        self
    }

    /// The first message, without its place in a source.
    pub(crate) fn message(&self) -> &str {
        self.reports.first().map_or("", |report| &report.message)
    }

    pub(crate) fn trouble(side: Side, trouble: &Trouble) -> Failed {
        Failed::new(Code::from(trouble), format!("{side} cluster: {trouble}"))
    }

    /// Writes all that is wrong to stderr, with the place in the source where there is one.
    pub(crate) fn show(&self) {
        let colours = crate::output::colours();
        let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_wrap_lines(false);
        let mut text = String::new();
        for report in &self.reports {
            if handler.render_report(&mut text, report).is_err() {
                text.push_str(&report.message);
                text.push('\n');
            }
        }
        crate::output::print_error(&text);
    }
}

impl From<ConfigErrors> for Failed {
    fn from(errors: ConfigErrors) -> Failed {
        let reports = errors.0.into_iter().map(Report::from).collect();
        Failed { code: Code::Configuration, reports }
    }
}

/// One message, with the text it speaks of.
#[derive(Debug)]
struct Report {
    message: String,
    help: Option<String>,
    source: Option<MarkedLines>,
    label: Option<LabeledSpan>,
}

impl Report {
    fn new(message: String) -> Report {
        Report { message, help: None, source: None, label: None }
    }
}

impl From<ConfigError> for Report {
    fn from(error: ConfigError) -> Report {
        let message = error.to_string();
        let Some(place) = error.place else {
            return Report { help: error.help, ..Report::new(message) };
        };
        let Some(text) = excerpt(&place) else {
            return Report { help: error.help, ..Report::new(message) };
        };
        let name = match place.source.kind {
            Kind::File => place.source.name.clone(),
            Kind::Environment => "environment".into(),
            Kind::Flag => "--set".into(),
        };
        let label = LabeledSpan::new_with_span(Some(error.label), place.span.clone());
        Report { message, help: error.help, source: Some(MarkedLines { name, text }), label: Some(label) }
    }
}

/// A text of which only the lines with a mark are shown: those around them have nothing to do with it, and may hold
/// secrets.
#[derive(Debug)]
struct MarkedLines {
    name: String,
    text: String,
}

impl SourceCode for MarkedLines {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        // Without lines around it the mark itself is asked for, to name its place.
        let span = if lines_before + lines_after == 0 { *span } else { whole_lines(&self.text, span) };
        let contents = self.text.read_span(&span, 0, 0)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            contents.data(),
            *contents.span(),
            contents.line(),
            contents.column(),
            contents.line_count(),
        )))
    }
}

fn whole_lines(text: &str, span: &SourceSpan) -> SourceSpan {
    let start = text.get(..span.offset()).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let end = span.offset() + span.len();
    // With the line's end, where a mark may stand.
    let end = text.get(end..).and_then(|after| after.find('\n')).map_or(text.len(), |at| end + at + 1);
    (start..end).into()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.label
            .clone()
            .map(|label| Box::new(std::iter::once(label)) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}
