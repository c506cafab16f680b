//! What is generated from the registry: the schema, the pages, the types. And what must agree with it: the goldens.

#[path = "../support/mod.rs"]
mod support;

mod charter;
mod decisions;
mod envelopes;
mod failures;
mod generated;
mod goldens;
mod live;
mod pages;
mod produced;
mod pydantic_ai;
mod python;
mod shapes;
mod translation;
mod typescript;
