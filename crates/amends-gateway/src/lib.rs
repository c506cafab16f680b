//! The gateway: it acts. It listens, calls upstreams and keeps time; every decision is the core's.

pub mod catalogue;
pub mod clock;
pub mod config;
pub mod door;
pub mod driver;
pub mod form;
pub mod gateway;
pub mod hindsight;
pub mod hub;
pub mod identity;
pub mod key;
pub mod listing;
mod live;
pub mod metrics;
pub mod mint;
pub mod pin;
pub mod policy;
pub mod proven;
mod pulse;
pub mod reload;
mod request_state;
pub mod restraint;
pub mod router;
pub mod rulebook;
pub mod sign_in;
pub mod signer;
pub mod spending;
pub mod telemetry;
pub mod told;
pub mod upstream;
pub mod walks;
mod webhook;
mod witness;

pub use config::{Config, ConfigError};
pub use gateway::{Gateway, StartError, open_ledger};
pub use signer::{SignError, Signer};
