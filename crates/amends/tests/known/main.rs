//! Servers and clients that are widely used, none of them ours: what a client gets from a server directly, it gets through
//! Amends.

#[path = "../many/place.rs"]
#[allow(dead_code, reason = "the tests of many upstreams use more of it")]
mod bare;
#[path = "../support/mod.rs"]
mod support;

mod everything;
mod inspector;
mod servers;
mod tasks;
mod together;
