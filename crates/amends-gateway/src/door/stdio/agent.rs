//! The agent at a stdio door, and what the server behind it says of its own accord.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::Refusal;
use amends_wire::message;
use amends_wire::object::Object;
use amends_wire::scan::Scanned;
use amends_wire::splice::Splice;
use tokio::sync::mpsc;

use crate::door::mcp::{self, Asked, Client, Out, Outbox};
use crate::upstream::{Unasked, Upstream};

/// The agent at a stdio door.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) client: Arc<Client>,
    upstream: Arc<Upstream>,
    out: mpsc::Sender<Out>,
    /// What the upstream asked the agent, by our id for it.
    questions: Mutex<HashMap<String, Question>>,
}

/// A question of the upstream to the agent.
#[derive(Debug)]
struct Question {
    /// The upstream's own id for it.
    id: String,
    /// The run of the upstream that asked; a later one knows nothing of it.
    run: Option<u64>,
}

impl Agent {
    pub(super) fn new(client: Arc<Client>, upstream: Arc<Upstream>, out: mpsc::Sender<Out>) -> Self {
        Self { client, upstream, out, questions: Mutex::default() }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn write(&self, line: String) {
        // Nobody takes lines any more once the agent has closed its end.
        let _ = self.out.send(Out { line, delivery: None }).await;
    }

    /// Answers a request, after all that the upstream said before its answer.
    pub(super) fn ask(&self, asked: Asked) {
        let outbox = Outbox::to(self.client.clone(), self.out.clone());
        let answering = mcp::handle(self.client.clone(), asked, outbox);
        let (upstream, out) = (self.upstream.clone(), self.out.clone());
        tokio::spawn(async move {
            if let Some(answer) = answering.await {
                upstream.caught_up().await;
                let _ = out.send(Out { line: answer.message, delivery: answer.delivery }).await;
                if let Some(begun) = answer.begun {
                    begun.told();
                }
            }
        });
    }

    /// Says no to a message that could not be read, and records that.
    pub(super) fn refuse(self: &Arc<Self>, scanned: Scanned, code: i64, refusal: Refusal) {
        let agent = self.clone();
        tokio::spawn(async move {
            let line = mcp::refuse(&agent.client, &scanned, code, refusal).await;
            agent.write(line).await;
        });
    }

    /// The agent wants something stopped.
    pub(super) fn cancelled(&self, params: Option<&str>, line: &str) {
        let id = params.and_then(|params| Object::parse(params)?.get("requestId").map(|id| id.get().to_owned()));
        if !id.is_some_and(|id| self.client.cancels(&id)) {
            tracing::debug!(line, "a cancel of what is over");
        }
    }

    /// A notification of the agent: passed through.
    pub(super) fn tell(&self, line: String) {
        if self.client.wrapped().is_none() {
            // The server of another era has its own words with us.
            return;
        }
        self.upstream.tell(message::one_line(&line).into_owned());
    }

    /// The agent answered what we or the upstream had asked.
    pub(super) fn answered(&self, id: &str, line: &str) {
        if self.client.answers(id, line) {
            return;
        }
        let question = self.questions().remove(id).filter(|question| question.run == self.upstream.run());
        let Some(question) = question else { return };
        let mut splice = Splice::new(line);
        if splice.set_member(line, "id", question.id).is_ok() {
            self.tell(splice.finish());
        }
    }

    /// What the upstream said of its own accord: passed on.
    pub(super) async fn pass_on(&self, unasked: Unasked) {
        match unasked {
            Unasked::Notification { method, line } => {
                let line = match method.as_str() {
                    "notifications/tools/list_changed" => {
                        if let Some(wrapped) = self.client.wrapped() {
                            wrapped.tools_changed();
                        }
                        line
                    }
                    "notifications/cancelled" => self.taken_back(&line).unwrap_or(line),
                    _ => line,
                };
                self.write(line).await;
            }
            Unasked::Request { id, method, params } => {
                let ours = self.client.question_id();
                self.questions().insert(ours.clone(), Question { id, run: self.upstream.run() });
                self.write(message::request(&ours, &method, params.as_deref())).await;
            }
        }
        self.upstream.passed_on();
    }

    /// The upstream takes a question back: the same, with the id by which the agent knows the question.
    fn taken_back(&self, line: &str) -> Option<String> {
        let params = Object::parse(line)?.get("params")?;
        let theirs = Object::parse(params.get())?.get("requestId")?;
        let ours = {
            let mut questions = self.questions();
            let run = self.upstream.run();
            let same = |question: &Question| question.id == theirs.get() && question.run == run;
            let ours = questions.iter().find(|(_, question)| same(question)).map(|(ours, _)| ours.clone())?;
            questions.remove(&ours);
            ours
        };
        let mut splice = Splice::new(line);
        splice.set_member(params.get(), "requestId", ours).ok()?;
        Some(splice.finish())
    }
}
