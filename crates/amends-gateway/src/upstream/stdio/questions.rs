//! What a child asks of an agent: on a line that all calls share, nothing says for whose call it asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::AskKind;
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
    let forwarded = shared.greeting() == Greeting::Forwarded;
    let whose = if method == "ping" { Whose::Nobody } else { shared.traffic.whose_question() };
    let question = Question { key: String::new(), method, params };
    // Where the agent itself greeted the child, they may have questions that we do not know; those pass as they are. The others
    // are brought before it as anywhere, since the time it takes to answer is not the tool's.
    let known = question.kind() != AskKind::Other;
    if forwarded && (!known || !matches!(whose, Whose::One(_))) {
        return Some(Unasked::Request { id, method: question.method, params: question.params });
    }
    let (answer, withdrawn) = waits(shared, id);
    match whose {
        Whose::One(asides) => {
            let Question { method, params, .. } = question;
            // Nobody hears it any more once the request is given up.
            drop(asides.to.send(Aside::Question(Asking { method, params, answer, withdrawn })));
        }
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
    None
}

/// A question of that id waits for an answer, which is then written.
fn waits(shared: &Arc<Shared>, id: String) -> (oneshot::Sender<Said>, oneshot::Receiver<Option<String>>) {
    let (writes, run, of) = (shared.clone(), shared.traffic.run(), id.clone());
    shared.questions.wait(&id, move |said: Said| async move {
        if said.send_by < Instant::now() {
            return;
        }
        let line = message::one_line(&said.message(&of)).into_owned();
        // A child that is gone by now waits for nothing.
        let _ = writes.traffic.write(Outgoing { ticket: None, line, send_by: None, run });
    })
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
