//! Tells a client how its run goes, and that it is over, once.

use amends_core::Code;
use amends_wire::agui::event::{Change, Event, KEEP_ALIVE, Outcome, PROTOCOL_VERSION};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

/// The client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Tells a client how its run goes. Invariant: whatever is open is closed before the last event, and there is one last event.
#[derive(Debug)]
pub(crate) struct Teller {
    to: mpsc::Sender<Bytes>,
    thread: String,
    run: String,
    step: Option<String>,
    over: bool,
}

impl Teller {
    /// Says that a run begins.
    pub(crate) async fn begin(to: mpsc::Sender<Bytes>, thread: String, run: String) -> Result<Self, Gone> {
        let mut teller = Self { to, thread, run, step: None, over: false };
        let (thread_id, run_id) = (teller.thread.clone(), teller.run.clone());
        teller.tell(Event::RunStarted { thread_id, run_id, protocol_version: PROTOCOL_VERSION }).await?;
        Ok(teller)
    }

    /// Tells something that closes nothing.
    pub(crate) async fn tell(&mut self, event: Event) -> Result<(), Gone> {
        self.over |= event.is_last();
        self.to.send(Bytes::from(event.framed())).await.map_err(|_| Gone)
    }

    /// Tells what changed of what the client carries.
    pub(crate) async fn changed(&mut self, delta: impl IntoIterator<Item = Change>) -> Result<(), Gone> {
        let delta: Vec<Change> = delta.into_iter().collect();
        match delta.is_empty() {
            true => Ok(()),
            false => self.tell(Event::StateDelta { delta }).await,
        }
    }

    /// Begins a step.
    pub(crate) async fn step(&mut self, name: &str) -> Result<(), Gone> {
        self.close().await?;
        self.step = Some(name.to_owned());
        self.tell(Event::StepStarted { step_name: name.to_owned() }).await
    }

    /// Ends the step that is open.
    pub(crate) async fn close(&mut self) -> Result<(), Gone> {
        match self.step.take() {
            Some(step_name) => self.tell(Event::StepFinished { step_name }).await,
            None => Ok(()),
        }
    }

    /// Says that the run is over.
    pub(crate) async fn finish(mut self, outcome: Outcome, result: Option<Value>) -> Result<(), Gone> {
        self.close().await?;
        let (thread_id, run_id) = (self.thread.clone(), self.run.clone());
        self.tell(Event::RunFinished { thread_id, run_id, outcome, result }).await
    }

    /// Says that the run failed.
    pub(crate) async fn fail(mut self, code: Code, message: String) -> Result<(), Gone> {
        self.close().await?;
        self.tell(Event::RunError { message, code: code.as_str() }).await
    }

    /// Says nothing, so that the stream is kept.
    pub(crate) async fn keep_alive(&mut self) -> Result<(), Gone> {
        self.to.send(Bytes::from_static(KEEP_ALIVE.as_bytes())).await.map_err(|_| Gone)
    }

    /// Waits until the client is gone.
    pub(crate) async fn gone(&self) {
        self.to.closed().await;
    }
}

impl Drop for Teller {
    /// A client takes a stream that merely ends for a run that went well.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let step = self.step.take().map(|step_name| Event::StepFinished { step_name });
        let message = "the run broke off; what was begun is on the ledger".to_owned();
        let last = Event::RunError { message, code: Code::LifecycleFailure.as_str() };
        for event in step.into_iter().chain([last]) {
            // Whoever listened may be gone, which is why it ended here.
            let _ = self.to.try_send(Bytes::from(event.framed()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(mut events: mpsc::Receiver<Bytes>) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(event) = events.recv().await {
            let event: Value = serde_json::from_slice(&event[6..]).unwrap();
            all.push(event["type"].as_str().unwrap().to_owned());
        }
        all
    }

    #[tokio::test]
    async fn a_run_that_breaks_off_says_so_and_closes_what_is_open() {
        let (to, events) = mpsc::channel(16);
        let mut teller = Teller::begin(to, "t".into(), "r".into()).await.unwrap();
        teller.step("pay").await.unwrap();
        drop(teller);
        assert_eq!(told(events).await, ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_ERROR"]);
    }

    #[tokio::test]
    async fn a_run_that_is_over_says_so_once() {
        let (to, events) = mpsc::channel(16);
        let mut teller = Teller::begin(to, "t".into(), "r".into()).await.unwrap();
        teller.step("pay").await.unwrap();
        teller.finish(Outcome::Cancelled, None).await.unwrap();
        assert_eq!(told(events).await, ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"]);
    }
}
