//! Hostile bytes for everything that reads bytes, and for the dispatcher.
//!
//! A target is a function that takes bytes and panics where a promise is broken. [`TARGETS`] lists them all. `tests/short`
//! runs each for a moment over its corpus; `guided` hands the same functions to libFuzzer. docs/testing.md says how.
//!
//! The order to read in: how bytes become choices ([`bytes`]); what reads messages ([`scan`], [`lines`], [`events`],
//! [`message`], [`tools`], [`call`], [`steps`]); what is made of them ([`classify`], [`schema`], [`envelope`]); what an operator writes
//! ([`config`], [`expression`]); what is masked ([`privacy`]); and what decides ([`trace`], [`dispatcher`], [`walk`]).

pub mod bytes;
pub mod call;
pub mod classify;
pub mod config;
pub mod dispatcher;
pub mod envelope;
pub mod events;
pub mod expression;
pub mod lines;
pub mod message;
pub mod privacy;
pub mod scan;
pub mod schema;
pub mod steps;
pub mod tools;
pub mod trace;
pub mod walk;

/// A function that takes any bytes and panics where a promise is broken.
pub type Target = fn(&[u8]);

/// Every target, by the name of its module and of its folder in `corpus`.
pub const TARGETS: [(&str, Target); 16] = [
    ("scan", scan::target),
    ("lines", lines::target),
    ("events", events::target),
    ("message", message::target),
    ("tools", tools::target),
    ("call", call::target),
    ("steps", steps::target),
    ("classify", classify::target),
    ("schema", schema::target),
    ("envelope", envelope::target),
    ("config", config::target),
    ("expression", expression::target),
    ("privacy", privacy::target),
    ("trace", trace::target),
    ("dispatcher", dispatcher::target),
    ("walk", walk::target),
];
