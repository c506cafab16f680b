//! What an upstream asks of its agent while a call runs, over both eras of MCP, through the real binary and real clients.

#[path = "../support/mod.rs"]
mod support;

mod asking;
mod both;
mod crash;
mod more;
mod order;
mod pairings;
mod private;
mod rust;
mod signing_in;
mod state;
mod withdrawn;
mod wrap;
