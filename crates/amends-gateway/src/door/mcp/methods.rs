//! Every method but `tools/call`, where the gateway is the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::{Era, era, http as headers};
use amends_wire::message;

use super::own::{discover, initialize, tools_list};
use super::{Answer, Asked, Client, Outbox, Running};
use crate::upstream::{Reply, Request};

/// How long something that is not a tool call may take.
pub(super) const ASK_TIMEOUT: Duration = Duration::from_secs(300);

/// Answers a request, unless the client wants it stopped.
pub(super) async fn answer(client: Arc<Client>, asked: Asked, outbox: Outbox, mut running: Running) -> Option<Answer> {
    tokio::select! {
        answer = route(&client, &asked, &outbox) => Some(answer),
        _ = running.stopped() => None,
    }
}

async fn route(client: &Client, asked: &Asked, _outbox: &Outbox) -> Answer {
    let gateway = &client.gateway;
    match asked.method.as_str() {
        "initialize" => {
            let params = asked.text().and_then(amends_wire::object::Object::parse);
            let version = params.as_ref().and_then(|params| params.string("protocolVersion")).unwrap_or_default();
            Answer::result(asked, &initialize(gateway, &version))
        }
        "ping" => Answer::result(asked, "{}"),
        "server/discover" => Answer::result(asked, &discover(gateway)),
        "tools/list" => Answer::result(asked, &tools_list(gateway, client.era(asked))),
        _ => pass_through(client, asked).await,
    }
}

/// Anything that is not about tools goes to the upstream as it is, where there is only one.
async fn pass_through(client: &Client, asked: &Asked) -> Answer {
    let era = client.era(asked);
    let mut upstreams = client.gateway.upstreams.values();
    let (Some(upstream), None) = (upstreams.next(), upstreams.next()) else {
        return Answer::error(asked, message::METHOD_NOT_FOUND, "there is no such method", None);
    };
    let modern = upstream.era() == Some(Era::Modern);
    let params = match (modern, era) {
        (true, Era::Legacy) => Some(era::with_own_meta(asked.text(), era::MODERN)),
        (true, Era::Modern) | (false, _) => asked.text().map(str::to_owned),
    };
    let request = Request {
        method: asked.method.clone(),
        subject: headers::body_name(&asked.method, asked.params.as_deref()),
        params,
        headers: Vec::new(),
        progress: None,
        send_by: Instant::now() + ASK_TIMEOUT,
        run: None,
    };
    let mut exchange = upstream.send(upstream.ticket(), request);
    match tokio::time::timeout(ASK_TIMEOUT, exchange.reply()).await {
        Ok(Reply::Result(result)) => {
            Answer::result(asked, &era::stamped(&String::from_utf8_lossy(&result), &asked.method, era))
        }
        Ok(Reply::Error(error)) => Answer::error(asked, error.code, &error.message, error.data.as_deref()),
        Ok(Reply::Fault(fault)) => {
            let text = format!("`{}` did not answer `{}`: {fault}", upstream.name, asked.method);
            Answer::error(asked, message::INTERNAL_ERROR, &text, None)
        }
        Err(_) => Answer::error(asked, message::INTERNAL_ERROR, "no answer in time", None),
    }
}
