//! The same traffic, sent to a server directly and through Amends, compared byte for byte in both directions.
//!
//! The server is written without an SDK and so is the client here, so that every byte is known. What Amends says that
//! it rewrites is undone first (`undo.rs`); nothing else may differ.

#[path = "../edges/pipe.rs"]
#[allow(dead_code, reason = "the edges use the rest of it")]
mod pipe;
#[path = "../support/mod.rs"]
mod support;

mod cancel;
mod compare;
mod pairings;
mod peer;
mod resume;
mod traffic;
mod undo;
