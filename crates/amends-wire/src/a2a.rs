//! A2A, without sockets: calls out of messages, tasks out of traces, and what other agents' tasks say.
//!
//! The order to read in: the [`version`]s and the states they know ([`state`]), what an agent sends ([`message`]), what it is
//! told when there is no task ([`error`]), the life of a task as its trace tells it ([`mod@life`]), tasks as messages
//! ([`reply`]), the [`card`], what 0.3 wrote over plain HTTP ([`old`]); then the other side: agents that we call ([`agent`]), and what their answers say
//! ([`classify`]).

pub mod agent;
pub mod card;
pub mod classify;
pub mod error;
pub mod life;
pub mod message;
pub mod old;
pub mod reply;
pub mod state;
pub mod version;

pub use error::{Refused, Trouble};
pub use life::{Life, life};
pub use message::{Incoming, Wanted};
pub use reply::{Part, TaskView};
pub use state::State;
pub use version::Version;
