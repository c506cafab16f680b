//! Passing a request that is no tool call on to an upstream, and its answer back, in the era of each side.

use std::sync::Arc;
use std::time::Instant;

use amends_core::contract::Contract;
use amends_wire::mcp::{Era, classify, era};
use amends_wire::message;
use bytes::Bytes;
use serde_json::json;

use super::methods::ASK_TIMEOUT;
use super::rounds::{Next, Rounds};
use super::{Answer, Asked, Client, Outbox, ProgressRelay, progress};
use crate::clock;
use crate::upstream::{Asides, Exchange, Fault, Reply, Request, Upstream, asides};

/// Sends a request and waits for what comes of it. Dropped before that, it is cancelled. Where the upstream asks something
/// first, the client is asked.
pub(super) async fn forward(
    client: &Client,
    asked: &Asked,
    outbox: &Outbox,
    upstream: &Arc<Upstream>,
    params: Option<&str>,
    subject: Option<String>,
) -> Reply {
    if !Rounds::allowed(&asked.method) {
        return send(client, asked, outbox, upstream, params, subject, None).await;
    }
    let mut rounds = Rounds::new(client, asked, outbox);
    let mut params = match rounds.begin(params.unwrap_or("{}")) {
        Ok(params) => params,
        Err(refused) => return refused,
    };
    // Ends: the rounds are counted.
    loop {
        let reply = send(client, asked, outbox, upstream, Some(&params), subject.clone(), Some(&rounds)).await;
        match rounds.next(&params, reply).await {
            Next::Answer(reply) => return reply,
            Next::Again(next) => params = next,
        }
    }
}

async fn send(
    client: &Client,
    asked: &Asked,
    outbox: &Outbox,
    upstream: &Arc<Upstream>,
    params: Option<&str>,
    subject: Option<String>,
    rounds: Option<&Rounds<'_>>,
) -> Reply {
    let ticket = upstream.ticket();
    let (progress_to, reports) = asides();
    let token = params.and_then(progress::token).filter(|_| outbox.is_open());
    let mut params = match (params, &token) {
        (Some(params), Some(_)) => Some(progress::with_token(params, ticket)),
        (params, _) => params.map(str::to_owned),
    };
    if upstream.era() == Some(Era::Modern) && client.era(asked) == Era::Legacy {
        let declared = client.said(asked).capabilities.filter(|_| rounds.is_some() && outbox.is_open());
        let declared = declared.as_deref().map_or("{}", |raw| raw.get());
        params = Some(era::with_meta(params.as_deref(), era::MODERN, declared));
    }
    if upstream.takes_no_stamps() && client.era(asked) == Era::Modern {
        params = params.map(|params| era::without_stamps(&params));
    }
    // A task belongs to the session that it was begun in.
    let in_session = client.era(asked) == Era::Legacy && asked.method.starts_with("tasks/") && outbox.is_open();
    let request = Request {
        method: asked.method.clone(),
        subject,
        params,
        headers: Vec::new(),
        asides: (token.is_some() || rounds.is_some() || in_session).then_some(Asides {
            to: progress_to,
            whose: rounds.map(|_| client.session().id.clone()),
            on_line: in_session || (rounds.is_some() && outbox.is_open() && client.era(asked) == Era::Legacy),
        }),
        send_by: Instant::now() + ASK_TIMEOUT,
        run: None,
    };
    let mut sent = Sent(upstream.send(ticket, request));
    let reply = progress::relayed(&mut sent.0, token.map(ProgressRelay::new), reports, outbox, rounds);
    tokio::time::timeout(ASK_TIMEOUT, reply).await.unwrap_or(Reply::Fault(Fault::Lost))
}

/// A request on its way, cancelled when nobody waits for it any more.
struct Sent(Exchange);

impl Drop for Sent {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A result in the era of the client.
pub(super) fn dressed(result: &Bytes, asked: &Asked, client: &Client, upstream: &Upstream) -> String {
    let text = String::from_utf8_lossy(result);
    match client.era(asked) {
        Era::Legacy if upstream.era() == Some(Era::Modern) => era::unstamped(&text),
        era => era::stamped(&text, &asked.method, era),
    }
}

/// A reply that is no result, as an answer.
pub(super) fn failed(client: &Client, asked: &Asked, upstream: &Upstream, reply: Reply) -> Answer {
    match reply {
        Reply::Error(error) => {
            let code = era::code_for(error.code, client.era(asked));
            Answer::error(asked, code, &error.message, error.data.as_deref())
        }
        Reply::Fault(fault) => {
            let report =
                classify::signal(fault.signal(), &Contract::undeclared(0, 0, 0), &[], clock::now().ms()).report;
            let failure = report.failure.as_ref();
            let mut data = json!({
                "upstream": upstream.name.as_str(),
                "certainty": report.certainty.as_str(),
                "retryable": true,
            });
            if let Some(failure) = failure {
                data["code"] = json!(failure.code.as_str());
                data["class"] = json!(failure.code.class().as_str());
                data["retry_after_ms"] = json!(failure.retry_after_ms);
            }
            let text = format!("`{}` did not answer `{}`: {fault}", upstream.name, asked.method);
            Answer::error(asked, message::INTERNAL_ERROR, &text, Some(&data.to_string()))
        }
        Reply::Result(_) => Answer::error(asked, message::INTERNAL_ERROR, "no answer", None),
    }
}
