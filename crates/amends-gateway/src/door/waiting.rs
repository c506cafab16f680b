//! A call whose answer somebody waits for at a door.

use amends_core::dispatcher::cancel::CancelReason;

use crate::driver::{Answered, CallHandle, SessionHandle};

/// A call whose answer somebody waits for. Dropped before that, it says that the agent is gone.
pub(super) struct Waiting {
    handle: CallHandle,
    over: bool,
}

impl Waiting {
    pub(super) const fn new(handle: CallHandle) -> Self {
        Self { handle, over: false }
    }

    /// Its answer, also where whoever should give it failed.
    pub(super) async fn answer(&mut self) -> Answered {
        let answered = (&mut self.handle.answer).await;
        self.over = true;
        answered.unwrap_or_else(|_| self.handle.broken())
    }

    /// The session it belongs to.
    pub(super) fn session(&self) -> &SessionHandle {
        self.handle.session()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over {
            self.handle.cancel(CancelReason::Disconnected);
        }
    }
}
