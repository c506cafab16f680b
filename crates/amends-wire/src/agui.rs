//! AG-UI 1.0: what a client wants run, the events that tell how it goes, and what a client carries from one run to the next.
//!
//! A run is one request and one stream. It cannot be asked anything while it goes on: where somebody must answer first, it
//! ends with what is asked ([`event::Interrupt`]), and the next run on the thread brings the answers ([`input::Answer`]).

pub mod event;
pub mod input;
pub mod plan;
pub mod reply;
