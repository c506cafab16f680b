//! The proof of Amends: a seeded world around the real dispatcher and a real ledger.
//!
//! A [`World`] runs in virtual time. Agents call, lose their connections, repeat, cancel and undo; people answer at once,
//! late, twice or never; what calls are based on changes; upstreams lose requests and answers, apply effects late, crash
//! and forget; nodes crash, stall and are fenced; the ledger is away for a while.
//! In some worlds agents also walk through machines: they take actions, legal ones and others, and repeat them. The world knows the truth, since it keeps the book of every effect, and the [`Watch`](watch::Watch) holds what the
//! dispatcher promises against it after every step.
//!
//! The order to read in: where chance comes from ([`chance`]), the tools ([`catalog`]), the upstreams that break
//! ([`upstream`]), what the ledger keeps beside traces and claims ([`tokens`], [`queue`]), the driver that handles, appends and
//! only then acts ([`driver`]), the agents ([`agent`]), the world that joins them, and the [`watch`] over all of it.

pub mod chance;

pub mod catalog;

pub mod upstream;

pub mod tokens;

pub mod queue;

pub mod driver;

pub mod agent;

pub mod flaw;

pub mod world;

pub mod watch;

pub mod many;

pub mod drill;

pub mod golden;

pub mod scenario;

pub use flaw::Flaw;
pub use watch::Broken;
pub use world::{APPROVALS_FROM, Summary, WALKS_FROM, World};
