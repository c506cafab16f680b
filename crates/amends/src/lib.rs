//! Amends as a library: the gateway inside a program ([`embed`]), the command line's parts, and the demo shop.

pub mod attacks;
pub mod cli;
pub mod embed;
pub mod shop;
