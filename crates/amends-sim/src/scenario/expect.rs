//! What is expected after a step.

use amends_core::nearest::nearest;
use amends_core::{Code, RefusalKind};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Mismatch;

/// `expect = { state = …, fields = …, valid_next_actions = …, refusal = … }`: what is left out may be anything. Without
/// `refusal`, the step has to succeed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpectSpec {
    /// The state of the machine it is in.
    pub state: Option<String>,
    /// Fields of that machine; others may be there.
    pub fields: Map<String, Value>,
    /// What may be done next, in any order.
    pub valid_next_actions: Option<Vec<String>>,
    /// What the action gave.
    pub result: Option<Value>,
    /// The tools that were called, in order.
    pub calls: Option<Vec<String>>,
    /// It was refused, or failed.
    pub refusal: Option<NoSpec>,
}

/// `refusal = { kind = …, field = …, guard = … }`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoSpec {
    /// Its kind, such as `invalid_transition`, or that of a failed action.
    pub kind: String,
    /// The input that does not fit.
    pub field: Option<String>,
    /// The guard that does not hold.
    pub guard: Option<String>,
}

/// What became of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Became {
    pub(super) state: String,
    pub(super) fields: Value,
    pub(super) next: Vec<String>,
    pub(super) result: Value,
    pub(super) calls: Vec<String>,
    pub(super) no: Option<No>,
}

/// How a step was refused, or failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct No {
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) fields: Vec<String>,
    pub(super) guard: Option<String>,
}

impl ExpectSpec {
    pub(super) fn wrong(&self) -> Option<String> {
        let kind = &self.refusal.as_ref()?.kind;
        let known: Vec<&str> =
            RefusalKind::ALL.iter().map(|kind| kind.as_str()).chain(Code::ALL.map(Code::kind)).collect();
        if known.contains(&kind.as_str()) {
            return None;
        }
        let near = nearest(kind, known);
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(format!("`{kind}` is no kind of refusal{hint}"))
    }

    /// Where what became of a step is not what is expected.
    pub(super) fn compare(&self, became: &Became) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let mut differs = |what: &str, expected: String, got: String| {
            if expected != got {
                found.push(Mismatch { what: what.to_owned(), expected, got });
            }
        };
        match (&self.refusal, &became.no) {
            (None, None) => {}
            (None, Some(no)) => differs("outcome", "success".into(), format!("{}: {}", no.kind, no.message)),
            (Some(no), None) => differs("outcome", no.kind.clone(), "success".into()),
            (Some(expected), Some(no)) => {
                differs("refusal.kind", expected.kind.clone(), no.kind.clone());
                if let Some(field) = expected.field.as_ref().filter(|field| !no.fields.contains(field)) {
                    differs("refusal.field", field.clone(), no.fields.join(", "));
                }
                if let Some(guard) = &expected.guard {
                    differs("refusal.guard", guard.clone(), no.guard.clone().unwrap_or_default());
                }
            }
        }
        if let Some(state) = &self.state {
            differs("state", state.clone(), became.state.clone());
        }
        for (name, value) in &self.fields {
            let got = became.fields.get(name).unwrap_or(&Value::Null);
            if !same(value, got) {
                differs(&format!("fields.{name}"), value.to_string(), got.to_string());
            }
        }
        if let Some(next) = &self.valid_next_actions {
            differs("valid_next_actions", sorted(next), sorted(&became.next));
        }
        if let Some(result) = self.result.as_ref().filter(|result| !same(result, &became.result)) {
            differs("result", result.to_string(), became.result.to_string());
        }
        if let Some(calls) = &self.calls {
            differs("calls", calls.join(", "), became.calls.join(", "));
        }
        found
    }
}

fn sorted(names: &[String]) -> String {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.join(", ")
}

/// Whether two values say the same: `3` and `3.0` do.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_expected_is_compared_and_what_is_left_out_may_be_anything() {
        let became = Became {
            state: "paid".into(),
            fields: json!({ "amount": 3, "note": "x" }),
            next: vec!["send".into(), "drop".into()],
            ..Became::default()
        };
        let expect = |text: &str| toml::from_str::<ExpectSpec>(text).unwrap().compare(&became);
        assert!(expect("").is_empty());
        assert!(
            expect("state = \"paid\"\nvalid_next_actions = [\"drop\", \"send\"]\nfields = { amount = 3.0 }").is_empty()
        );
        let found = expect("state = \"sent\"\nfields = { amount = 4, gone = 1 }\nrefusal = { kind = \"stale_state\" }");
        let found: Vec<String> = found.iter().map(|it| format!("{}: {} / {}", it.what, it.expected, it.got)).collect();
        let said =
            ["outcome: stale_state / success", "state: sent / paid", "fields.amount: 4 / 3", "fields.gone: 1 / null"];
        assert_eq!(found, said);
        let no = No { kind: "invalid_transition".into(), guard: Some("a".into()), ..No::default() };
        let became = Became { no: Some(no), ..became };
        let expect = |text: &str| toml::from_str::<ExpectSpec>(text).unwrap().compare(&became).len();
        assert_eq!(expect(""), 1, "a refusal that nobody expects is a mismatch");
        assert_eq!(expect("refusal = { kind = \"invalid_transition\", guard = \"a\" }"), 0);
        assert_eq!(expect("refusal = { kind = \"invalid_transition\", guard = \"b\", field = \"c\" }"), 2);
    }
}
