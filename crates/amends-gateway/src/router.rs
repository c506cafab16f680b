//! Many upstreams behind one door: which of them a request is for, under which name, and what they offer together.

pub mod capabilities;
pub mod names;
pub mod page;
pub mod pattern;
mod route;

pub use pattern::Patterns;
pub use route::{Route, alone, route};
