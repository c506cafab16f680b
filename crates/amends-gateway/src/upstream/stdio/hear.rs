//! What a child says on its standard output, line by line.

use std::sync::Arc;

use amends_wire::message::Message;
use amends_wire::object::Object;
use tokio::io::BufReader;
use tokio::process::ChildStdout;

use super::{Shared, questions};
use crate::upstream::exchange::{Aside, Fault, Progress, Reply, RpcFault};
use crate::upstream::line::{Broken, Line, LineBounds, read_line};
use crate::upstream::questions::CANCELLED;
use crate::upstream::{Greeting, Unasked};

/// Reads what the child says, in order, until it closes its output.
pub(super) async fn read(shared: &Arc<Shared>, stdout: ChildStdout) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let bounds = LineBounds { bytes: shared.limits.answer_bytes, depth: usize::MAX };
    loop {
        match read_line(&mut reader, bounds).await {
            Ok(Line::Whole(line)) => heard(shared, line).await,
            Ok(Line::Broken { scanned, start, why }) => {
                let ticket = scanned.id().and_then(|id| id.parse().ok());
                tracing::warn!(upstream = %shared.name, ?why, "an unreadable line from the upstream");
                if let Some(ticket) = ticket {
                    let fault = match why {
                        Broken::TooLong => Fault::TooLarge,
                        Broken::TooDeep | Broken::NotUtf8 => Fault::Unreadable { start },
                    };
                    shared.traffic.answer(ticket, Reply::Fault(fault));
                }
            }
            Ok(Line::End) | Err(_) => return,
        }
    }
}

async fn heard(shared: &Arc<Shared>, line: String) {
    if line.trim().is_empty() {
        return;
    }
    match Message::parse(&line) {
        Ok(Message::Success { id, result }) => {
            if let Ok(ticket) = id.get().parse() {
                shared.traffic.answer(ticket, Reply::Result(result.get().to_owned().into()));
            }
        }
        Ok(Message::Failure { id, error }) => {
            if let Some(Ok(ticket)) = id.map(|id| id.get().parse()) {
                let fault = RpcFault {
                    code: error.code,
                    message: error.message.into_owned(),
                    data: error.data.map(|data| data.get().to_owned()),
                };
                shared.traffic.answer(ticket, Reply::Error(fault));
            }
        }
        Ok(Message::Notification { method, params }) if method == "notifications/progress" => {
            let token = params.and_then(|params| amends_wire::mcp::progress_ticket(params.get()));
            match (token, params) {
                (Some(ticket), Some(params)) => {
                    shared.traffic.aside(ticket, Aside::Progress(Progress(params.get().to_owned())));
                }
                _ => tracing::debug!(upstream = %shared.name, "progress for nobody"),
            }
        }
        Ok(Message::Notification { method, params })
            if method == CANCELLED && shared.questions.take_back(params.map(|params| params.get())) => {}
        Ok(Message::Notification { method, .. }) => {
            let method = method.into_owned();
            unasked(shared, Unasked::Notification { method, line }).await;
        }
        Ok(Message::Request { id, method, params }) => {
            let (id, method) = (id.get().to_owned(), method.into_owned());
            let params = params.map(|params| params.get().to_owned());
            if let Some(for_agent) = questions::asked(shared, id, method, params) {
                unasked(shared, for_agent).await;
            }
        }
        Err(error) => {
            tracing::warn!(upstream = %shared.name, %error, "the upstream said what is not in the protocol");
        }
    }
}

/// Hands over what the child said of its own accord. One agent gets all of it, and the child waits for an agent that reads
/// slowly; where several share the child, each gets what it wants to hear.
async fn unasked(shared: &Shared, unasked: Unasked) {
    match (shared.greeting(), &unasked) {
        (Greeting::Forwarded, _) => shared.unheard.say().await,
        (Greeting::Ours, Unasked::Notification { method, line }) => {
            let params = Object::parse(line).and_then(|line| line.get("params"));
            return shared.news.hear(method, params.map(|params| params.get()));
        }
        (Greeting::Ours, Unasked::Request { .. }) => {}
    }
    let _ = shared.unasked.send((shared.name.clone(), unasked));
}
