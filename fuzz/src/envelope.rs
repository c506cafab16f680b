//! Envelopes: whatever went wrong, the agent gets one shape that can be read, and a text that is safe to read.

use amends_core::envelope::{AttemptLine, Body, Data, DegradationReason, Envelope, Partial, Status, Trouble};
use amends_core::failure::UpstreamWords;
use amends_core::recovery::{NextCall, Template};
use amends_core::refusal::ArgumentFault;
use amends_core::{AttemptId, Certainty, Code, Failure, Outcome, Recovery, Refusal, RefusalKind, Verdict, WhoMustAct};
use amends_wire::Object;
use amends_wire::mcp::text::text;
use amends_wire::mcp::{ClientTraits, Era, Receipt, reply};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::bytes::Bytes;

/// The longest line of a text that carries no data and no arguments.
const LINE_BYTES_MAX: usize = 8 * 1024;
const CERTAINTIES: [Certainty; 4] =
    [Certainty::InDoubt, Certainty::Processed, Certainty::NotProcessed, Certainty::NotSent];
const WHO: [WhoMustAct; 4] = [WhoMustAct::Agent, WhoMustAct::Operator, WhoMustAct::Person, WhoMustAct::Nobody];
const PAYLOADS: [&str; 6] =
    ["null", "{\"a\": 1.0}", "[]", "\"\\u0000\"", "-1e400", "{\"_meta\":7,\"resultType\":\"x\"}"];

/// Reads the bytes as an envelope and the payload it names.
pub fn target(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let envelope = envelope(&mut bytes);
    let payload = bytes.once_in(2).then(|| bytes.one_of(&PAYLOADS));
    let payload = payload.map(|payload| RawValue::from_string(payload.to_owned()).expect("it is JSON"));
    check(&envelope, payload.as_deref());
    replies(&envelope, payload.as_deref(), &mut bytes);
}

/// Checks the shape of an envelope on the wire, and its text.
pub fn check(envelope: &Envelope, payload: Option<&RawValue>) {
    let raw = envelope.to_json(payload);
    let members = Object::parse(raw.get()).expect("an envelope is an object");
    assert!(members.members().iter().all(|member| !members.repeats(&member.name())), "{raw}");
    let status = envelope.status();
    assert_eq!(members.get("error").is_some(), matches!(status, Status::Error | Status::Refused), "{raw}");
    assert_eq!(members.get("errors").is_some(), status == Status::Partial, "{raw}");
    assert_eq!(members.get("degradation_reason").is_some(), status == Status::Degraded, "{raw}");
    assert!(members.get("error").is_none() || members.get("data").is_none(), "{raw}");
    assert_eq!(members.string("charter_version").as_deref(), Some("1.0"));
    for member in members.members().iter().filter(|member| member.name() != "data") {
        // A number can be valid and still not fit into a value.
        if let Ok(mut value) = serde_json::from_str::<Value>(member.value.get()) {
            remove_foreign(&mut value);
            assert!(!has_null(&value), "{raw}");
        }
    }
    let text = text(envelope, None);
    for line in text.lines() {
        assert!(line.len() <= LINE_BYTES_MAX, "a line of {} bytes", line.len());
    }
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(!text.is_empty());
}

/// Takes out what others wrote: arguments, and results that are kept as they are.
fn remove_foreign(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "args" && name != "upstream_result");
            fields.values_mut().for_each(remove_foreign);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_foreign),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Every way to send it gives a tool's result that says whether it is an error, with the envelope in `_meta`.
fn replies(envelope: &Envelope, payload: Option<&RawValue>, bytes: &mut Bytes<'_>) {
    let era = bytes.one_of(&[Era::Legacy, Era::Modern]);
    let name = bytes.one_of(&[None, Some("mcp"), Some("other")]);
    let traits = ClientTraits::of(era, name);
    let hash = bytes.once_in(2).then(|| bytes.text());
    let checkpoint = bytes.once_in(2).then(|| bytes.number());
    let sequence = hash.as_ref().map(|_| bytes.number());
    let receipt = Receipt { trace: bytes.text(), sequence, hash, checkpoint, unrecorded: None };
    let declares_output = bytes.once_in(2);
    let failed = matches!(envelope.status(), Status::Error | Status::Refused);

    let sent = reply::envelope(envelope, payload, Some(&receipt), traits, declares_output);
    let recorded = reply::recorded(&envelope.to_json(payload), Some(&receipt), traits, declares_output);
    for sent in [sent, recorded] {
        let result = Object::parse(&sent).unwrap_or_else(|| panic!("{sent}"));
        let is_error = result.get("isError").map(RawValue::get);
        assert!(is_error == Some("true") || !failed, "{sent}");
        assert!(is_error == Some("false") || failed || declares_output, "{sent}");
        let meta = Object::parse(result.get("_meta").expect("there is a `_meta`").get()).expect("it is an object");
        assert!(meta.get(reply::ENVELOPE).is_some() && meta.get(reply::RECEIPT).is_some(), "{sent}");
        assert_eq!(result.get("resultType").is_some(), era == Era::Modern, "{sent}");
    }
    let own = payload.map_or("{\"content\":[]}", RawValue::get);
    let forwarded = reply::forward(own, envelope, Some(&receipt), traits);
    match (Object::parse(own), Object::parse(&forwarded)) {
        (Some(before), Some(after)) => {
            for member in before.members().iter().filter(|member| member.name() != "_meta") {
                assert_eq!(after.get(&member.name()).map(RawValue::get), Some(member.value.get()));
            }
        }
        (None, _) => assert_eq!(forwarded, own),
        (Some(_), None) => panic!("{forwarded}"),
    }
    if let Some((_, message, data)) = reply::protocol_error(envelope) {
        assert!(!message.is_empty() || envelope.error().is_some_and(|error| error.message.is_empty()));
        assert!(Object::parse(data.get()).is_some());
    }
}

fn envelope(bytes: &mut Bytes<'_>) -> Envelope {
    let body = match bytes.below(7) {
        0 => Body::Success { outcome: outcome(bytes), data: data(bytes) },
        1 => Body::Empty { outcome: outcome(bytes), data: bytes.once_in(2).then(|| data(bytes)) },
        2 => {
            let errors = (0..bytes.below(3)).map(|_| trouble(bytes)).collect();
            let (outcome, data, cut) = (outcome(bytes), data(bytes), bytes.once_in(2));
            match Partial::new(outcome, data.clone(), errors, u64::from(cut), cut) {
                Some(partial) => Body::Partial(Box::new(partial)),
                None => Body::Success { outcome, data },
            }
        }
        3 => Body::Degraded {
            outcome: outcome(bytes),
            data: bytes.once_in(2).then(|| data(bytes)),
            reason: DegradationReason::AnswerNotKept,
        },
        4 | 5 => Body::Error { outcome: bytes.once_in(2).then(|| outcome(bytes)), error: Box::new(trouble(bytes)) },
        _ => Body::Refused { error: Box::new(Trouble::refused(&bytes.text(), &refusal(bytes))) },
    };
    Envelope {
        attempts: (0..bytes.below(4)).map(|n| line(bytes, n)).collect(),
        replayed: bytes.once_in(2),
        valid_next_actions: bytes.once_in(2).then(|| bytes.texts(4)),
        follow_up_hints: bytes.texts(3),
        ..Envelope::of(body)
    }
}

fn outcome(bytes: &mut Bytes<'_>) -> Outcome {
    bytes.one_of(&[Outcome::Succeeded, Outcome::SucceededAfterCompensation, Outcome::Unresolved, Outcome::Exhausted])
}

fn data(bytes: &mut Bytes<'_>) -> Data {
    if bytes.once_in(2) { Data::Of(attempt()) } else { Data::Value(json!({"done": true})) }
}

fn attempt() -> AttemptId {
    AttemptId { call: "call".into(), n: 1 }
}

fn line(bytes: &mut Bytes<'_>, n: usize) -> AttemptLine {
    AttemptLine {
        n: n as u32 + 1,
        purpose: bytes.one_of(&[None, Some("status")]),
        code: bytes.once_in(2).then(|| bytes.one_of(&Code::ALL)),
        certainty: bytes.once_in(2).then(|| bytes.one_of(&CERTAINTIES)),
        happened: bytes.one_of(&[None, Some(true)]),
        ms: bytes.number(),
    }
}

/// A trouble as the dispatcher makes it: its message is ours, everything else may be anybody's.
fn trouble(bytes: &mut Bytes<'_>) -> Trouble {
    let code = bytes.one_of(&Code::ALL);
    let words = UpstreamWords {
        code: bytes.once_in(2).then(|| bytes.text()),
        text: bytes.once_in(2).then(|| bytes.text()),
        field: bytes.once_in(2).then(|| bytes.text()),
    };
    let failure = Failure {
        code,
        status: bytes.once_in(2).then_some(500),
        retry_after_ms: bytes.once_in(2).then(|| bytes.number()),
        upstream: Some(words),
    };
    let refusal = refusal(bytes);
    Trouble {
        kind: code.kind(),
        code,
        verdict: bytes.once_in(2).then(|| bytes.one_of(&Verdict::ALL)),
        requested: bytes.text(),
        message: refusal.message,
        certainty: bytes.one_of(&CERTAINTIES),
        retryable: bytes.once_in(2),
        safe_to_repeat: bytes.once_in(2),
        who_must_act: bytes.one_of(&WHO),
        retry_after_ms: failure.retry_after_ms,
        timeout_ms: bytes.once_in(4).then(|| bytes.number()),
        details: refusal.details,
        recovery: refusal.recovery,
        upstream: Trouble::quote(&failure),
        upstream_result: bytes.once_in(2).then(attempt),
        item: bytes.once_in(4).then(|| bytes.text()),
        changed: Vec::new(),
        interaction: bytes.once_in(4).then(|| "int_1".into()),
        advice: None,
    }
}

fn refusal(bytes: &mut Bytes<'_>) -> Refusal {
    let kind = bytes.one_of(&RefusalKind::ALL);
    let message = bytes.one_of(&["no", "", "there is no tool `x`.", "größer"]);
    Refusal {
        details: (0..bytes.below(4)).map(|_| fault(bytes)).collect(),
        retry_after_ms: bytes.once_in(2).then(|| bytes.number()),
        recovery: bytes.once_in(2).then(|| recovery(bytes)),
        ..Refusal::of(kind, message)
    }
}

fn fault(bytes: &mut Bytes<'_>) -> ArgumentFault {
    ArgumentFault {
        field: bytes.text(),
        expected: bytes.text(),
        got: bytes.once_in(2).then(|| bytes.text()),
        nearest: bytes.texts(3),
    }
}

fn recovery(bytes: &mut Bytes<'_>) -> Recovery {
    let args = |bytes: &mut Bytes<'_>| Map::from_iter([("n".to_owned(), json!(bytes.number()))]);
    Recovery {
        call: bytes.once_in(2).then(|| NextCall { tool: bytes.text(), args: args(bytes) }),
        template: bytes.once_in(2).then(|| Template { tool: bytes.text(), args: args(bytes), missing: bytes.texts(3) }),
        fuzzy_matches: bytes.texts(3),
        not_before: bytes.once_in(2).then(|| bytes.number()),
        to_mean_another: bytes.once_in(2).then(|| "send a fresh key".to_owned()),
    }
}
