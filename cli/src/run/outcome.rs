//! How a run ended, in words, numbers and an exit code.

use crate::exit_code::Code;
use crate::table::count;
use kafka_types::{SourceOffset, SourcePartition};
use serde::Serialize;
use verbatim_core::command::Report;
use verbatim_core::event::OpenTransaction;
use verbatim_core::exit::Exit;
use verbatim_core::failure::{Side, Trouble};

/// The JSON form of it is relied on by users' scripts.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Outcome {
    pub flow: String,
    pub exit_code: u8,
    pub result: &'static str,
    pub message: String,
    /// How many source topics the rules matched, as last listed; absent where no listing came.
    pub topics: Option<usize>,
    /// By this instance.
    pub records_settled: u64,
    pub bytes_settled: u64,
    pub halted: Vec<Halted>,
    pub open_transactions: Vec<Open>,
    #[serde(skip)]
    pub code: Code,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Halted {
    pub topic: String,
    pub partition: i32,
    pub reason: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Open {
    pub topic: String,
    pub partition: i32,
    pub first_offset: Option<SourceOffset>,
    pub producer_id: Option<i64>,
}

impl Outcome {
    /// `topics` is how many topics the rules matched; `servers` says where each cluster was looked for.
    pub(crate) fn new(
        flow: &str,
        exit: Exit,
        report: &Report,
        topics: Option<usize>,
        servers: impl Fn(Side) -> String,
    ) -> Outcome {
        let (code, result, message) = words(&exit, topics, servers);
        let (mut halted, mut open_transactions) = (Vec::new(), Vec::new());
        match exit {
            Exit::Halted(partitions) => {
                halted.extend(partitions.into_iter().map(|(partition, reason)| Halted {
                    topic: partition.topic.to_string(),
                    partition: partition.partition.0,
                    reason,
                }));
            }
            Exit::OpenTransactions(partitions) => {
                open_transactions
                    .extend(partitions.iter().flat_map(|(partition, open)| opens(partition, open)));
            }
            Exit::Done
            | Exit::Unreachable(..)
            | Exit::Unsettled(_)
            | Exit::NotAuthorized(..)
            | Exit::Configuration(_)
            | Exit::Replaced(_)
            | Exit::Internal(_) => {}
        }
        Outcome {
            flow: flow.into(),
            exit_code: code as u8,
            result,
            message,
            topics,
            records_settled: report.records_settled,
            bytes_settled: report.bytes_settled,
            halted,
            open_transactions,
            code,
        }
    }

    /// The message and what it speaks of, a line each.
    pub(crate) fn text(&self) -> String {
        let halted = self.halted.iter().map(|it| format!("{}/{}: {}", it.topic, it.partition, it.reason));
        let open = self.open_transactions.iter().map(|it| {
            let producer = it
                .producer_id
                .map_or_else(|| "of an unknown producer".into(), |id| format!("of producer id {id}"));
            let first = it.first_offset.map_or_else(String::new, |offset| format!(" since offset {offset}"));
            format!("{}/{}: a transaction {producer} is open{first}", it.topic, it.partition)
        });
        std::iter::once(self.message.clone()).chain(halted).chain(open).collect::<Vec<_>>().join("\n")
    }

    /// Where to read on, if anywhere.
    pub(crate) fn help(&self) -> Option<&'static str> {
        (!self.halted.is_empty()).then_some("docs/halts.md says for each reason what it means and what to do")
    }
}

/// A partition that is held back without anybody known to do it is listed too.
fn opens(partition: &SourcePartition, open: &[OpenTransaction]) -> Vec<Open> {
    let row = |first_offset, producer_id| Open {
        topic: partition.topic.to_string(),
        partition: partition.partition.0,
        first_offset,
        producer_id,
    };
    if open.is_empty() {
        return vec![row(None, None)];
    }
    open.iter().map(|open| row(open.first, open.producer_id)).collect()
}

fn words(
    exit: &Exit,
    topics: Option<usize>,
    servers: impl Fn(Side) -> String,
) -> (Code, &'static str, String) {
    match exit {
        Exit::Done if topics == Some(0) => {
            (Code::Done, "done", "done: no source topic matches, so there was nothing to copy".into())
        }
        Exit::Done => (Code::Done, "done", "done: everything asked for is copied and settled".into()),
        Exit::Halted(partitions) => {
            let message =
                format!("{} halted; the others are copied and settled", count(partitions.len(), "partition"));
            (Code::Data, "halted", message)
        }
        Exit::OpenTransactions(partitions) => {
            let message = format!(
                "everything readable is copied; {} held back by open source transactions",
                count(partitions.len(), "partition")
            );
            (Code::TryAgain, "open-transactions", message)
        }
        Exit::Unreachable(side, why) => {
            let message =
                format!("the {side} cluster cannot be reached at {}: {}", servers(*side), bare(why));
            (Code::Unreachable, "unreachable", message)
        }
        Exit::Unsettled(why) => (
            Code::TryAgain,
            "unsettled",
            format!("{why}; nothing is lost: a restart goes on from the ledger"),
        ),
        Exit::NotAuthorized(side, trouble) => {
            // A cluster refuses other things than permission too, and only permission is mended by an ACL.
            let code = Code::from(trouble);
            let result = if code == Code::NotAuthorized { "not-authorized" } else { "refused" };
            (code, result, refused(*side, trouble))
        }
        Exit::Configuration(why) => (Code::Configuration, "configuration", why.clone()),
        // It says already that another process runs under this one's id.
        Exit::Replaced(why) => (Code::Configuration, "replaced", why.clone()),
        Exit::Internal(why) => (Code::Internal, "internal", why.clone()),
    }
}

/// A trouble's own words begin with what the message around them says already.
fn bare(why: &str) -> &str {
    why.strip_prefix("unreachable: ").unwrap_or(why)
}

fn refused(side: Side, trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotAuthorized { resource, operation } => {
            format!("the {side} cluster refuses {operation} on {resource}: add an ACL that allows it")
        }
        other => format!("the {side} cluster: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn outcome(exit: Exit) -> Outcome {
        Outcome::new("f", exit, &Report::default(), Some(1), |_| "host:1".into())
    }

    #[test]
    fn every_exit_has_its_code() {
        let acl = Trouble::NotAuthorized { resource: "Topic t".into(), operation: "Read".into() };
        for (exit, code) in [
            (Exit::Done, 0),
            (Exit::Halted(BTreeMap::new()), 65),
            (Exit::OpenTransactions(BTreeMap::new()), 75),
            (Exit::Unreachable(Side::Source, "x".into()), 69),
            (Exit::Unsettled("x".into()), 75),
            (Exit::NotAuthorized(Side::Target, acl), 77),
            (Exit::Configuration("x".into()), 78),
            (Exit::Replaced("x".into()), 78),
            (Exit::Internal("x".into()), 70),
        ] {
            assert_eq!(outcome(exit.clone()).exit_code, code, "{exit:?}");
        }
    }

    #[test]
    fn a_run_that_matched_nothing_says_so() {
        let done = |topics| Outcome::new("f", Exit::Done, &Report::default(), topics, |_| String::new());
        assert_eq!(done(Some(0)).message, "done: no source topic matches, so there was nothing to copy");
        assert_eq!(done(Some(0)).exit_code, 0);
        assert_eq!(done(Some(2)).message, done(None).message);
    }

    #[test]
    fn a_refusal_that_no_acl_would_lift_is_not_77() {
        let trouble = Trouble::Refused("the session timeout is out of range".into());
        let outcome = outcome(Exit::NotAuthorized(Side::Target, trouble));
        assert_eq!((outcome.exit_code, outcome.result), (78, "refused"));
        assert!(!outcome.text().contains("ACL"), "{}", outcome.text());
    }

    #[test]
    fn the_manual_has_a_row_for_every_reason_to_halt() {
        use verbatim_core::ledger::HaltReason::{self, *};
        const MANUAL: &str = include_str!("../../../docs/halts.md");
        let all = [
            Gap,
            Truncated,
            Recreated,
            Deleted,
            Oversized,
            Refused,
            Unsendable,
            Unreadable,
            NotAuthorized,
            Torn,
            RolledBack,
            Unfit,
        ];
        // Names every reason, so that a new one does not compile until it stands above too.
        let is_listed = |reason: HaltReason| match reason {
            Gap | Truncated | Recreated | Deleted | Oversized | Refused | Unsendable | Unreadable
            | NotAuthorized | Torn | RolledBack | Unfit => all.contains(&reason),
        };
        for reason in all {
            assert!(is_listed(reason) && MANUAL.contains(&format!("\n| `{reason}` | ")), "{reason}");
        }
    }

    #[test]
    fn partitions_are_named_with_what_stops_them() {
        let halted_at_5 =
            || BTreeMap::from([(SourcePartition::new("t", 3), "gap at offset 5: gone".to_string())]);
        assert_eq!(
            outcome(Exit::Halted(halted_at_5())).text(),
            "1 partition halted; the others are copied and settled\nt/3: gap at offset 5: gone"
        );
        assert!(
            outcome(Exit::Halted(halted_at_5())).help().is_some_and(|help| help.contains("docs/halts.md"))
        );
        assert_eq!(outcome(Exit::Done).help(), None);
        let open = OpenTransaction { first: Some(SourceOffset(7)), producer_id: Some(42) };
        let open = BTreeMap::from([
            (SourcePartition::new("t", 0), vec![open]),
            (SourcePartition::new("t", 1), vec![]),
        ]);
        let text = outcome(Exit::OpenTransactions(open)).text();
        assert!(text.contains("t/0: a transaction of producer id 42 is open since offset 7"), "{text}");
        assert!(text.ends_with("t/1: a transaction of an unknown producer is open"), "{text}");
    }

    #[test]
    fn missing_permissions_name_the_acl() {
        let acl = Trouble::NotAuthorized { resource: "Topic t".into(), operation: "Write".into() };
        let text = outcome(Exit::NotAuthorized(Side::Target, acl)).text();
        assert_eq!(text, "the target cluster refuses Write on Topic t: add an ACL that allows it");
        let text = outcome(Exit::Unreachable(Side::Target, "unreachable: no broker".into())).text();
        assert_eq!(text, "the target cluster cannot be reached at host:1: no broker");
    }
}
