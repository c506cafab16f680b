//! The queue before the thread that writes.
//!
//! Waking a thread costs about as much as a small write. So what nobody waits for wakes nobody while the writer looks by itself
//! before long: after a write it dozes for as long as such things may be held back, and only then does it sleep.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::writer::Work;
use crate::error::Error;

/// How much may wait to be written.
const QUEUE_MAX: usize = 65_536;

/// How long what nobody waits for is held back.
const SOON: Duration = Duration::from_millis(5);

/// How much is written in one transaction. Other processes wait meanwhile.
const BATCH_MAX: usize = 1_024;

/// What waits to be written, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Told when the writer is to look.
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Work>,
    rest: Rest,
    /// Whether nothing comes any more.
    closed: bool,
    /// Whether nobody writes any more.
    deserted: bool,
}

/// What the writer does while nothing has haste.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    /// It is awake, and looks before it rests.
    #[default]
    None,
    /// It looks by itself before long.
    Doze,
    /// It looks when it is told to.
    Sleep,
}

impl Queue {
    /// Puts something in. If nobody writes any more, its answer is dropped with it, and whoever waits for that is told.
    pub(super) fn put(&self, work: Work) {
        let mut state = self.lock();
        if state.waiting.len() >= QUEUE_MAX {
            drop(state);
            return work.fail(&Error::Unavailable { reason: "its queue is full".into() });
        }
        if state.deserted {
            return;
        }
        let wakes = match state.rest {
            Rest::None => false,
            Rest::Doze => work.is_hurried(),
            Rest::Sleep => true,
        };
        state.waiting.push_back(work);
        if wakes {
            state.rest = Rest::None;
            drop(state);
            self.news.notify_one();
        }
    }

    /// Waits for the next things to write. Nothing once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Vec<Work>> {
        let mut state = self.lock();
        let mut until = Instant::now() + SOON;
        // Ends: something has haste, or what has none was held back for long enough, or the queue is closed.
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let hurried = state.waiting.iter().any(Work::is_hurried);
            let full = state.waiting.len() >= BATCH_MAX;
            if hurried || full || state.closed || (left.is_zero() && !state.waiting.is_empty()) {
                let batch: Vec<Work> = {
                    let end = state.waiting.len().min(BATCH_MAX);
                    state.waiting.drain(..end).collect()
                };
                return (!batch.is_empty()).then_some(batch);
            }
            if left.is_zero() {
                state.rest = Rest::Sleep;
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                until = Instant::now() + SOON;
            } else {
                state.rest = Rest::Doze;
                let (woken, _) = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                state = woken;
            }
            state.rest = Rest::None;
        }
    }

    /// Nothing comes any more: what waits is written, and that is all.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.news.notify_one();
    }

    /// Nobody writes any more: what waits is dropped, and whoever waits for it is told.
    pub(super) fn desert(&self) {
        let dropped = {
            let mut state = self.lock();
            state.deserted = true;
            std::mem::take(&mut state.waiting)
        };
        drop(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use amends_core::Timestamp;
    use tokio::sync::oneshot;

    use super::*;

    fn work() -> (Work, oneshot::Receiver<Result<Timestamp, Error>>) {
        let (answer, fate) = oneshot::channel();
        (Work::Heartbeat(Timestamp::from_ms(1), answer), fate)
    }

    #[test]
    fn what_waits_when_it_is_closed_is_still_taken() {
        let queue = Queue::default();
        queue.put(work().0);
        queue.put(work().0);
        queue.close();
        assert_eq!(queue.take().map(|batch| batch.len()), Some(2));
        assert!(queue.take().is_none());
    }

    #[test]
    fn whoever_rests_is_woken_by_what_has_haste() {
        let queue = Arc::new(Queue::default());
        let (took_to, took) = std::sync::mpsc::channel();
        let taker = queue.clone();
        let thread = thread::spawn(move || {
            while let Some(batch) = taker.take() {
                took_to.send(batch.len()).unwrap();
            }
        });
        for rest in [Rest::Doze, Rest::Sleep, Rest::Doze, Rest::Sleep] {
            // A doze may be over before it is seen: then it sleeps.
            while !matches!(queue.lock().rest, now if now == rest || now == Rest::Sleep) {
                thread::yield_now();
            }
            queue.put(work().0);
            assert_eq!(took.recv_timeout(Duration::from_secs(60)), Ok(1));
        }
        queue.close();
        thread.join().unwrap();
    }

    #[test]
    fn whoever_waits_for_what_nobody_writes_is_told() {
        let queue = Queue::default();
        let (before, mut told) = work();
        queue.put(before);
        queue.desert();
        assert!(matches!(told.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        let (after, mut told) = work();
        queue.put(after);
        assert!(matches!(told.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
