//! What a faked tool answers.

use amends_core::attempt::Payload;
use amends_core::nearest::nearest;
use amends_core::span::Span;
use amends_core::{Certainty, Code, Failure, Report};
use serde::Deserialize;
use serde_json::Value;

/// `answers = [{ tool = …, result = … }]`: one call of one tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerSpec {
    /// The tool, by its served name.
    pub tool: String,
    /// The arguments it must be given. Without them, any will do.
    pub with: Option<Value>,
    /// It answers with that.
    pub result: Option<Value>,
    /// It fails with that code of the registry, such as `RateLimited`, and nothing was done.
    pub error: Option<String>,
    /// What it says beside the error.
    pub message: Option<String>,
    /// It does not answer.
    pub timeout: bool,
    /// The line breaks, and nobody knows whether it was done.
    pub in_doubt: bool,
    /// It answers as the upstream did in that recorded call. `result` is what it gave, where the export does not say so.
    pub recorded: Option<String>,
    /// How long it takes. The default is `10ms`.
    pub took: Option<Span>,
    /// What was recorded.
    #[serde(skip)]
    pub(super) report: Option<Box<Report>>,
}

impl AnswerSpec {
    /// What is wrong with it, if anything is.
    pub(super) fn wrong(&self) -> Option<String> {
        let Self { tool, result, error, message, timeout, in_doubt, recorded, took, .. } = self;
        if tool.is_empty() {
            return Some("an answer names no `tool`".into());
        }
        let said = [result.is_some() && recorded.is_none(), error.is_some(), *timeout, *in_doubt, recorded.is_some()];
        match said.into_iter().filter(|said| *said).count() {
            0 => Some(format!(
                "the answer of `{tool}` says nothing: give it `result`, `error`, `timeout`, `in_doubt` or `recorded`"
            )),
            1 if message.is_some() && error.is_none() => Some(format!(
                "the answer of `{tool}` has a `message` and fails with no `error`; say which: `error = \"InputInvalid\"`, or drop it"
            )),
            1 if *timeout && took.is_some() => Some(format!(
                "`{tool}` does not answer, so it takes no time; drop `took`, or say what comes after it: `result = {{}}`"
            )),
            1 => error.as_deref().and_then(|name| code(name).err()),
            _ => Some(format!("the answer of `{tool}` says two things at once")),
        }
    }

    /// The report of it; nothing where there is no answer.
    pub(super) fn report(&self) -> Option<Report> {
        if let Some(report) = &self.report {
            return Some(report.as_ref().clone());
        }
        if self.timeout {
            return None;
        }
        if self.in_doubt {
            return Some(Report::silent(Failure::of(Code::ConnectionLost), Certainty::InDoubt));
        }
        Some(match self.error.as_deref().and_then(|name| code(name).ok()) {
            Some(code) => {
                let failure = Failure::of(code);
                let failure = match &self.message {
                    Some(text) => failure.saying(text),
                    None => failure,
                };
                Report::answered(failure, Certainty::NotProcessed, None)
            }
            None => Report::success(Some(payload(self.result.as_ref().unwrap_or(&Value::Null)))),
        })
    }
}

/// What the core sees of a body.
pub(super) fn payload(body: &Value) -> Payload {
    let text = body.to_string();
    // Nothing is kept, so that a digest need only tell one body from another.
    let digest = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Payload { digest: format!("{digest:016x}").as_str().into(), size: text.len() as u64 }
}

fn code(name: &str) -> Result<Code, String> {
    Code::parse(name).ok_or_else(|| {
        let near = nearest(name, Code::ALL.map(Code::as_str));
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("`{name}` is not a failure code{hint}")
    })
}
