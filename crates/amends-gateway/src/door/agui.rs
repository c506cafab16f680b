//! The AG-UI door: runs a plan of calls, or moves through a machine, and tells how it goes as events.
//!
//! A run never waits for a person: it ends with what is asked, and the next run on the thread goes on from there. What there is to
//! do is carried by the client, in the thread's state; what was done is known by the ledger, and found again as any repeat is.

mod answers;
mod elsewhere;
mod order;
mod questions;
mod run;
mod runs;
mod step;
mod teller;

pub(crate) use elsewhere::stop_elsewhere;
pub(crate) use order::{Order, prepare};
pub(crate) use run::run;
pub(crate) use runs::{NoPlace, Place, Runs};

const DOOR: &str = "agui";
