//! Sub-machines of the core beside models so simple that they can be seen to be right.

mod cursor;
mod lanes;
mod ledger;
