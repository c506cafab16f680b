//! What happens while a gateway runs, through the real binary: children that die, do not leave or crash in a loop, and
//! configurations that change.

#[path = "../support/mod.rs"]
mod support;

#[path = "../many/place.rs"]
#[allow(dead_code, reason = "these tests use their own part of it")]
mod place;

mod children;
mod process;
mod reload;
mod servers;
mod storm;
