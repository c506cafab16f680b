//! The public conformance suite: what it finds in a server or a client directly, it finds through Amends.
//!
//! Nothing is expected by number. The suite is run twice, and the two runs are compared check by check.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod server;
mod suite;
