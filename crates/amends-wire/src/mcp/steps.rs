//! Machines as agents see them: the tools that move one, what those tools are given, what they answer, and what can be read.
//!
//! A [`View`] is where a walk is and what may be done there. Everything here is made from one.

mod answer;
mod define;
mod guide;
mod history;
mod names;
mod read;
mod resource;
mod retake;
mod sound;
mod text;
mod view;

pub use answer::{Written, filled, next_body, state_body};
pub use define::{action_tool, definition};
pub use guide::{guided, hint};
pub use history::{Called, Entry, history};
pub use names::{Names, Tool};
pub use read::{
    EXPECT_SEQ, INPUTS_BYTES_MAX, Inputs, SESSION, SESSION_CHARS_MAX, Wanted, action_of, read, read_action, session_of,
};
pub use resource::{Address, What, content, resource, template};
pub use retake::{Retake, mended, unguarded};
pub use text::{moves, text};
pub use view::{Given, Moved, Next, Schemas, View, Waits};

#[cfg(test)]
mod goldens;
