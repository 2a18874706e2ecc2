use kafka_model::{Millis, Offset};
use kafka_types::SourcePartition;
use std::fmt;

/// The promises, in the order in which a breach is named: an altered record is also a missing one, and is told
/// as altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    EqualBytes,
    NothingAborted,
    PartitionKept,
    NothingDoubled,
    OrderKept,
    NothingLost,
    LossReports,
    LedgerTrue,
    OneWriter,
    NothingPinned,
    ExitsTrue,
    StatusTrue,
    /// After the faults something is left to do and nothing happens.
    Stuck,
    /// After the faults things happen and what is left to do does not become less.
    Livelock,
}

impl Invariant {
    pub const ALL: [Invariant; 14] = [
        Invariant::EqualBytes,
        Invariant::NothingAborted,
        Invariant::PartitionKept,
        Invariant::NothingDoubled,
        Invariant::OrderKept,
        Invariant::NothingLost,
        Invariant::LossReports,
        Invariant::LedgerTrue,
        Invariant::OneWriter,
        Invariant::NothingPinned,
        Invariant::ExitsTrue,
        Invariant::StatusTrue,
        Invariant::Stuck,
        Invariant::Livelock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Invariant::EqualBytes => "equal-bytes",
            Invariant::NothingAborted => "nothing-aborted",
            Invariant::PartitionKept => "partition-kept",
            Invariant::NothingDoubled => "nothing-doubled",
            Invariant::OrderKept => "order-kept",
            Invariant::NothingLost => "nothing-lost",
            Invariant::LossReports => "loss-reports",
            Invariant::LedgerTrue => "ledger-true",
            Invariant::OneWriter => "one-writer",
            Invariant::NothingPinned => "nothing-pinned",
            Invariant::ExitsTrue => "exits-true",
            Invariant::StatusTrue => "status-true",
            Invariant::Stuck => "stuck",
            Invariant::Livelock => "livelock",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A promise that was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub at: Millis,
    /// How many events the run's trace held when it was found; 0 until somebody says.
    pub step: u64,
    pub partition: Option<SourcePartition>,
    pub source: Option<Offset>,
    pub target: Option<Offset>,
    pub text: String,
}

impl Violation {
    pub fn new(invariant: Invariant, at: Millis, text: impl Into<String>) -> Violation {
        Violation { invariant, at, step: 0, partition: None, source: None, target: None, text: text.into() }
    }

    #[must_use]
    pub fn in_partition(mut self, partition: &SourcePartition) -> Violation {
        self.partition = Some(partition.clone());
        self
    }

    #[must_use]
    pub fn at_source(mut self, offset: Offset) -> Violation {
        self.source = Some(offset);
        self
    }

    #[must_use]
    pub fn at_target(mut self, offset: Offset) -> Violation {
        self.target = Some(offset);
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant={}", self.invariant)?;
        if let Some(partition) = &self.partition {
            write!(f, " p={partition}")?;
        }
        if let Some(offset) = self.source {
            write!(f, " source={offset}")?;
        }
        if let Some(offset) = self.target {
            write!(f, " target={offset}")?;
        }
        write!(f, ": {}", self.text)
    }
}
