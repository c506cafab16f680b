//! Who calls, through the real binary: tokens, an issuer's tokens, and what is bound to whoever showed them.

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod bound;
mod clients;
mod house;
mod issuer;
mod listening;
mod oauth;
mod passthrough;
mod rotation;
mod tenants;
mod tokens;
