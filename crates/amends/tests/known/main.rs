//! Servers and clients that are widely used, none of them ours: what a client gets from a server directly, it gets through
//! Amends.

#[path = "../support/mod.rs"]
mod support;

mod everything;
mod inspector;
mod servers;
mod together;
