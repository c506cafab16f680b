//! What goes to a client on account of one of its requests, before the answer: progress, log messages, questions.

use std::sync::Arc;

use amends_wire::message;
use amends_wire::object::quoted;
use tokio::sync::{mpsc, oneshot};

use super::Client;
use crate::driver::Delivery;

/// One message for a client.
#[derive(Debug)]
pub struct Out {
    /// The message.
    pub line: String,
    /// Whom to tell when it is written.
    pub delivery: Option<Delivery>,
}

/// The way to a client for what belongs to one of its requests, in order and before the answer.
#[derive(Clone, Debug)]
pub struct Outbox {
    client: Arc<Client>,
    to: Option<mpsc::Sender<Out>>,
}

impl Outbox {
    /// A way on which messages leave.
    pub fn to(client: Arc<Client>, to: mpsc::Sender<Out>) -> Self {
        Self { client, to: Some(to) }
    }

    /// No way: the client takes the answer and nothing else.
    pub fn closed(client: Arc<Client>) -> Self {
        Self { client, to: None }
    }

    /// Whether anything can go to the client before the answer.
    pub fn is_open(&self) -> bool {
        self.to.is_some()
    }

    /// Sends a message, waiting for room; `false` where the client takes none.
    pub async fn send(&self, line: String) -> bool {
        match &self.to {
            Some(to) => to.send(Out { line, delivery: None }).await.is_ok(),
            None => false,
        }
    }

    /// Asks the client something; nothing where the client cannot be asked or is gone. Its answer is waited for with what this gives.
    pub async fn ask(&self, method: &str, params: Option<&str>) -> Option<Question> {
        if !self.is_open() {
            return None;
        }
        let (id, answer) = self.client.expects();
        let question = Question { outbox: self.clone(), id, answer, open: true, reason: None };
        let sent = self.send(message::request(&question.id, method, params)).await;
        sent.then_some(question)
    }
}

/// A question that is open. Dropped so, it is taken back.
#[derive(Debug)]
pub struct Question {
    outbox: Outbox,
    id: String,
    answer: oneshot::Receiver<String>,
    open: bool,
    /// Why it is taken back, where somebody said so.
    reason: Option<String>,
}

impl Question {
    /// Waits for the answer, the whole message; nothing where the client is gone, or whoever asks takes it back.
    pub async fn answered(mut self, withdrawn: Option<oneshot::Receiver<Option<String>>>) -> Option<String> {
        let withdrawn = async {
            match withdrawn {
                Some(withdrawn) => withdrawn.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = &mut self.answer => {
                let answer = answer.ok();
                self.open = answer.is_none();
                answer
            }
            Ok(reason) = withdrawn => {
                self.reason = reason;
                None
            }
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.outbox.client.forgets(&self.id);
        if let (true, Some(to)) = (self.open, &self.outbox.to) {
            let reason = quoted(self.reason.as_deref().unwrap_or("no longer needed"));
            let params = format!(r#"{{"requestId":{},"reason":{reason}}}"#, self.id);
            let line = message::notification("notifications/cancelled", Some(&params));
            // A client that reads nothing will not answer either.
            let _ = to.try_send(Out { line, delivery: None });
        }
    }
}
