//! Which rights were away when.

use super::setup::FLOW;
use crate::plan::{Action, Right};
use kafka_model::Millis;

struct Denial {
    /// As mirrors name it.
    resource: String,
    until: Option<Millis>,
}

/// All rights that an administrator has taken from clients, and given back to them.
#[derive(Default)]
pub struct Denials(Vec<Denial>);

impl Denials {
    pub fn note(&mut self, now: Millis, action: &Action) {
        let (resource, is_denied) = match action {
            Action::DenyTopic { topic, is_denied, .. } => (format!("Topic {topic}"), *is_denied),
            Action::DenyRight { right, is_denied } => (name(*right), *is_denied),
            _ => return,
        };
        match is_denied {
            true => self.0.push(Denial { resource, until: None }),
            false => self.end(now, |denial| denial.resource == resource),
        }
    }

    pub fn all_end(&mut self, now: Millis) {
        self.end(now, |_| true);
    }

    fn end(&mut self, now: Millis, which: impl Fn(&Denial) -> bool) {
        for denial in self.0.iter_mut().filter(|denial| which(denial)) {
            denial.until.get_or_insert(now);
        }
    }

    /// Whether a right to the resource was away at some time since then.
    pub fn were_since(&self, resource: &str, since: Millis) -> bool {
        let was_away = |denial: &Denial| denial.until.is_none_or(|until| since <= until);
        self.0.iter().any(|denial| denial.resource == resource && was_away(denial))
    }
}

fn name(right: Right) -> String {
    match right {
        Right::Group => format!("Group verbatim-{FLOW}"),
        Right::Lane(lane) => format!("TransactionalId verbatim-{FLOW}-{lane}"),
        Right::SourceCluster => "Cluster".to_owned(),
    }
}
