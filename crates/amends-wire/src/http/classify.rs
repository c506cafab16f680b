//! An HTTP API's answer into a report: by its status, its headers, and the problem in its body.

use amends_core::failure::bounded;
use amends_core::{Certainty, Code, Contract, Failure, Report};
use serde_json::{Map, Value, json};

use crate::mcp::classify::{Classified, ResultKind, TranslateRule, translate};
use crate::problem::Problem;
use crate::rate_limit::wait_seconds;
use crate::status::{meaning, retry_after_ms};

/// An answer that is no tool's result.
#[derive(Clone, Copy, Debug)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// The headers, by their names in lower case.
    pub headers: &'a [(String, String)],
    /// The body, or its start.
    pub body: &'a str,
}

impl HttpAnswer<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// How long it asks to wait. What it says outright outranks what its limits let one conclude.
    fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        let asked = self.header("retry-after").and_then(|header| retry_after_ms(header, now_ms));
        asked.or_else(|| wait_seconds(|name| self.header(name), now_ms).map(|seconds| seconds.saturating_mul(1000)))
    }
}

/// What an answer says of the attempt. `now_ms` is the time, for a `Retry-After` that is a date.
pub fn answer(answer: HttpAnswer<'_>, contract: &Contract, rules: &[TranslateRule], now_ms: u64) -> Classified {
    let value: Value = serde_json::from_str(answer.body).unwrap_or_default();
    let (mut failure, certainty) = if (200..300).contains(&answer.status) {
        // It was done, whatever is wrong with the words about it.
        (Failure::of(Code::OutputMalformed).saying("the answer is too large"), Certainty::Processed)
    } else {
        judged(&answer, &value, contract)
    };
    failure.status = Some(answer.status);
    failure.retry_after_ms = answer.wait_ms(now_ms).or(failure.retry_after_ms);
    let mut report = Report::answered(failure, certainty, None);
    if !rules.is_empty() {
        let headers: Map<String, Value> =
            answer.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let http = json!({ "status": answer.status, "headers": headers });
        let problem = Problem {
            status: Some(answer.status),
            retry_after_ms: answer.wait_ms(now_ms),
            text: Some(bounded(answer.body)),
            ..Problem::default()
        };
        if let Some(translated) = translate(http, value, rules, &problem, certainty, contract) {
            report = translated;
        }
    }
    Classified { report, kind: ResultKind::Other }
}

/// By the problem in the body where a gateway like us settled it, else by the status and the upstream's own word.
fn judged(answer: &HttpAnswer<'_>, value: &Value, contract: &Contract) -> (Failure, Certainty) {
    let problem = Problem::read(value).unwrap_or_default();
    let found = problem.settled.unwrap_or_else(|| meaning(answer.status, problem.code.as_deref(), contract));
    let mut failure = problem.failure(found.code);
    let silent = failure.upstream.as_ref().is_none_or(|words| words.text.is_none());
    if silent && !answer.body.trim().is_empty() {
        failure = failure.saying(answer.body);
    }
    (failure, found.certainty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_core::EffectKind;
    use amends_core::expression::Expression;

    fn of(status: u16, headers: &[(&str, &str)], body: &str, effect: EffectKind) -> Report {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let contract = Contract { effect, ..Contract::undeclared(1, 1, 1) };
        answer(HttpAnswer { status, headers: &headers, body }, &contract, &[], 0).report
    }

    fn plain(status: u16, body: &str) -> (Code, Certainty) {
        let report = of(status, &[], body, EffectKind::Write);
        (report.failure.unwrap().code, report.certainty)
    }

    #[test]
    fn a_status_is_judged_with_the_problem_in_its_body() {
        assert_eq!(plain(412, ""), (Code::EvidenceStale, Certainty::NotProcessed));
        assert_eq!(plain(404, "<html>"), (Code::NotFound, Certainty::NotProcessed));
        assert_eq!(plain(500, "{}"), (Code::Provider5xx, Certainty::InDoubt));
        assert_eq!(plain(308, ""), (Code::MissingCapability, Certainty::NotProcessed));
        assert_eq!(plain(302, ""), (Code::ActionError, Certainty::InDoubt));
        assert_eq!(plain(409, r#"{"code":"already_processed"}"#), (Code::AlreadyProcessed, Certainty::Processed));
        assert_eq!(of(409, &[], "", EffectKind::Keyed).failure.unwrap().code, Code::KeyInFlight);
        assert_eq!(plain(200, "{\"a\":"), (Code::OutputMalformed, Certainty::Processed));
        let google = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota"}}"#;
        assert_eq!(plain(429, google), (Code::RateLimited, Certainty::InDoubt));
    }

    #[test]
    fn a_body_in_another_protocols_words_is_only_quoted() {
        let rpc = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        assert_eq!(plain(500, rpc), (Code::Provider5xx, Certainty::InDoubt));
    }

    #[test]
    fn the_wait_is_what_is_asked_for_outright_or_what_the_limits_say() {
        let wait =
            |headers: &[(&str, &str)], body| of(429, headers, body, EffectKind::Read).failure.unwrap().retry_after_ms;
        assert_eq!(wait(&[("retry-after", "7"), ("ratelimit", "\"d\";r=0;t=30")], ""), Some(7_000));
        assert_eq!(wait(&[("ratelimit", "\"d\";r=0;t=30")], ""), Some(30_000));
        assert_eq!(wait(&[], r#"{"status":429,"retry_after":2}"#), Some(2_000));
    }

    #[test]
    fn what_the_problem_says_is_kept() {
        let body = r#"{"type":"about:blank","title":"Low stock","detail":"none left","status":422,"code":"stock","field":"item"}"#;
        let failure = of(422, &[], body, EffectKind::Write).failure.unwrap();
        let words = failure.upstream.unwrap();
        assert_eq!((words.text.as_deref(), words.field.as_deref()), (Some("Low stock: none left"), Some("item")));
    }

    #[test]
    fn a_rule_sees_status_headers_and_body() {
        let when = "http.status == 400 && http.headers['x-why'] == 'busy' && result.n == 1";
        let rules = [TranslateRule { when: Expression::parse(when).unwrap(), code: Code::ResourceBusy }];
        let headers = [("x-why".to_owned(), "busy".to_owned())];
        let seen = HttpAnswer { status: 400, headers: &headers, body: r#"{"n":1}"# };
        let report = answer(seen, &Contract::undeclared(1, 1, 1), &rules, 0).report;
        assert_eq!(report.failure.unwrap().code, Code::ResourceBusy);
    }
}
