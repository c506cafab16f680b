//! The MCP door on standard input and output: one agent in front of one upstream, transparent but for its tool calls.

mod agent;
mod ends;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{Principal, RefusalKind, UpstreamName};
use amends_wire::message::{self, Message};
use amends_wire::scan::Scanned;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;

use crate::door::mcp::{self, Asked, Client, Said, Wrapped};
use crate::gateway::Gateway;
use crate::upstream::Unasked;
use crate::upstream::line::{Broken, Line, LineBounds, read_line};
use agent::Agent;

pub use ends::{Input, Output, ends};

/// How long calls that were sent may still take once the agent is gone.
const GRACE: Duration = Duration::from_secs(10);

/// Serves one agent until it closes its end.
pub async fn serve(
    gateway: Arc<Gateway>,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    unasked: mpsc::UnboundedReceiver<(UpstreamName, Unasked)>,
) {
    let (out, writer) = writer::start(output);
    let Some(upstream) = gateway.upstreams().values().next().cloned() else {
        return;
    };
    let client = Client::new(gateway.clone(), Principal::new("local"), "mcp/stdio", Said::nothing());
    let client = Arc::new(client.before(Wrapped::new(upstream.clone())));
    let agent = Arc::new(Agent::new(client, upstream, out));
    // On its own: a line that is half read must not be given up because the upstream has something to say.
    let passing = tokio::spawn(pass_on(agent.clone(), unasked));
    agent.client.mailbox().change(|wants| (wants.tools, wants.prompts, wants.resources) = (false, false, false));
    let telling = tokio::spawn(tell(agent.clone()));
    let mut reader = BufReader::with_capacity(64 * 1024, input);
    let limits = gateway.config().limits;
    let bounds = LineBounds { bytes: limits.body_bytes, depth: limits.depth };
    loop {
        match read_line(&mut reader, bounds).await {
            Ok(Line::Whole(line)) => heard(&agent, &line),
            Ok(Line::Broken { why, scanned, .. }) => broken(&agent, why, *scanned),
            Ok(Line::End) | Err(_) => break,
        }
    }
    agent.client.stop_all(CancelReason::Disconnected);
    let settled = tokio::time::timeout(GRACE, agent.client.settled()).await;
    if settled.is_err() {
        tracing::warn!("some calls are not settled; the next start will take them up");
    }
    passing.abort();
    let _ = passing.await;
    telling.abort();
    let _ = telling.await;
    drop(agent);
    let _ = tokio::time::timeout(Duration::from_secs(1), writer).await;
    // Nothing more can come of what was sent to an upstream that is gone.
    gateway.stop_upstreams().await;
    // What was delivered is recorded before we go, or an equal call of the next agent would be taken for its repeat.
    gateway.rest();
    let _ = tokio::time::timeout(GRACE, gateway.idle()).await;
}

/// Passes on what the upstream says of its own accord, in its order.
async fn pass_on(agent: Arc<Agent>, mut unasked: mpsc::UnboundedReceiver<(UpstreamName, Unasked)>) {
    while let Some((_, unasked)) = unasked.recv().await {
        agent.pass_on(unasked).await;
    }
}

/// Tells the agent what is put into its mailbox: what changed in its walks and, where we stand between it and its upstream, what
/// that says. Otherwise what the upstream says is passed on as it says it, and nothing of that is wanted here.
async fn tell(agent: Arc<Agent>) {
    let mailbox = agent.client.mailbox().clone();
    let mut reader = mailbox.first_reader();
    loop {
        loop {
            match reader.next().await {
                Ok(Some((_, line))) => agent.write(line.to_string()).await,
                Ok(None) => return,
                // What was lost is not news any more: whoever reads it now finds it as it is.
                Err(_) => break,
            }
        }
        reader = mailbox.reader(None);
    }
}

fn heard(agent: &Arc<Agent>, line: &str) {
    if line.trim().is_empty() {
        return;
    }
    match Message::parse(line) {
        Ok(Message::Request { id, method, params }) => {
            let params = params.map(ToOwned::to_owned);
            agent.ask(Asked { id: id.get().to_owned(), method: method.into_owned(), params });
        }
        Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
            agent.cancelled(params.map(|params| params.get()), line);
        }
        Ok(Message::Notification { .. }) => agent.tell(line.to_owned()),
        Ok(Message::Success { id, .. }) => agent.answered(id.get(), line),
        Ok(Message::Failure { id, .. }) => {
            if let Some(id) = id {
                agent.answered(id.get(), line);
            }
        }
        Err(error) => {
            let scanned = {
                let mut scanner = amends_wire::scan::Scanner::new(usize::MAX);
                let _ = scanner.feed(line.as_bytes());
                scanner.finish()
            };
            let refusal = mcp::unreadable(RefusalKind::InvalidArgument, error.to_string());
            agent.refuse(scanned, error.code(), refusal);
        }
    }
}

fn broken(agent: &Arc<Agent>, why: Broken, scanned: Scanned) {
    let limits = agent.client.gateway.config().limits;
    let (kind, code, words) = match why {
        Broken::TooLong => (
            RefusalKind::TooLarge,
            message::INVALID_REQUEST,
            format!("the message is larger than {} bytes", limits.body_bytes),
        ),
        Broken::TooDeep => (
            RefusalKind::TooLarge,
            message::INVALID_REQUEST,
            format!("the message nests deeper than {} levels", limits.depth),
        ),
        Broken::NotUtf8 => (RefusalKind::InvalidArgument, message::PARSE_ERROR, "the message is not UTF-8".to_owned()),
    };
    agent.refuse(scanned, code, mcp::unreadable(kind, words));
}
