//! What an agent asks while it works, as a question to whoever called.

use amends_wire::a2a::State;
use amends_wire::a2a::agent::Task;
use amends_wire::mcp::inputs::ELICIT;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::upstream::exchange::{Aside, Asides, Asking};

/// What came of a question.
pub(super) enum Answer {
    /// Somebody answered.
    Given {
        /// In words.
        text: Option<String>,
        /// As data.
        data: Option<String>,
    },
    /// The task went on without an answer.
    MovedOn,
    /// Somebody says that they signed in, and the task still waits.
    SignedIn,
}

/// Asks whoever called; nothing where nobody can be asked, or they do not want to answer.
pub(super) async fn ask(asides: Option<&Asides>, task: &Task) -> Option<Answer> {
    let asides = asides?;
    let (answer, said) = oneshot::channel();
    // Dropped with this, it says that the question is over.
    let (withdraw, withdrawn) = oneshot::channel();
    let asking = Asking { method: ELICIT.to_owned(), params: Some(params(task).to_string()), answer, withdrawn };
    asides.to.send(Aside::Question(asking)).ok()?;
    let withdraw = Withdraw(Some(withdraw));
    let said = said.await.ok()?.answer.ok()?;
    withdraw.keep();
    let said: Value = serde_json::from_str(&said).ok()?;
    if said["action"] != "accept" {
        return None;
    }
    let content = &said["content"];
    // A free answer is told in words, as it was asked for.
    let only =
        content.as_object().filter(|content| content.len() == 1).and_then(|content| content.get("answer")?.as_str());
    Some(match only {
        Some(words) => Answer::Given { text: Some(words.to_owned()), data: None },
        None => Answer::Given { text: None, data: content.is_object().then(|| content.to_string()) },
    })
}

/// Takes a question back when it is dropped before its answer.
struct Withdraw(Option<oneshot::Sender<Option<String>>>);

impl Withdraw {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        if let Some(withdraw) = self.0.take() {
            // Whoever was asked may have gone before.
            let _ = withdraw.send(None);
        }
    }
}

/// The question: a form with what the agent's data ask for, else with one free answer; an address where somebody signs in.
fn params(task: &Task) -> Value {
    let (words, data) = task.says();
    let words = if words.is_empty() { "the agent needs an answer".to_owned() } else { words };
    let named = |name: &str| data.map(|data| &data[name]).filter(|value| !value.is_null());
    if task.state == Some(State::AuthRequired)
        && let Some(url) = named("url").and_then(Value::as_str).or_else(|| address_in(&words))
    {
        return json!({ "mode": "url", "message": words, "url": url });
    }
    let schema = named("responseSchema").or_else(|| named("requestedSchema")).filter(|schema| schema.is_object());
    let free = || {
        json!({
            "type": "object",
            "properties": { "answer": { "type": "string", "title": "Answer" } },
            "required": ["answer"],
        })
    };
    json!({ "mode": "form", "message": words, "requestedSchema": schema.cloned().unwrap_or_else(free) })
}

/// The first address in a text: agents that give none as data often write it into what they say.
fn address_in(words: &str) -> Option<&str> {
    let begins = words.find("https://").or_else(|| words.find("http://"))?;
    let address = words[begins..].split([' ', '\t', '\n', '"', '\'', '<', '>', ')', ']', '`']).next()?;
    Some(address.trim_end_matches(['.', ',', ';', ':', '!', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_what_is_said() {
        assert_eq!(address_in("Sign in at https://id.example/a?b=c, please."), Some("https://id.example/a?b=c"));
        assert_eq!(address_in("(see http://h/x)."), Some("http://h/x"));
        assert_eq!(address_in("sign in somewhere"), None);
    }
}
