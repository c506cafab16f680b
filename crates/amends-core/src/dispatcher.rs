//! One session: it takes one input at a time and says what happened and what to do.

pub mod cancel;

use crate::id::CallId;
