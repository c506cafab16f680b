//! What is seen from outside, through the real binary: metrics, traces, and tools that are not what they were.

#[path = "../support/mod.rs"]
mod support;

mod collector;
mod metrics;
mod pins;
mod traces;
