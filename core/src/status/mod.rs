//! Where each partition of a flow stands, as whoever only looks can tell: from the ledger and the source alone. What is to
//! be read for it is handed in.

mod extent;
mod row;
mod scene;

pub use extent::{Extent, Extents};
pub use row::{Row, State, age};
pub use scene::{Scene, Unread};
