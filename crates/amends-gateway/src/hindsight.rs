//! What happened, decided a second time: by the rules it had, or under a change of them.

mod change;
mod decided;
mod table;
mod tally;
mod walk;

pub use change::Change;
pub use decided::{Again, Otherwise, Recorded, end_in_words, events_of, first_difference};
pub use table::{json, text};
pub use tally::{Named, Observed, Tally, WhatIf};
pub use walk::walk;
