//! The runs that go on in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::Principal;
use tokio::sync::watch;

/// The runs that go on in this process, at most one for each thread of a principal.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<HashMap<Thread, Going>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    principal: Principal,
    name: String,
}

#[derive(Debug)]
struct Going {
    run: String,
    stop: watch::Sender<bool>,
}

/// The place of a run among those that go on. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Place {
    runs: Arc<Runs>,
    thread: Thread,
    stopped: watch::Receiver<bool>,
}

impl Runs {
    /// A place for a run; nothing while another one goes on in its thread.
    pub(crate) fn begin(self: &Arc<Self>, principal: &Principal, thread: &str, run: &str) -> Option<Place> {
        let thread = Thread { principal: principal.clone(), name: thread.to_owned() };
        let mut going = self.going();
        if going.contains_key(&thread) {
            return None;
        }
        let (stop, stopped) = watch::channel(false);
        going.insert(thread.clone(), Going { run: run.to_owned(), stop });
        Some(Place { runs: self.clone(), thread, stopped })
    }

    /// Stops what runs in a thread of that principal, if it is that run. It says whether there was anything to stop.
    pub(crate) fn stop(&self, principal: &Principal, thread: &str, run: Option<&str>) -> bool {
        let thread = Thread { principal: principal.clone(), name: thread.to_owned() };
        match self.going().get(&thread).filter(|going| run.is_none_or(|run| run == going.run)) {
            Some(going) => going.stop.send(true).is_ok(),
            None => false,
        }
    }

    fn going(&self) -> MutexGuard<'_, HashMap<Thread, Going>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether somebody wants the run stopped.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Waits until somebody wants the run stopped.
    pub(super) async fn stopped(&mut self) {
        if self.stopped.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runs.going().remove(&self.thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_run_at_a_time_and_only_its_principal_stops_it() {
        let runs = Arc::new(Runs::default());
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let place = runs.begin(&ada, "t", "r").unwrap();
        assert!(runs.begin(&ada, "t", "r2").is_none());
        let others = runs.begin(&bob, "t", "r").unwrap();
        assert!(!runs.stop(&bob, "u", None) && !runs.stop(&ada, "t", Some("r2")));
        assert!(runs.stop(&ada, "t", Some("r")) && place.is_stopped() && !others.is_stopped());
        drop(place);
        assert!(!runs.stop(&ada, "t", None));
        assert!(runs.begin(&ada, "t", "r2").is_some());
    }
}
