//! What a child asks of an agent: on a line that all calls share, nothing says for whose call it asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::inputs::ROOTS;
use amends_wire::message;
use tokio::sync::oneshot;

use super::Shared;
use super::traffic::Outgoing;
use crate::upstream::exchange::{Aside, Asking, RpcFault, Said, Whose};
use crate::upstream::{Greeting, Unasked};

/// Brings a question before the agent whose calls are in flight, and writes what the child is told. It gives back what is to be
/// passed on to the agent at the other end, where the child belongs to it alone and no call of it is in flight.
pub(super) fn asked(shared: &Arc<Shared>, id: String, method: String, params: Option<String>) -> Option<Unasked> {
    let (answer, said) = oneshot::channel();
    let whose = if method == "ping" { Whose::Nobody } else { shared.traffic.whose_question() };
    match whose {
        // Nobody hears it any more once the request is given up.
        Whose::One(asides) => drop(asides.to.send(Aside::Question(Asking { method, params, answer }))),
        Whose::Nobody if shared.greeting() == Greeting::Forwarded => {
            return Some(Unasked::Request { id, method, params });
        }
        Whose::Nobody if method == "ping" => drop(answer.send(result("{}"))),
        Whose::Nobody if method == ROOTS => drop(answer.send(result(r#"{"roots":[]}"#))),
        Whose::Nobody => drop(answer.send(refusal(&method, "no call is in flight for which it could be asked"))),
        Whose::Several => {
            let why = "calls of several agents are in flight, and nothing tells whose it is";
            drop(answer.send(refusal(&method, why)));
        }
    }
    let (shared, run) = (shared.clone(), shared.traffic.run());
    tokio::spawn(async move {
        let Ok(said) = said.await else { return };
        if said.send_by < Instant::now() {
            return;
        }
        let line = message::one_line(&said.message(&id)).into_owned();
        // A child that is gone by now waits for nothing.
        let _ = shared.traffic.write(Outgoing { ticket: None, line, send_by: None, run });
    });
    None
}

fn result(result: &str) -> Said {
    Said { answer: Ok(result.to_owned()), send_by: soon() }
}

fn refusal(method: &str, why: &str) -> Said {
    let message = format!("`{method}` is not answered: {why}");
    Said { answer: Err(RpcFault { code: message::METHOD_NOT_FOUND, message, data: None }), send_by: soon() }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}
