//! How instances end, in the oracle's words.

use crate::oracle::Ended;
use verbatim_core::Exit;

pub fn ended(exit: &Exit) -> Ended {
    match exit {
        Exit::Done => Ended::Done,
        Exit::Halted(_) => Ended::Halted,
        Exit::OpenTransactions(_) => Ended::OpenTransactions,
        Exit::Unreachable(..) => Ended::Unreachable,
        Exit::Unsettled(_) => Ended::Unsettled,
        Exit::NotAuthorized(..) => Ended::NotAuthorized,
        Exit::Configuration(_) => Ended::Configuration,
        Exit::Replaced(_) => Ended::Replaced,
        Exit::Internal(_) => Ended::Internal,
    }
}
