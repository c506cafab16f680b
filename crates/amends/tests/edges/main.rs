//! The edges through the real binary: bad input, fidelity, cancellation, wrapped servers, dying upstreams.

#[path = "../support/mod.rs"]
mod support;
