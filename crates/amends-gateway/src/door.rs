//! Doors: the protocols we listen on. A door reads, asks the session, and renders; it knows no rule about failures.

pub(crate) mod agui;
pub mod http;
pub mod inside;
pub mod mcp;
pub mod stdio;
mod waiting;
pub(crate) mod walk;
