//! What an agent's answer says of an attempt: from the state and the numbers, never from sentences.

use amends_core::{Certainty, Code, Contract, Failure, Report};
use serde_json::Value;
use serde_json::value::RawValue;

use super::agent::reason;
use super::error::Trouble;
use super::state::State;
use crate::mcp::TranslateRule;
use crate::mcp::classify::{result, rpc_error};

/// What a task that did not end well says. `raw` is the task as the result of a tool, whose data may know more than the state.
pub fn ended(state: Option<State>, raw: &str, contract: &Contract, translate: &[TranslateRule]) -> Report {
    let report = result(raw, contract, None, translate).report;
    let known = |failure: &Failure| {
        failure.code != Code::ActionError || failure.upstream.as_ref().is_some_and(|words| words.code.is_some())
    };
    // What its own data, or an operator's rule, says of it counts before the word for its state.
    if report.failure.as_ref().is_none_or(known) {
        return report;
    }
    let text = report.failure.as_ref().and_then(|failure| failure.upstream.as_ref()?.text.clone());
    let say = |code: Code, otherwise: &str| {
        let failure = Failure::of(code);
        failure.saying(text.as_deref().filter(|text| !text.is_empty()).unwrap_or(otherwise))
    };
    match state {
        Some(State::Rejected) => {
            Report::answered(say(Code::ActionError, "the agent rejected it"), Certainty::NotProcessed, None)
        }
        // That it stops is no proof that nothing was done before.
        Some(State::Canceled) => {
            Report::answered(say(Code::ToolCancelled, "the agent stopped it"), Certainty::InDoubt, None)
        }
        Some(State::InputRequired | State::AuthRequired) => {
            let words = "the agent needs an answer, and nobody can be asked for it";
            Report::answered(say(Code::MissingCapability, words), Certainty::InDoubt, None)
        }
        Some(State::Failed | State::Completed | State::Submitted | State::Working) => {
            Report::answered(say(Code::ActionError, "the agent failed, and did not say why"), Certainty::InDoubt, None)
        }
        None => {
            let words = "the task is in a state that is not known here";
            Report::answered(say(Code::OutputMalformed, words), Certainty::InDoubt, None)
        }
    }
}

/// What an error of an agent says. Its number counts in A2A's own meaning, and less than the reason it names.
pub fn error(
    number: i64,
    message: &str,
    data: Option<&RawValue>,
    contract: &Contract,
    translate: &[TranslateRule],
) -> Report {
    let report = rpc_error(number, message, data, contract, translate).report;
    let value: Value = data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    let Some(trouble) = Trouble::find(number, reason(&value)) else { return report };
    // An operator's rule, or what the error's data say, was found already.
    let plain = rpc_error(number, message, None, contract, &[]).report;
    let code = |report: &Report| report.failure.as_ref().map(|failure| failure.code);
    if code(&report) != code(&plain) {
        return report;
    }
    let (code, certainty) = match trouble {
        Trouble::Internal | Trouble::InvalidAgentResponse => (Code::Provider5xx, Certainty::InDoubt),
        Trouble::TaskNotFound => (Code::NotFound, Certainty::NotProcessed),
        Trouble::Version => (Code::ContractVersionMismatch, Certainty::NotProcessed),
        Trouble::Parse | Trouble::InvalidRequest | Trouble::InvalidParams => {
            (Code::InputInvalid, Certainty::NotProcessed)
        }
        Trouble::TaskNotCancelable => (Code::ActionError, Certainty::InDoubt),
        Trouble::MethodNotFound
        | Trouble::PushNotSupported
        | Trouble::UnsupportedOperation
        | Trouble::ContentType
        | Trouble::NoExtendedCard
        | Trouble::ExtensionRequired => (Code::MissingCapability, Certainty::NotProcessed),
    };
    let failure = report.failure.map(|failure| Failure { code, ..failure }).unwrap_or_else(|| Failure::of(code));
    Report::answered(failure, certainty, None)
}

#[cfg(test)]
mod goldens;
