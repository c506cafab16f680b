//! A2A through the real binary: the door with the A2A SDK's own client, and its own agents as upstreams.

#[path = "../support/mod.rs"]
mod support;

mod door;
mod kit;
mod peer;
mod upstream;
mod whose;
