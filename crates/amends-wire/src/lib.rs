//! What Amends says and hears, without sockets: messages to and from the core's types.
//!
//! Everything here is a pure function over bytes. What we do not interpret keeps its bytes: messages are read as slices
//! ([`Message`], [`Object`]) and changed by splicing ([`Splice`]), never written anew. The world is turned into a
//! [`Report`](amends_core::Report) in one place per protocol (`classify.rs`), and an
//! [`Envelope`](amends_core::Envelope) into a message in one place per protocol (`reply.rs`).
//!
//! The order to read in: how a text is looked at ([`scan`], [`object`], [`message`], [`splice`], [`twice`]), what a tool declares
//! ([`schema`]), what upstreams say of themselves ([`problem`], [`status`]), and then the protocols ([`mcp`], [`http`], [`a2a`],
//! [`agui`]).

pub mod a2a;
pub mod agui;
pub mod http;
pub mod mcp;
pub mod message;
pub mod object;
pub mod problem;
pub mod rate_limit;
pub mod scan;
pub mod schema;
pub mod splice;
pub mod status;
pub mod twice;

pub use message::{Malformed, Message, RpcError};
pub use object::Object;
pub use problem::Problem;
pub use scan::{Scanned, Scanner, TooDeep};
pub use schema::{Schema, SchemaError};
pub use splice::{Splice, SpliceError};
