//! Tells a client how its run goes, and that it is over, once.

use amends_core::Code;
use amends_wire::agui::event::{Change, Event, KEEP_ALIVE, Outcome, PROTOCOL_VERSION};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

/// How many events close a run that breaks off: the end of a call that is being told, of its step, and its own.
const LAST_WORDS: usize = 3;

/// The client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Tells a client how its run goes. Invariant: whatever is open is closed before the last event, and there is one last event.
#[derive(Debug)]
pub(crate) struct Teller {
    to: mpsc::Sender<Bytes>,
    thread: String,
    run: String,
    /// The step that is open, and the call in it whose arguments are being told.
    step: Option<String>,
    call: Option<String>,
    over: bool,
    /// Room for what is said where the run breaks off, however much waits to be read then.
    room: Vec<mpsc::OwnedPermit<Bytes>>,
}

impl Teller {
    /// Says that a run begins.
    pub(crate) async fn begin(to: mpsc::Sender<Bytes>, thread: String, run: String) -> Result<Self, Gone> {
        let mut room = Vec::with_capacity(LAST_WORDS);
        for _ in 0..LAST_WORDS {
            room.push(to.clone().reserve_owned().await.map_err(|_| Gone)?);
        }
        let mut teller = Self { to, thread, run, step: None, call: None, over: false, room };
        let (thread_id, run_id) = (teller.thread.clone(), teller.run.clone());
        teller.tell(Event::RunStarted { thread_id, run_id, protocol_version: PROTOCOL_VERSION }).await?;
        Ok(teller)
    }

    /// Tells something that closes nothing.
    pub(crate) async fn tell(&mut self, event: Event) -> Result<(), Gone> {
        let sent = self.to.send(Bytes::from(event.framed())).await;
        // Only now: given up while it waits for room, it was not said.
        match event {
            Event::StepStarted { step_name } => self.step = Some(step_name),
            Event::StepFinished { .. } => self.step = None,
            Event::ToolCallStart { tool_call_id, .. } => self.call = Some(tool_call_id),
            Event::ToolCallEnd { .. } => self.call = None,
            Event::RunFinished { .. } | Event::RunError { .. } => self.over = true,
            Event::RunStarted { .. }
            | Event::ToolCallArgs { .. }
            | Event::ToolCallResult { .. }
            | Event::StateSnapshot { .. }
            | Event::StateDelta { .. } => {}
        }
        sent.map_err(|_| Gone)
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
        self.tell(Event::StepStarted { step_name: name.to_owned() }).await
    }

    /// Ends the step that is open.
    pub(crate) async fn close(&mut self) -> Result<(), Gone> {
        match self.step.clone() {
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
        let call = self.call.take().map(|tool_call_id| Event::ToolCallEnd { tool_call_id });
        let step = self.step.take().map(|step_name| Event::StepFinished { step_name });
        let message = "the run broke off; what was begun is on the ledger".to_owned();
        let last = Event::RunError { message, code: Code::LifecycleFailure.as_str() };
        for (event, room) in call.into_iter().chain(step).chain([last]).zip(self.room.drain(..)) {
            // Whoever listened may be gone, which is why it ended here.
            room.send(Bytes::from(event.framed()));
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
    async fn a_run_that_breaks_off_says_so_also_to_a_client_that_has_not_read_yet() {
        let (to, events) = mpsc::channel(LAST_WORDS + 3);
        let mut teller = Teller::begin(to, "t".into(), "r".into()).await.unwrap();
        teller.step("pay").await.unwrap();
        let call = Event::ToolCallStart { tool_call_id: "c".into(), tool_call_name: "pay".into() };
        teller.tell(call).await.unwrap();
        // There is no room for it, and whoever says it is gone before there is.
        let finishing =
            tokio::time::timeout(std::time::Duration::from_millis(1), teller.finish(Outcome::Success, None));
        assert!(finishing.await.is_err());
        let said = told(events).await;
        let closed = ["RUN_STARTED", "STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_END", "STEP_FINISHED", "RUN_ERROR"];
        assert_eq!(said, closed);
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
