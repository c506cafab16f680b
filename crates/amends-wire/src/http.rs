//! Plain HTTP APIs: what their answers say of an attempt.

pub mod classify;
