//! The AG-UI door, run by the protocol's own client. Every frame of every stream is held against its schemas.

#[path = "../../../../tests/postgres/mod.rs"]
mod postgres_server;
#[path = "../support/mod.rs"]
mod support;

mod agent;
mod bad_input;
mod chain;
mod ends;
mod forms;
mod interrupts;
mod machine;
mod nodes;
mod runs;
mod stops;
mod through;
