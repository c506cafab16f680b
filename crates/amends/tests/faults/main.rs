//! Failures through the real binary and real clients, counted in the shop's book.

#[path = "../support/mod.rs"]
mod support;

mod again;
mod approval;
mod clock;
mod conflict;
mod crash;
mod evidence;
mod load;
mod lost;
mod malformed;
mod object;
mod people;
mod policy;
mod questions;
mod repeat;
mod restraint;
mod reversal;
mod stall;
mod status;
mod store;
mod tasks;
mod webhook;

/// A fault script for one tool and order.
fn faults(tool: &str, order: &str, attempts: &[&str]) -> String {
    more_faults(tool, order, attempts, "")
}

/// The same with further settings of the fault.
fn more_faults(tool: &str, order: &str, attempts: &[&str], more: &str) -> String {
    format!("[[fault]]\ntool = \"{tool}\"\nwhen = {{ order = \"{order}\" }}\nattempts = {attempts:?}\n{more}\n")
}
