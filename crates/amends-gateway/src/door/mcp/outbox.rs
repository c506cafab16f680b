//! What goes to a client on account of one of its requests, before the answer: progress, log messages, questions.

use std::sync::Arc;

use amends_wire::message;
use tokio::sync::mpsc;

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

    /// Asks the client something and waits for its answer, the whole message; nothing where the client cannot be asked or is
    /// gone. Given up before that, it takes the question back.
    pub async fn ask(&self, method: &str, params: Option<&str>) -> Option<String> {
        if !self.is_open() {
            return None;
        }
        let (id, answer) = self.client.expects();
        let mut question = Question { outbox: self, id, open: true };
        if !self.send(message::request(&question.id, method, params)).await {
            return None;
        }
        let answer = answer.await.ok();
        question.open = answer.is_none();
        answer
    }
}

/// A question that is open. Dropped so, it is taken back.
struct Question<'a> {
    outbox: &'a Outbox,
    id: String,
    open: bool,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.outbox.client.forgets(&self.id);
        if let (true, Some(to)) = (self.open, &self.outbox.to) {
            let params = format!(r#"{{"requestId":{},"reason":"no longer needed"}}"#, self.id);
            let line = message::notification("notifications/cancelled", Some(&params));
            // A client that reads nothing will not answer either.
            let _ = to.try_send(Out { line, delivery: None });
        }
    }
}
