//! Failures through the real binary and real clients, counted in the shop's book.

#[path = "../support/mod.rs"]
mod support;

mod lost;
