//! The drill: every tool of a configuration, met by every fault and by every pair of successive faults.
//!
//! A [`Subject`] is a tool with the rules that govern it. For each [`Fault`] a small world of its own is run in virtual time:
//! one agent with one wish, the real dispatcher over a ledger in memory, one upstream that keeps the book of what really
//! happened, and one person. The promises of the dispatcher are held against the book. The same subject and the same faults
//! always give the same [`Row`].
//!
//! The order to read in: the [`fault`]s, the [`subject`], what the agent is [`told`], the upstream and its book, the stage on
//! which they meet, the [`promise`]s, and the rows in which it all ends up.

pub mod fault;

pub mod subject;

pub mod told;

pub mod promise;

mod agent;
mod line;
mod node;
mod row;
mod stage;
mod upstream;

pub use agent::Manner;
pub use fault::Fault;
pub use promise::{Broken, Promise};
pub use row::{Asked, Drilled, Row, Story, drill};
pub use stage::Person;
pub use subject::{Assume, Scene, Subject};
pub use told::Told;

#[cfg(test)]
mod tests;
