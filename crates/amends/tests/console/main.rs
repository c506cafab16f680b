//! The console and the API behind it: pages in a real browser, answers against their description, and whoever may not.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod attacked;
mod command_line;
mod served;
mod stories;
