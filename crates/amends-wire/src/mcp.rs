//! MCP, both eras of it: what agents ask, what upstreams answer, and what we say.

pub mod call;
pub mod classify;
pub mod dialect;
pub mod era;
pub mod http;
pub mod inputs;
pub mod lists;
pub mod mirror;
pub mod reply;
pub mod shape;
pub mod steps;
pub mod tasks;
pub mod text;
pub mod tools;
pub mod uri;

pub use call::{CallError, Decision, Edits, Meta, ProgressToken, ToolCall, progress_ticket, with_deadline};
pub use classify::{Classified, ResultKind, Signal, TranslateRule};
pub use dialect::Dialect;
pub use era::Era;
pub use inputs::{Askable, InputRequired, Question, Returned};
pub use reply::{ClientTraits, Receipt};
pub use tools::{Hints, ToolList, ToolListing};
