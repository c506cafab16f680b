//! Where a walk is, what may be done there, and what came of a move: what the doors show of a walk.

pub use amends_wire::mcp::steps::{Moved, Next, View, Waits};
