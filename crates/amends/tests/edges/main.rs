//! The edges through the real binary: bad input, fidelity, cancellation, wrapped servers, dying upstreams.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod bad_input;
mod bridged;
mod cancel;
mod check;
mod command_line;
mod crash;
mod fidelity;
mod passthrough;
mod pipe;
mod privacy;
mod process;
mod progress;
mod recovery;
mod security;
mod servers;
mod transfer;
mod upstream_http;
mod upstream_stdio;
