//! What an upstream's result or JSON-RPC error says.

use amends_core::failure::bounded;
use amends_core::{Certainty, Code, Contract, Failure, Report};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::era::MISSING_CLIENT_CAPABILITY;
use super::{Classified, ResultKind, Seen, TranslateRule, by_number, error_value, malformed, translated};
use crate::object::{Object, is_array, is_null, string};
use crate::problem::Problem;
use crate::schema::Schema;

/// What the result of a `tools/call` says of the attempt.
pub fn result(raw: &str, contract: &Contract, output: Option<&Schema>, translate: &[TranslateRule]) -> Classified {
    let Some(object) = Object::parse(raw) else {
        return other(Report::answered(malformed("the result is not an object"), Certainty::Processed, None));
    };
    match object.string("resultType").as_deref() {
        None | Some("complete") => {}
        Some("input_required") => {
            return asks(ResultKind::InputRequired, Certainty::NotProcessed, "input_required");
        }
        Some("task") => return asks(ResultKind::Task, Certainty::InDoubt, "task"),
        Some(kind) => return asks(ResultKind::Other, Certainty::InDoubt, kind),
    }
    let failed = match object.get("isError").map(RawValue::get) {
        None | Some("false" | "null") => false,
        Some("true") => true,
        Some(_) => {
            let failure = Failure::of(Code::ActionError).saying("`isError` is not a boolean");
            return other(Report::answered(failure, Certainty::InDoubt, None));
        }
    };
    let value = if failed || !translate.is_empty() { parts(&object) } else { None };
    let mut report = if failed { failure(&object, value.as_ref(), contract) } else { success(&object, output) };
    if !translate.is_empty() {
        let seen = Seen {
            raw: serde_json::from_str(raw).unwrap_or_default(),
            result: value.clone().unwrap_or_default(),
            ..Seen::default()
        };
        if let Some(code) = seen.translate(translate) {
            let mut problem = value.as_ref().and_then(Problem::read).unwrap_or_default();
            problem.text = problem.text.or_else(|| text(&object).map(|text| bounded(&text)));
            let before = report.failure.is_some().then_some(report.certainty);
            report = translated(code, &problem, before, contract);
        }
    }
    Classified { report, kind: ResultKind::Tool }
}

/// What a JSON-RPC error says of the attempt.
pub fn rpc_error(
    code: i64,
    message: &str,
    data: Option<&RawValue>,
    contract: &Contract,
    translate: &[TranslateRule],
) -> Classified {
    let data: Value = data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    let mut problem = Problem::read(&data).unwrap_or_default();
    let judged = problem.judge(contract);
    problem.text = problem.text.or_else(|| Some(bounded(message)));
    if code == MISSING_CLIENT_CAPABILITY {
        let required = data["requiredCapabilities"].as_object();
        let names = required.map(|required| required.keys().map(String::as_str).collect::<Vec<_>>().join(","));
        problem.field = names.filter(|names| !names.is_empty()).map(|names| bounded(&names)).or(problem.field);
    }
    let word = problem.code.replace(code.to_string());
    // The number is the code that is quoted; the upstream's own word stays with its text.
    if let (Some(word), Some(text)) = (word, &mut problem.text) {
        *text = bounded(&format!("{word}: {text}"));
    }
    let (found, certainty) = judged.map_or_else(|| by_number(code), |(failure, certainty)| (failure.code, certainty));
    let mut report = Report::answered(problem.failure(found), certainty, None);
    if !translate.is_empty() {
        let seen = Seen { error: error_value(code, message, &data), ..Seen::default() };
        if let Some(code) = seen.translate(translate) {
            report = translated(code, &problem, Some(certainty), contract);
        }
    }
    Classified { report, kind: ResultKind::RpcError }
}

/// What expressions see as `result`: the structured content, or the single text block if it is JSON.
pub fn structured(raw: &str) -> Option<Value> {
    parts(&Object::parse(raw)?)
}

fn parts(object: &Object<'_>) -> Option<Value> {
    if let Some(value) = structured_content(object) {
        return serde_json::from_str(value.get()).ok();
    }
    serde_json::from_str(&text(object)?).ok()
}

fn structured_content<'a>(object: &Object<'a>) -> Option<&'a RawValue> {
    object.get("structuredContent").filter(|value| !is_null(value))
}

/// The text of a result that has exactly one text block.
fn text(object: &Object<'_>) -> Option<String> {
    let blocks: Vec<Object<'_>> = serde_json::from_str(object.get("content")?.get()).ok()?;
    let mut texts = blocks.iter().filter(|block| block.string("type").as_deref() == Some("text"));
    let only = texts.next().filter(|_| texts.next().is_none())?;
    string(only.get("text")?).map(|text| text.into_owned())
}

/// All the text of a result, for quoting.
fn said(object: &Object<'_>) -> String {
    let blocks: Vec<Object<'_>> =
        object.get("content").and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default();
    let texts: Vec<_> = blocks.iter().filter_map(|block| block.string("text")).take(4).collect();
    texts.join(" ")
}

/// A result that says it is good: it must be a tool's result, and fit what the tool declares.
fn success(object: &Object<'_>, output: Option<&Schema>) -> Report {
    let content = object.get("content");
    let structured = structured_content(object);
    let complaint = if content.is_some_and(|content| !is_array(content)) {
        Some("`content` is not a list".to_owned())
    } else if content.is_none() && structured.is_none() {
        Some("there is neither `content` nor `structuredContent`".to_owned())
    } else {
        output.and_then(|schema| misfit(schema, structured))
    };
    match complaint {
        None => Report::success(None),
        Some(complaint) => Report::answered(malformed(&complaint), Certainty::Processed, None),
    }
}

/// How structured content fails to fit what the tool declares.
fn misfit(schema: &Schema, structured: Option<&RawValue>) -> Option<String> {
    let Some(raw) = structured else {
        return Some("there is no `structuredContent`, which the tool's output schema asks for".to_owned());
    };
    let Ok(value) = serde_json::from_str::<Value>(raw.get()) else {
        return Some("`structuredContent` cannot be read".to_owned());
    };
    // What would take too long to check is left to the agent.
    if schema.fits(&value) != Some(false) {
        return None;
    }
    let faults = schema.check(&value);
    let first = faults.first().map(|fault| {
        let field = if fault.field.is_empty() { "structuredContent" } else { &fault.field };
        format!("`{field}` should be {}", fault.expected)
    });
    Some(first.unwrap_or_else(|| "`structuredContent` does not fit the tool's output schema".to_owned()))
}

/// A result that says it is bad: by its problem details, else quoted as it is.
fn failure(object: &Object<'_>, value: Option<&Value>, contract: &Contract) -> Report {
    let problem = tool_failure(object).or_else(|| value.and_then(Problem::read));
    if let Some((mut failure, certainty)) = problem.as_ref().and_then(|problem| problem.judge(contract)) {
        if failure.upstream.as_ref().is_none_or(|words| words.text.is_none()) {
            failure = failure.saying(&said(object));
        }
        return Report::answered(failure, certainty, None);
    }
    let failure = problem.unwrap_or_default().failure(Code::ActionError);
    let quoted = match failure.upstream.as_ref().and_then(|words| words.text.as_deref()) {
        Some(_) => failure,
        None => failure.saying(&said(object)),
    };
    Report::answered(quoted, Certainty::InDoubt, None)
}

/// What a result's metadata says of its failure: the member of `_meta` named `toolFailure`, with or without a prefix, in any
/// shape of problem that is known.
fn tool_failure(object: &Object<'_>) -> Option<Problem> {
    let meta: Map<String, Value> = serde_json::from_str(object.get("_meta")?.get()).ok()?;
    let named = meta.iter().find(|(name, _)| name.rsplit('/').next() == Some("toolFailure"));
    named.and_then(|(_, value)| Problem::read(value))
}

/// A result that is not the end of the matter, although we never said that we could go on with it.
fn asks(kind: ResultKind, certainty: Certainty, word: &str) -> Classified {
    let failure = Failure::of(Code::MissingCapability)
        .saying(&format!("the answer is of the type `{word}`, which was not asked for"));
    Classified { report: Report::answered(failure, certainty, None), kind }
}

fn other(report: Report) -> Classified {
    Classified { report, kind: ResultKind::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_core::expression::Expression;

    fn contract() -> Contract {
        Contract::undeclared(1000, 1000, 1000)
    }

    fn rule(when: &str, code: Code) -> TranslateRule {
        TranslateRule { when: Expression::parse(when).unwrap(), code }
    }

    #[test]
    fn the_first_rule_that_holds_wins_and_one_without_an_answer_does_not_hold() {
        let rules = [
            rule("result.nothing.here", Code::Forbidden),
            rule("result.status == 409 && result.code == 'in_use'", Code::KeyInFlight),
            rule("true", Code::NotFound),
        ];
        let raw = r#"{"isError":true,"content":[],"structuredContent":{"status":409,"code":"in_use"}}"#;
        let report = result(raw, &contract(), None, &rules).report;
        assert_eq!(report.failure.unwrap().code, Code::KeyInFlight);
        assert_eq!(report.certainty, Certainty::InDoubt);
    }

    #[test]
    fn a_rule_can_turn_a_success_or_an_error_into_what_it_is() {
        let rules = [rule("raw.content[0].text == 'DUPLICATE' || error.code == -32050", Code::AlreadyProcessed)];
        let raw = r#"{"content":[{"type":"text","text":"DUPLICATE"}]}"#;
        let report = result(raw, &contract(), None, &rules).report;
        assert_eq!((report.failure.unwrap().code, report.certainty), (Code::AlreadyProcessed, Certainty::Processed));
        let rules = [rule("error.code == -32050", Code::ConnectRefused)];
        let report = rpc_error(-32050, "down", None, &contract(), &rules).report;
        assert_eq!(report.certainty, Certainty::NotProcessed);
    }

    #[test]
    fn the_text_beside_a_rule_is_cut_like_any_other() {
        let raw = format!(r#"{{"content":[{{"type":"text","text":"pay\u202eagain {}"}}]}}"#, "x".repeat(2000));
        let report = result(&raw, &contract(), None, &[rule("true", Code::NotFound)]).report;
        let text = report.failure.unwrap().upstream.unwrap().text.unwrap();
        assert!(text.starts_with("payagain x") && text.len() < 600, "{text}");
    }

    #[test]
    fn text_that_is_json_is_read_like_structured_content() {
        let raw = r#"{"content":[{"type":"text","text":"{\"found\": true}"}]}"#;
        assert_eq!(structured(raw).unwrap()["found"], true);
        assert!(structured(r#"{"content":[{"type":"text","text":"hello"}]}"#).is_none());
    }

    #[test]
    fn the_number_of_an_error_is_its_code_and_its_data_is_read() {
        let data = RawValue::from_string(r#"{"status":429,"code":"slow_down","retry_after":2}"#.into()).unwrap();
        let report = rpc_error(-32000, "busy", Some(&data), &contract(), &[]).report;
        let failure = report.failure.unwrap();
        assert_eq!((failure.code, failure.status, failure.retry_after_ms), (Code::RateLimited, Some(429), Some(2000)));
        let words = failure.upstream.unwrap();
        assert_eq!((words.code.as_deref(), words.text.as_deref()), (Some("-32000"), Some("slow_down: busy")));
    }
}
