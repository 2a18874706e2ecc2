//! The number under which a record is produced, by which its delivery report is known.

use verbatim_core::batch::BatchId;

/// What a produced record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// The ledger records of the transaction, which are one batch.
    Ledger,
    Batch(BatchId),
}

impl Tag {
    pub(super) fn to_number(self) -> usize {
        match self {
            Tag::Ledger => 0,
            Tag::Batch(BatchId(id)) => usize::try_from(id + 1).expect("64 bits"),
        }
    }

    pub(super) fn of_number(number: usize) -> Tag {
        match number {
            0 => Tag::Ledger,
            number => Tag::Batch(BatchId(number as u64 - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_comes_back_and_no_two_share_a_number() {
        let tags =
            [Tag::Ledger, Tag::Batch(BatchId(0)), Tag::Batch(BatchId(1)), Tag::Batch(BatchId(1 << 40))];
        for tag in tags {
            assert_eq!(Tag::of_number(tag.to_number()), tag);
        }
        assert_ne!(Tag::Ledger.to_number(), Tag::Batch(BatchId(0)).to_number());
    }
}
