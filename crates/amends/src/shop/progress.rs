//! Progress: what a long job tells the agent while it runs.

use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Where the progress of one call goes, under the token the agent chose.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    token: Value,
    messages: mpsc::Sender<String>,
}

impl Progress {
    /// Progress under `token`, as complete JSON-RPC messages for the transport behind `messages`.
    pub(crate) fn new(token: Value, messages: mpsc::Sender<String>) -> Progress {
        Progress { token, messages }
    }

    /// Reports one step; an agent that has left does not stop the job.
    pub(crate) async fn report(&self, step: u64, total: u64) {
        let message = json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": { "progressToken": self.token, "progress": step, "total": total },
        });
        self.messages.send(message.to_string()).await.ok();
    }
}
