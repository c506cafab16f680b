//! A recorded envelope, given again.

use serde_json::value::RawValue;

use super::{ClientTraits, ENVELOPE, RECEIPT, Receipt, block};
use crate::mcp::Dialect;
use crate::mcp::era::{Era, stamped};
use crate::object::Object;
use crate::splice::Splice;

/// How an agent means another call where it was given a recorded answer.
pub const TO_MEAN_ANOTHER: &str = "to mean another one, send it with a fresh `amends/key` in `_meta`";

/// A recorded envelope as a result. That of an equal call was marked `replayed` by whoever took it from the ledger.
pub fn recorded(envelope: &RawValue, receipt: Option<&Receipt>, traits: ClientTraits, declares_output: bool) -> String {
    let full = envelope.get();
    let object = Object::parse(full);
    let status = object.as_ref().and_then(|envelope| envelope.string("status")).unwrap_or_default();
    let failed = !matches!(&*status, "success" | "empty" | "partial" | "degraded");
    let data = object.as_ref().and_then(|envelope| envelope.get("data")).map(|data| data.get());
    let said = object
        .as_ref()
        .and_then(|envelope| Object::parse(envelope.get("error")?.get())?.string("message"))
        .map(|message| format!(" It said: {message}."))
        // A tool that declares its output marks this as an error, and a model must not take it for one.
        .unwrap_or_else(|| if failed || data.is_some() { String::new() } else { " It was done.".to_owned() });
    let doubt = object
        .as_ref()
        .and_then(|envelope| Object::parse(envelope.get("error")?.get())?.string("certainty"))
        .is_some_and(|certainty| certainty == "in_doubt");
    // Nothing may invite a repeat of what is in doubt.
    let next = if doubt { "Do not call it again; tell the user".to_owned() } else { capital(TO_MEAN_ANOTHER) };
    let again =
        object.as_ref().and_then(|envelope| envelope.get("replayed")).is_some_and(|again| again.get() == "true");
    let text = match (again, doubt) {
        (true, _) => {
            format!("This is the recorded answer of an equal call, given again; nothing was sent.{said} {next}.")
        }
        // Whoever fetches the answer of its own call was not given it before.
        (false, true) => format!("The call is over.{said} {next}."),
        (false, false) => format!("The call is over.{said}"),
    };
    let mut content = block(&text);
    let spoken = traits.dialect.render(envelope);
    let fitting = data.filter(|data| traits.era == Era::Modern || data.starts_with('{'));
    // As for an answer that is given for the first time: what does not fit a declared output passes only as an error.
    let unfit = declares_output && (failed || fitting.is_none());
    let is_error = unfit || (failed && traits.dialect.marks_error(&spoken));
    let spoken = spoken.get();
    if traits.dialect == Dialect::Theodosia {
        content = format!("{content},{}", block(spoken));
    }
    let structured = match (declares_output, unfit) {
        (false, _) => Some(spoken),
        (true, true) if traits.validates_errors => {
            if traits.dialect != Dialect::Theodosia {
                content = format!("{content},{}", block(spoken));
            }
            None
        }
        (true, true) => Some(spoken),
        (true, false) => fitting,
    };
    let mut splice = Splice::new(full);
    let _ = splice.remove_member(full, "data");
    let mut meta = format!("\"{ENVELOPE}\":{}", splice.finish());
    if let Some(receipt) = receipt {
        meta.push_str(&format!(",\"{RECEIPT}\":{}", receipt.json()));
    }
    let structured = structured.map(|value| format!(",\"structuredContent\":{value}")).unwrap_or_default();
    let result = format!("{{\"content\":[{content}]{structured},\"isError\":{is_error},\"_meta\":{{{meta}}}}}");
    stamped(&result, "tools/call", traits.era)
}

fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn given(envelope: &str, declares_output: bool) -> Value {
        let raw = RawValue::from_string(envelope.to_owned()).unwrap();
        let traits = ClientTraits::of(Era::Legacy, None);
        serde_json::from_str(&recorded(&raw, None, traits, declares_output)).unwrap()
    }

    #[test]
    fn a_recorded_doubt_stays_an_error_and_says_that_nothing_was_sent() {
        let doubt = r#"{"status":"error","error":{"message":"no answer; it may have happened"},"replayed":true}"#;
        let result = given(doubt, false);
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["replayed"], true);
        assert!(result["content"][0]["text"].as_str().unwrap().contains("nothing was sent"));
        let kept_from_the_schema = given(doubt, true);
        assert!(kept_from_the_schema.get("structuredContent").is_none());
        assert!(kept_from_the_schema["content"][1]["text"].as_str().unwrap().contains("replayed"));
    }

    #[test]
    fn what_a_person_found_to_be_done_is_told_also_where_a_tool_declares_another_output() {
        let settled = r#"{"status":"degraded","degradation_reason":"settled_by_person","replayed":true}"#;
        let raw = RawValue::from_string(settled.to_owned()).unwrap();
        let modern = recorded(&raw, None, ClientTraits::of(Era::Modern, None), true);
        let modern: Value = serde_json::from_str(&modern).unwrap();
        assert_eq!(modern["isError"], true);
        assert_eq!(modern["structuredContent"]["status"], "degraded");
        assert!(modern["content"][0]["text"].as_str().unwrap().contains("It was done."));
        let strict = given(settled, true);
        assert!(strict.get("structuredContent").is_none());
        assert!(strict["content"][1]["text"].as_str().unwrap().contains("settled_by_person"));
    }

    #[test]
    fn a_recorded_success_of_a_tool_with_a_schema_gives_its_data() {
        let result = given(r#"{"status":"success","data":{"id":"re_1"},"replayed":true}"#, true);
        assert_eq!(result["structuredContent"]["id"], "re_1");
        assert_eq!(result["isError"], false);
        assert!(result["_meta"][ENVELOPE].get("data").is_none());
    }
}
