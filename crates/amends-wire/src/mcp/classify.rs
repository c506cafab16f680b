//! The world into reports: what an upstream's answer, error or silence says of an attempt.
//!
//! Everything is read from structure: flags, statuses, codes from closed lists. Sentences are quoted, never read.

mod answer;
mod signal;

use amends_core::expression::Expression;
use amends_core::{Certainty, Code, Contract, Failure, Report};
use serde_json::{Value, json};

pub use answer::{result, rpc_error, structured};
pub use signal::{Signal, signal};

use crate::problem::Problem;

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Classified {
    /// The report for the core. Its payload is left out: digests are made by whoever holds the key.
    pub report: Report,
    /// What the answer is.
    pub kind: ResultKind,
}

/// What an upstream's answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The result of a tool, good or bad.
    Tool,
    /// A question back, which ends the request.
    InputRequired,
    /// A task that goes on after the answer.
    Task,
    /// A JSON-RPC error.
    RpcError,
    /// Something nobody can use as a result, or no answer at all.
    Other,
}

/// An operator's rule for an upstream's own vocabulary: when the expression holds, it is that failure.
///
/// The expression sees `result` (structured content, or the text parsed as JSON), `raw` (the whole result), `error` (a JSON-RPC
/// error) and `http` (status and headers). What is not there is null.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslateRule {
    /// When it applies.
    pub when: Expression,
    /// What it is.
    pub code: Code,
}

/// What a rule's expression can see.
#[derive(Debug, Default)]
struct Seen {
    result: Value,
    raw: Value,
    error: Value,
    http: Value,
}

impl Seen {
    /// The code of the first rule that holds. One that gives no answer does not hold.
    fn translate(&self, rules: &[TranslateRule]) -> Option<Code> {
        let variables = [("result", &self.result), ("raw", &self.raw), ("error", &self.error), ("http", &self.http)];
        rules.iter().find(|rule| matches!(rule.when.evaluate(&variables), Ok(Value::Bool(true)))).map(|rule| rule.code)
    }
}

/// The report of an HTTP answer under the code of the first rule that holds; nothing where none does.
pub(crate) fn translate(
    http: Value,
    result: Value,
    rules: &[TranslateRule],
    problem: &Problem,
    before: Certainty,
    contract: &Contract,
) -> Option<Report> {
    let error = result.get("error").cloned().unwrap_or_default();
    let code = Seen { http, error, result, ..Seen::default() }.translate(rules)?;
    Some(translated(code, problem, Some(before), contract))
}

/// A report under the code an operator's rule gave it. The code's own proof counts; where it has none, that of the signal.
fn translated(code: Code, problem: &Problem, before: Option<Certainty>, contract: &Contract) -> Report {
    let taken = problem.status.is_some_and(|status| contract.rejects_before_effect.contains(&status));
    let certainty = match code.implies() {
        // The upstream answered, so something was sent to it.
        Some(Certainty::NotSent) => Certainty::NotProcessed,
        Some(proven) => proven,
        None if taken => Certainty::NotProcessed,
        None => before.unwrap_or(Certainty::InDoubt),
    };
    Report::answered(problem.failure(code), certainty, None)
}

/// The code and certainty of a JSON-RPC error by its number alone, in JSON-RPC's and MCP's own meaning.
fn by_number(code: i64) -> (Code, Certainty) {
    match code {
        -32700 | -32600 | -32602 => (Code::InputInvalid, Certainty::NotProcessed),
        -32601 | -32020 | -32021 => (Code::MissingCapability, Certainty::NotProcessed),
        -32022 => (Code::ContractVersionMismatch, Certainty::NotProcessed),
        -32603 => (Code::Provider5xx, Certainty::InDoubt),
        _ => (Code::ActionError, Certainty::InDoubt),
    }
}

/// Whether a JSON-RPC error is one that the protocol itself needs, so that it goes on to the agent as it is.
pub const fn is_protocols_own(code: i64) -> bool {
    matches!(code, -32022..=-32020 | -32601)
}

/// The value that expressions see of a JSON-RPC error.
fn error_value(code: i64, message: &str, data: &Value) -> Value {
    json!({"code": code, "message": message, "data": data})
}

/// The failure of an answer that is none.
fn malformed(text: &str) -> Failure {
    Failure::of(Code::OutputMalformed).saying(text)
}

#[cfg(test)]
mod goldens;
