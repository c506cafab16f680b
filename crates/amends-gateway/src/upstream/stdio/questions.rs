//! What a child asks of an agent: on a line that all calls share, nothing says for whose call it asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::Question;
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
    let forwarded = shared.greeting() == Greeting::Forwarded;
    let whose = if method == "ping" { Whose::Nobody } else { shared.traffic.whose_question() };
    let question = Question { key: String::new(), method, params };
    match whose {
        // Nobody hears it any more once the request is given up.
        // What the agent at the other end did not declare is between the two of them.
        Whose::One(asides) if forwarded && !asides.askable.takes(&question) => return Some(unasked(id, question)),
        Whose::One(asides) => {
            let Question { method, params, .. } = question;
            drop(asides.to.send(Aside::Question(Asking { method, params, answer })));
        }
        Whose::Nobody if forwarded => return Some(unasked(id, question)),
        Whose::Nobody if question.method == "ping" => drop(answer.send(result("{}"))),
        Whose::Nobody if question.method == ROOTS => drop(answer.send(result(r#"{"roots":[]}"#))),
        Whose::Nobody => {
            drop(answer.send(refusal(&question.method, "no call is in flight for which it could be asked")))
        }
        Whose::Several => {
            let why = "calls of several agents are in flight, and nothing tells whose it is";
            drop(answer.send(refusal(&question.method, why)));
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

fn unasked(id: String, question: Question) -> Unasked {
    Unasked::Request { id, method: question.method, params: question.params }
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
