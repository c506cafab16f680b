//! The AG-UI door, run by the protocol's own client. Every frame of every stream is held against its schemas.

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod bad_input;
mod interrupts;
mod machine;
mod runs;
mod stops;
mod through;
