//! Amends as a library: the command line's parts, and the demo shop.

pub mod attacks;
pub mod cli;
pub mod shop;
