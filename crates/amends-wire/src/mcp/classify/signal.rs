//! What the transport says of an attempt when there is no result to read.

use amends_core::failure::bounded;
use amends_core::{Certainty, Code, Contract, EffectKind, Failure, Report};
use serde_json::{Value, json};

use super::{Classified, ResultKind, TranslateRule, by_number, malformed, rpc_error};
use crate::message::Message;
use crate::problem::Problem;
use crate::status::{meaning, retry_after_ms};

/// What became of an attempt that did not end with a JSON-RPC answer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal<'a> {
    /// No connection came about.
    ConnectRefused,
    /// A connection came about, but no TLS on it, so that nothing was sent.
    Handshake {
        /// Why, in TLS's own words.
        reason: &'a str,
    },
    /// What we host does not start: it ends again and again, and is only tried from time to time.
    Unstartable {
        /// Why, in our own words.
        reason: &'a str,
    },
    /// Nothing left us, for whatever reason.
    NotWritten,
    /// No answer came in time.
    TimedOut,
    /// The line broke, or the upstream's process died, after the first byte had left.
    Lost,
    /// The answer is larger than we take.
    TooLarge,
    /// The answer is not JSON-RPC.
    Unreadable {
        /// How it starts.
        text_start: &'a str,
    },
    /// The answer is an HTTP status other than success.
    HttpStatus {
        /// The status.
        status: u16,
        /// The header `Retry-After`.
        retry_after: Option<&'a str>,
        /// The header `Content-Type`.
        content_type: Option<&'a str>,
        /// The body, or its start.
        body: &'a str,
    },
    /// The upstream does not know our session; it did not look at the request.
    SessionGone,
    /// The upstream refused the message with the status 400, perhaps because it does not know our session.
    SessionPerhapsGone {
        /// The body, or its start.
        body: &'a str,
    },
}

/// What a signal says of the attempt. `now_ms` is the time, for a `Retry-After` that is a date.
pub fn signal(signal: Signal<'_>, contract: &Contract, translate: &[TranslateRule], now_ms: u64) -> Classified {
    let silent = |code, certainty| Report::silent(Failure::of(code), certainty);
    let gone = || Report::answered(Failure::of(Code::ConnectionLost), Certainty::NotProcessed, None);
    let report = match signal {
        Signal::ConnectRefused | Signal::NotWritten => silent(Code::ConnectRefused, Certainty::NotSent),
        Signal::Handshake { reason } => {
            Report::silent(Failure::of(Code::ConnectRefused).saying(reason), Certainty::NotSent)
        }
        Signal::Unstartable { reason } => {
            Report::silent(Failure::of(Code::LifecycleFailure).saying(reason), Certainty::NotSent)
        }
        Signal::TimedOut => silent(Code::NetworkTimeout, Certainty::InDoubt),
        Signal::Lost => silent(Code::ConnectionLost, Certainty::InDoubt),
        Signal::TooLarge => Report::answered(malformed("the answer is too large"), Certainty::InDoubt, None),
        Signal::Unreadable { text_start } => Report::answered(malformed(text_start), Certainty::InDoubt, None),
        Signal::SessionGone => gone(),
        // What is no proof is not enough to send a plain write again; the agent hears what the upstream said.
        Signal::SessionPerhapsGone { body }
            if contract.effect == EffectKind::Write && !contract.rejects_before_effect.contains(&400) =>
        {
            return http(400, None, &json!({}), body, contract, translate);
        }
        Signal::SessionPerhapsGone { .. } => gone(),
        Signal::HttpStatus { status, retry_after, content_type, body } => {
            let wait = retry_after.and_then(|header| retry_after_ms(header, now_ms));
            let headers = json!({"content-type": content_type, "retry-after": retry_after});
            return http(status, wait, &headers, body, contract, translate);
        }
    };
    Classified { report, kind: ResultKind::Other }
}

/// What an HTTP status says, with the JSON-RPC error or the problem details in its body.
fn http(
    status: u16,
    wait: Option<u64>,
    headers: &Value,
    body: &str,
    contract: &Contract,
    translate: &[TranslateRule],
) -> Classified {
    let found = match Message::parse(body.trim()) {
        Ok(Message::Failure { error, .. }) => {
            let found = rpc_error(error.code, &error.message, error.data, contract, &[]);
            // JSON-RPC's own errors say more than the status they come with; any other says less.
            let named = !matches!(by_number(error.code).0, Code::ActionError | Code::Provider5xx);
            if named { Ok(found) } else { Err(found.report.failure) }
        }
        _ => Err(None),
    };
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let mut classified = found.unwrap_or_else(|rpc| {
        let problem = Problem::read(&value).unwrap_or_default();
        let (mut failure, certainty) = match problem.settled {
            Some(settled) => (problem.failure(settled.code), settled.certainty),
            None => {
                let found = meaning(status, problem.code.as_deref(), contract);
                (problem.failure(found.code), found.certainty)
            }
        };
        failure.upstream = failure.upstream.or_else(|| rpc.and_then(|rpc| rpc.upstream));
        if failure.upstream.is_none() && !body.trim().is_empty() {
            failure = failure.saying(body);
        }
        Classified { report: Report::answered(failure, certainty, None), kind: ResultKind::Other }
    });
    if let Some(failure) = &mut classified.report.failure {
        failure.status = Some(status);
        failure.retry_after_ms = wait.or(failure.retry_after_ms);
    }
    if !translate.is_empty() {
        let http = json!({"status": status, "headers": headers});
        let problem =
            Problem { status: Some(status), retry_after_ms: wait, text: Some(bounded(body)), ..Problem::default() };
        let before = classified.report.certainty;
        if let Some(translated) = super::translate(http, value, translate, &problem, before, contract) {
            classified.report = translated;
        }
    }
    classified
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, retry_after: Option<&str>, body: &str) -> (Code, Certainty, Option<u64>) {
        let contract = Contract::undeclared(1, 1, 1);
        let signal =
            super::signal(Signal::HttpStatus { status, retry_after, content_type: None, body }, &contract, &[], 0);
        assert!(signal.report.answered);
        let failure = signal.report.failure.unwrap();
        assert_eq!(failure.status, Some(status));
        (failure.code, signal.report.certainty, failure.retry_after_ms)
    }

    #[test]
    fn a_status_keeps_its_retry_after_and_its_bodys_error() {
        assert_eq!(of(503, Some("3"), "<html>"), (Code::Provider5xx, Certainty::InDoubt, Some(3000)));
        let missing = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        assert_eq!(of(404, None, missing), (Code::MissingCapability, Certainty::NotProcessed, None));
        let vague = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#;
        assert_eq!(of(429, None, vague), (Code::RateLimited, Certainty::InDoubt, None));
        let done = r#"{"code":"already_processed"}"#;
        assert_eq!(of(409, None, done), (Code::AlreadyProcessed, Certainty::Processed, None));
    }

    #[test]
    fn a_rule_sees_the_status() {
        let when = amends_core::expression::Expression::parse("http.status == 418").unwrap();
        let rules = [TranslateRule { when, code: Code::ResourceBusy }];
        let teapot = Signal::HttpStatus { status: 418, retry_after: None, content_type: None, body: "" };
        let report = super::signal(teapot, &Contract::undeclared(1, 1, 1), &rules, 0).report;
        assert_eq!(report.failure.unwrap().code, Code::ResourceBusy);
    }
}
