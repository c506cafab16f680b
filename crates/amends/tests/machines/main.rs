//! Machines as agents meet them, through the real binary: what is listed, what is taken and refused, what can be read.

#[path = "../eras/asking.rs"]
#[allow(dead_code, reason = "the tests of eras use more of it")]
mod asking;
#[path = "../many/place.rs"]
#[allow(dead_code, reason = "the tests of many upstreams use more of it")]
mod bare;
#[path = "../support/mod.rs"]
mod support;

mod alone;
mod begun;
mod checked;
mod command_line;
mod dialect;
mod drift;
mod ends;
mod examples;
mod followed;
mod kept;
mod late;
mod listed;
mod many;
mod moves;
mod numbers;
mod once;
mod order;
mod private;
mod recover;
mod refusals;
mod replayed;
mod resources;
mod served;
mod stages;
mod till;
mod time;
mod together;
mod told;
mod undone;
mod waits;
mod within;
mod wrapped;
