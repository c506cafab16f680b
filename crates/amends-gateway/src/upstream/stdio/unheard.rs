//! What a child said of its own accord and nobody has passed on yet.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// How much may wait to be passed on to an agent; a child that says more is not read until there is room.
const WAITING_MAX: u64 = 256;

/// Counts what a child said of its own accord, so that it stays before the answers it came before, and within bounds.
#[derive(Debug)]
pub(super) struct Unheard {
    said: AtomicU64,
    passed: watch::Sender<u64>,
}

impl Default for Unheard {
    fn default() -> Self {
        Self { said: AtomicU64::new(0), passed: watch::Sender::new(0) }
    }
}

impl Unheard {
    /// Waits for room for one thing more, and counts it.
    pub(super) async fn say(&self) {
        let said = self.said.load(Ordering::Acquire);
        let full = |passed: u64| said.saturating_sub(passed) >= WAITING_MAX;
        if full(*self.passed.borrow()) {
            // The sender lives as long as we do.
            let _ = self.passed.subscribe().wait_for(|passed| !full(*passed)).await;
        }
        self.said.store(said + 1, Ordering::Release);
    }

    /// One thing has been passed on.
    pub(super) fn passed_on(&self) {
        self.passed.send_modify(|passed| *passed += 1);
    }

    /// Waits until all that was said so far has been passed on.
    pub(super) async fn caught_up(&self) {
        let said = self.said.load(Ordering::Acquire);
        if *self.passed.borrow() < said {
            let _ = self.passed.subscribe().wait_for(|passed| *passed >= said).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_waits_for_what_was_said_before_it_and_a_flood_for_room() {
        let unheard = Unheard::default();
        unheard.caught_up().await;
        for _ in 0..WAITING_MAX {
            unheard.say().await;
        }
        let at_once = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(at_once, unheard.say()).await.is_err());
        assert!(tokio::time::timeout(at_once, unheard.caught_up()).await.is_err());
        unheard.passed_on();
        unheard.say().await;
        (0..WAITING_MAX).for_each(|_| unheard.passed_on());
        unheard.caught_up().await;
    }
}
