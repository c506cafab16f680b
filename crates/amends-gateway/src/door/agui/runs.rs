//! The runs that go on in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amends_core::Principal;
use tokio::sync::watch;

/// How long the end of the process waits for clients to be told that their runs are over.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// The runs that go on in this process, at most one for each thread of a principal.
#[derive(Debug)]
pub(crate) struct Runs {
    secret: [u8; 32],
    /// By the address of its thread.
    going: Mutex<HashMap<String, Going>>,
    /// Whether this process ends, and every run with it.
    ending: watch::Sender<bool>,
    /// How many streams are being read.
    streams: watch::Sender<usize>,
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
    address: String,
    stopped: watch::Receiver<bool>,
    ending: watch::Receiver<bool>,
}

/// Why a run has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// Another one goes on in its thread.
    Taken,
    /// The process ends.
    Ending,
}

/// What a run is told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Somebody wants it stopped.
    Stop,
    /// The process ends.
    End,
}

/// A stream that is being read. Dropped, it was read to its end, or nobody reads it.
#[derive(Debug)]
pub(crate) struct Stream(Arc<Runs>);

impl Runs {
    /// No runs yet, in a process that knows the ledger's secret.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let (ending, streams) = (watch::Sender::new(false), watch::Sender::new(0));
        Self { secret, going: Mutex::default(), ending, streams }
    }

    /// Where letters about a thread of that principal are posted: the same at every process of the ledger, and it names neither.
    pub(crate) fn address(&self, principal: &Principal, thread: &str) -> String {
        let parts = [b"agui-thread" as &[u8], principal.as_str().as_bytes(), thread.as_bytes()];
        format!("agui:{}", amends_ledger::keyed_digest(&self.secret, &parts).as_str())
    }

    /// A place for a run.
    pub(crate) fn begin(self: &Arc<Self>, principal: &Principal, thread: &str, run: &str) -> Result<Place, NoPlace> {
        let address = self.address(principal, thread);
        let mut going = self.going();
        if *self.ending.borrow() {
            return Err(NoPlace::Ending);
        }
        if going.contains_key(&address) {
            return Err(NoPlace::Taken);
        }
        let (stop, stopped) = watch::channel(false);
        going.insert(address.clone(), Going { run: run.to_owned(), stop });
        Ok(Place { runs: self.clone(), address, stopped, ending: self.ending.subscribe() })
    }

    /// Stops what runs in a thread of that principal, if it is that run. It says whether there was anything to stop.
    pub(crate) fn stop(&self, principal: &Principal, thread: &str, run: Option<&str>) -> bool {
        self.stop_at(&self.address(principal, thread), run)
    }

    /// The same, by the thread's address.
    pub(crate) fn stop_at(&self, address: &str, run: Option<&str>) -> bool {
        match self.going().get(address).filter(|going| run.is_none_or(|run| run == going.run)) {
            Some(going) => going.stop.send(true).is_ok(),
            None => false,
        }
    }

    /// The addresses of the threads in which something runs here.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.going().keys().cloned().collect()
    }

    /// A stream begins to be read.
    pub(crate) fn stream(self: &Arc<Self>) -> Stream {
        self.streams.send_modify(|open| *open += 1);
        Stream(self.clone())
    }

    /// Ends every run, and waits until whoever listens has read so, for a bounded time.
    pub(crate) async fn end(&self) {
        {
            // Under the lock, so that none begins that does not hear of it.
            let _going = self.going();
            self.ending.send_replace(true);
        }
        let mut streams = self.streams.subscribe();
        // Somebody who does not read is not waited for.
        let _ = tokio::time::timeout(TOLD_WITHIN, streams.wait_for(|open| *open == 0)).await;
    }

    fn going(&self) -> MutexGuard<'_, HashMap<String, Going>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether somebody wants the run stopped.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Whether the process ends.
    pub(super) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Waits until the process ends.
    pub(super) async fn ended(&mut self) {
        said(&mut self.ending).await;
    }

    /// Waits for a word from outside. To one that is stopping already, only the end of the process is worth one.
    pub(super) async fn word(&mut self, stopping: bool) -> Word {
        let Self { stopped, ending, .. } = self;
        tokio::select! {
            () = said(ending) => Word::End,
            () = said(stopped), if !stopping => Word::Stop,
        }
    }
}

async fn said(word: &mut watch::Receiver<bool>) {
    if word.wait_for(|said| *said).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runs.going().remove(&self.address);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_run_at_a_time_and_only_its_principal_stops_it() {
        let runs = Arc::new(Runs::new([7; 32]));
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let place = runs.begin(&ada, "t", "r").unwrap();
        assert_eq!(runs.begin(&ada, "t", "r2").unwrap_err(), NoPlace::Taken);
        let others = runs.begin(&bob, "t", "r").unwrap();
        assert!(!runs.stop(&bob, "u", None) && !runs.stop(&ada, "t", Some("r2")));
        assert!(runs.stop(&ada, "t", Some("r")) && place.is_stopped() && !others.is_stopped());
        drop(place);
        assert!(!runs.stop(&ada, "t", None));
        assert!(runs.begin(&ada, "t", "r2").is_ok());
    }

    #[test]
    fn a_threads_address_is_the_same_at_every_process_and_another_for_everybody() {
        let (here, there) = (Runs::new([7; 32]), Runs::new([7; 32]));
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        assert_eq!(here.address(&ada, "t"), there.address(&ada, "t"));
        assert_ne!(here.address(&ada, "t"), here.address(&bob, "t"));
        assert_ne!(here.address(&ada, "t"), here.address(&ada, "u"));
        assert_ne!(here.address(&ada, "t"), Runs::new([8; 32]).address(&ada, "t"));
        assert!(!here.address(&ada, "secret-thread").contains("secret-thread"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_until_streams_are_read_and_not_for_ever() {
        let runs = Arc::new(Runs::new([7; 32]));
        let mut place = runs.begin(&Principal::new("ada"), "t", "r").unwrap();
        let stream = runs.stream();
        let ends = tokio::spawn({
            let runs = runs.clone();
            async move { runs.end().await }
        });
        assert_eq!(place.word(true).await, Word::End);
        assert!(place.is_ending() && !ends.is_finished());
        assert_eq!(runs.begin(&Principal::new("ada"), "u", "r").unwrap_err(), NoPlace::Ending);
        drop(stream);
        ends.await.unwrap();
        let _unread = runs.stream();
        let began = tokio::time::Instant::now();
        runs.end().await;
        assert_eq!(began.elapsed(), TOLD_WITHIN);
    }
}
