//! Many upstreams behind one door, through the real binary: every method finds its upstream, one that dies takes nobody else with
//! it, and what upstreams say of their own accord reaches the clients.

#[path = "../support/mod.rs"]
mod support;

mod death;
mod health;
mod lists;
mod news;
mod place;
mod private;
mod routing;
mod sdks;
mod tasks;
