//! What was recorded just now, for whoever watches: the facts of recorded steps, numbered, the newest of them kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use amends_core::{CallId, Event, SessionId, Timestamp};
use tokio::sync::watch;

use crate::mint;
use crate::told;

/// How many facts are kept for somebody who comes back.
const KEPT_MAX: usize = 4096;

/// What was recorded just now by this process. Nothing is kept before somebody watches for the first time.
#[derive(Debug)]
pub(crate) struct Live {
    /// Tells this process from the one before it.
    run: String,
    wanted: AtomicBool,
    held: Mutex<Held>,
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Held {
    /// The number of the newest fact; the first has number 1.
    newest: u64,
    kept: VecDeque<Seen>,
}

/// A fact that was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The session it is of.
    pub(crate) session: SessionId,
    /// Its place in the session.
    pub(crate) seq: u64,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// Its name.
    pub(crate) event: &'static str,
    /// The call it is about.
    pub(crate) call: Option<CallId>,
    /// It in a line.
    pub(crate) words: String,
}

/// Where somebody is who watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// After the fact of that number.
    After(u64),
    /// Somewhere that is not known here: another process, or too long ago. What happened since is on the ledger.
    Lost,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            run: mint::token(),
            wanted: AtomicBool::new(false),
            held: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }
}

impl Seen {
    /// What is told of an event.
    pub(crate) fn of(session: &SessionId, event: &Event) -> Self {
        let (name, words) = told::sentence(event);
        let call = event.fact.call().cloned();
        Self { session: session.clone(), seq: event.seq, at: event.at, event: name, call, words }
    }
}

impl Live {
    /// Whether anybody ever watched.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Keeps facts that were recorded, and wakes whoever watches.
    pub(crate) fn tell(&self, seen: Vec<Seen>) {
        if seen.is_empty() {
            return;
        }
        let mut held = self.held();
        for one in seen {
            held.newest += 1;
            if held.kept.len() == KEPT_MAX {
                held.kept.pop_front();
            }
            held.kept.push_back(one);
        }
        self.newest.send_replace(held.newest);
    }

    /// Somebody watches from now on; what they saw last is named as [`Live::name`] named it.
    pub(crate) fn watch(&self, last: Option<&str>) -> (From, watch::Receiver<u64>) {
        self.wanted.store(true, Ordering::Relaxed);
        let newest = self.newest.subscribe();
        let held = self.held();
        let oldest = held.newest - held.kept.len() as u64;
        let from = match last.map(|last| last.split_once('.').filter(|(run, _)| *run == self.run)) {
            None => From::After(held.newest),
            Some(Some((_, number))) => match number.parse() {
                Ok(number) if (oldest..=held.newest).contains(&number) => From::After(number),
                _ => From::Lost,
            },
            Some(None) => From::Lost,
        };
        (from, newest)
    }

    /// The facts after that number, at most `limit` of them, each with its number; nothing where some of them are gone.
    pub(crate) fn after(&self, number: u64, limit: usize) -> Option<Vec<(u64, Seen)>> {
        let held = self.held();
        let oldest = held.newest - held.kept.len() as u64;
        let skip = usize::try_from(number.checked_sub(oldest)?).ok()?;
        let numbered = (number + 1..).zip(held.kept.iter().skip(skip).take(limit).cloned());
        Some(numbered.collect())
    }

    /// The number of the newest fact.
    pub(crate) fn newest(&self) -> u64 {
        self.held().newest
    }

    /// What somebody is given to come back with.
    pub(crate) fn name(&self, number: u64) -> String {
        format!("{}.{number}", self.run)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(n: u64) -> Seen {
        let words = n.to_string();
        Seen { session: "s".into(), seq: n, at: Timestamp::from_ms(n), event: "ignored", call: None, words }
    }

    #[test]
    fn whoever_comes_back_gets_what_they_missed_or_is_told_that_it_is_gone() {
        let live = Live::default();
        assert!(!live.is_wanted());
        assert_eq!(live.watch(None).0, From::After(0));
        assert!(live.is_wanted());
        live.tell((1..=3).map(seen).collect());
        let missed = live.after(1, 10).unwrap();
        assert_eq!(missed.iter().map(|(n, seen)| (*n, seen.seq)).collect::<Vec<_>>(), [(2, 2), (3, 3)]);
        assert_eq!(live.watch(Some(&live.name(2))).0, From::After(2));
        assert_eq!(live.watch(None).0, From::After(3));
        for odd in ["", "x", "other.1", &live.name(9), &format!("{}.x", live.run)] {
            assert_eq!(live.watch(Some(odd)).0, From::Lost, "{odd}");
        }
        live.tell((4..=KEPT_MAX as u64 + 4).map(seen).collect());
        assert_eq!(live.watch(Some(&live.name(2))).0, From::Lost);
        assert!(live.after(2, 10).is_none());
        assert_eq!(live.after(live.newest(), 10).map(|more| more.len()), Some(0));
    }
}
