//! Exit codes, by the convention of sysexits.

use std::process::ExitCode;
use verbatim_core::failure::Trouble;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Done = 0,
    /// The command line is wrong.
    Usage = 64,
    /// `verify` found a difference, or a bounded run left a halted partition.
    Data = 65,
    /// A cluster is unreachable.
    Unreachable = 69,
    /// A bug.
    Internal = 70,
    /// Nothing is wrong that time may not mend.
    TryAgain = 75,
    /// A cluster refuses what is asked.
    NotAuthorized = 77,
    /// The configuration is wrong, or does not fit the clusters.
    Configuration = 78,
}

impl Code {
    /// What must be mended first among several: reach, then permission, then configuration, then patience.
    pub(crate) fn first(codes: impl Iterator<Item = Code>) -> Code {
        let order = |code: &Code| match code {
            Code::Internal => 0,
            Code::Unreachable => 1,
            Code::NotAuthorized => 2,
            Code::Configuration => 3,
            Code::Usage => 4,
            Code::Data => 5,
            Code::TryAgain => 6,
            Code::Done => 7,
        };
        codes.min_by_key(order).unwrap_or(Code::Done)
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

impl From<&Trouble> for Code {
    fn from(trouble: &Trouble) -> Code {
        match trouble {
            Trouble::Unreachable(_) => Code::Unreachable,
            Trouble::Authentication(_) | Trouble::NotAuthorized { .. } => Code::NotAuthorized,
            Trouble::Refused(_) => Code::Configuration,
            Trouble::Passing(_) => Code::TryAgain,
        }
    }
}
