use crate::failure::Trouble;
use std::collections::BTreeMap;

/// A partition's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent<O> {
    pub start: O,
    /// Where a read_committed reader's view ends.
    pub last_stable: O,
    pub high_watermark: O,
}

/// The ends of partitions, or why each cannot be told.
pub type Extents<P, O> = BTreeMap<P, Result<Extent<O>, Trouble>>;
