//! The queue of what is said on account of a request before its answer. It is bounded: whoever does not read loses what is said, but
//! is still asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::exchange::Aside;

/// How many bytes may wait, and how many things.
const BYTES_MAX: usize = 8 << 20;
const WAITING_MAX: usize = 8192;

/// A queue, both ends of it.
pub fn asides() -> (AsideSender, AsideReceiver) {
    let (to, from) = mpsc::unbounded_channel();
    let load = Arc::new(Load::default());
    (AsideSender { to, load: load.clone() }, AsideReceiver { from, load })
}

#[derive(Debug, Default)]
struct Load {
    bytes: AtomicUsize,
    waiting: AtomicUsize,
    lost: AtomicU64,
}

/// The end at which something is said.
#[derive(Clone, Debug)]
pub struct AsideSender {
    to: mpsc::UnboundedSender<Aside>,
    load: Arc<Load>,
}

/// Nobody hears it any more.
#[derive(Debug)]
pub struct Unheard;

impl AsideSender {
    /// Says something. Where too much waits already it is lost and counted, unless it is a question.
    pub fn send(&self, aside: Aside) -> Result<(), Unheard> {
        let size = size(&aside);
        let full = self.load.bytes.load(Ordering::Relaxed) + size > BYTES_MAX
            || self.load.waiting.load(Ordering::Relaxed) >= WAITING_MAX;
        if full && !matches!(aside, Aside::Question(_)) {
            self.load.lost.fetch_add(1, Ordering::Relaxed);
            return if self.to.is_closed() { Err(Unheard) } else { Ok(()) };
        }
        self.load.bytes.fetch_add(size, Ordering::Relaxed);
        self.load.waiting.fetch_add(1, Ordering::Relaxed);
        self.to.send(aside).map_err(|_| Unheard)
    }

    /// Whether nobody hears it any more.
    pub fn is_closed(&self) -> bool {
        self.to.is_closed()
    }
}

/// The end at which it is heard.
#[derive(Debug)]
pub struct AsideReceiver {
    from: mpsc::UnboundedReceiver<Aside>,
    load: Arc<Load>,
}

impl AsideReceiver {
    /// Waits for the next thing; nothing once nobody can say any more.
    pub async fn recv(&mut self) -> Option<Aside> {
        let aside = self.from.recv().await?;
        Some(self.taken(aside))
    }

    /// The next thing that waits.
    pub fn try_recv(&mut self) -> Result<Aside, TryRecvError> {
        let aside = self.from.try_recv()?;
        Ok(self.taken(aside))
    }

    fn taken(&self, aside: Aside) -> Aside {
        self.load.bytes.fetch_sub(size(&aside), Ordering::Relaxed);
        self.load.waiting.fetch_sub(1, Ordering::Relaxed);
        aside
    }
}

impl Drop for AsideReceiver {
    fn drop(&mut self) {
        let lost = self.load.lost.load(Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "a client did not read what was said before its answer");
        }
    }
}

fn size(aside: &Aside) -> usize {
    match aside {
        Aside::Progress(progress) => progress.0.len(),
        Aside::Notification { line, .. } => line.len(),
        Aside::Named(name) => name.len(),
        Aside::Question(asking) => asking.params.as_ref().map_or(0, String::len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Asking, Progress};

    fn progress(size: usize) -> Aside {
        Aside::Progress(Progress("x".repeat(size)))
    }

    #[tokio::test]
    async fn whoever_does_not_read_loses_what_is_said_but_no_question() {
        for size in [1, BYTES_MAX / 100] {
            let (to, mut from) = asides();
            for _ in 0..2 * WAITING_MAX {
                to.send(progress(size)).unwrap();
            }
            let (answer, _said) = tokio::sync::oneshot::channel();
            let (_withdraw, withdrawn) = tokio::sync::oneshot::channel();
            to.send(Aside::Question(Asking { method: "m".into(), params: None, answer, withdrawn })).unwrap();
            let mut heard = 0;
            while let Ok(Aside::Progress(_)) = from.try_recv() {
                heard += 1;
            }
            assert!(heard * size <= BYTES_MAX && heard <= WAITING_MAX && heard > 50, "{heard}");
            assert_eq!(to.load.lost.load(Ordering::Relaxed), 2 * WAITING_MAX as u64 - heard as u64);
            to.send(progress(size)).unwrap();
            assert!(matches!(from.recv().await, Some(Aside::Progress(_))), "there is room again");
            drop(from);
            assert!(to.is_closed() && to.send(progress(1)).is_err());
        }
    }
}
