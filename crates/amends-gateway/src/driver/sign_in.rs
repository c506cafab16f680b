//! A person signs in, where a call cannot go on without: where its agent cannot be sent to an address, and where an upstream wants to be
//! shown what only a person can get.

use std::sync::Arc;

use amends_core::failure::bounded;
use amends_core::inquiry::SignIn;
use amends_core::interaction::{SignInAt, Subject};
use amends_core::{AskKind, Inquiry, UpstreamName, Way};
use amends_ledger::Append;
use amends_wire::mcp::call::hold_ms;
use amends_wire::mcp::inputs::responses;
use amends_wire::mcp::{Askable, InputRequired};
use serde_json::{Value, json};

use super::session::{Live, Session};
use crate::catalogue::ServedTool;
use crate::config::{PEOPLE, SIGN_IN};
use crate::gateway::Gateway;
use crate::identity::Account;
use crate::upstream::Greeting;

/// What an upstream is told that sent somebody to an address, once they were there.
pub(super) const WAS_THERE: &str = r#"{"action":"accept"}"#;
/// The same where they do not want to go.
pub(super) const WILL_NOT_GO: &str = r#"{"action":"decline"}"#;
/// How long an address may be that a person is sent to.
const URL_BYTES_MAX: usize = 4096;

/// Has a person asked in the place of an agent that cannot be: somebody is only to be sent to an address, and to say that they were
/// there. Where the agent's own client and server understand each other, they are left to that.
pub(super) fn in_its_place(gateway: &Gateway, live: &mut Live, asked: &InputRequired, inquiry: &mut Inquiry) {
    let [question] = asked.questions.as_slice() else { return };
    if inquiry.way.is_open() || question.kind() != AskKind::Url || !has_people(gateway) {
        return;
    }
    let params: Value = question.params.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let url = params["url"].as_str().filter(|url| is_address(url));
    let (Some(url), Some(tool)) = (url, &live.tool) else { return };
    let queue = tool.rules.contract.approval.as_ref().map_or("default", |approval| approval.queue.as_str()).to_owned();
    live.sign_in = Some(Box::new(SignInAt {
        upstream: tool.upstream.name.clone(),
        url: url.to_owned(),
        code: None,
        expires_at: None,
        says: params["message"].as_str().map(bounded),
        is_heard: false,
    }));
    inquiry.way = Way::Person;
    let mut sign_in = wait(gateway, live, queue);
    // What the upstream wants back with the answer is this call's: the next equal one would be asked anew.
    sign_in.patience.goes_on = true;
    inquiry.sign_in = Some(Box::new(sign_in));
}

/// What an upstream is told that it may ask for: what the agent declared, and that somebody can be sent to an address, since a person can.
pub(super) fn declared(gateway: &Gateway, declared: &str) -> String {
    if !has_people(gateway) || Askable::of(Some(declared)).url {
        return declared.to_owned();
    }
    let mut all: Value = serde_json::from_str(declared).unwrap_or_default();
    if !all.is_object() {
        all = json!({});
    }
    // Before there were modes, there were forms.
    let form = Askable::of(Some(declared)).form;
    if !all["elicitation"].is_object() {
        all["elicitation"] = json!({});
    }
    if form {
        all["elicitation"]["form"] = json!({});
    }
    all["elicitation"]["url"] = json!({});
    all.to_string()
}

/// Whether there is anybody to be asked: not where nobody is there, and not where an agent's own client and server understand each other.
fn has_people(gateway: &Gateway) -> bool {
    gateway.greeting == Greeting::Ours && gateway.config().people.patience.headless.is_none()
}

/// The account by whose token a tool's upstream believes us, or that the tool has somebody sign in to.
pub(super) fn account(gateway: &Gateway, tool: &ServedTool) -> Option<Arc<Account>> {
    if tool.upstream.name.as_str() != PEOPLE {
        return tool.upstream.account();
    }
    let upstreams = gateway.upstreams();
    upstreams.get(&UpstreamName::new(tool.local.strip_prefix(SIGN_IN)?))?.account()
}

/// How somebody who signs in is waited for.
pub(super) fn wait(gateway: &Gateway, live: &Live, queue: String) -> SignIn {
    let config = gateway.config();
    let requester_may = config.people.queues.get(&queue).is_some_and(|queue| queue.requester);
    let mut patience = config.people.patience.clone();
    let usual = if live.listener.way == Way::Return { 0 } else { u64::MAX };
    patience.hold_ms = patience.hold_ms.min(hold_ms(&live.params).unwrap_or(usual));
    let at = live.sign_in.as_deref();
    SignIn {
        upstream: at.map_or_else(|| UpstreamName::new(""), |at| at.upstream.clone()),
        queue,
        by_code: at.is_some_and(|at| at.code.is_some()),
        until: at.and_then(|at| at.expires_at),
        requester_may,
        patience,
    }
}

/// The answers to questions that sent somebody to an address, once they were there.
pub(super) fn was_there(asked: &InputRequired) -> String {
    responses(asked.questions.iter().map(|question| (question.key.as_str(), WAS_THERE)))
}

/// Whether a person can be sent there: it is an address of the web, and nothing that a browser would run.
fn is_address(url: &str) -> bool {
    let scheme = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'`');
    scheme && url.len() <= URL_BYTES_MAX && url.bytes().all(plain) && url.parse::<hyper::Uri>().is_ok()
}

impl Session {
    /// Shows whoever is asked where to sign in. Only the question has it.
    pub(super) fn show_sign_in(&self, append: &mut Append) {
        for asked in append.asks.iter_mut().filter(|asked| asked.subject == Subject::SignIn) {
            if let (Some(grounds), Some(live)) = (&mut asked.grounds, self.live.get(&asked.call)) {
                grounds.sign_in.clone_from(&live.sign_in);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_sent_to_addresses_of_the_web_and_to_nothing_that_runs() {
        for good in ["https://id.example/device?user_code=AB-CD", "http://127.0.0.1:9/x"] {
            assert!(is_address(good), "{good}");
        }
        let long = format!("https://id.example/{}", "x".repeat(URL_BYTES_MAX));
        for bad in [
            "javascript:alert(1)",
            "data:text/html,x",
            "https://a b",
            "https://a/\"><script>",
            "",
            "file:///etc",
            &long,
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
