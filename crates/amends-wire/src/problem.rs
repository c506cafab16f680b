//! What an upstream says of its own failure, in the shapes we know: problem details, google.rpc.Status, our own envelope.

use amends_core::failure::{UpstreamWords, bounded};
use amends_core::{Certainty, Code, Contract, Failure};
use serde_json::{Map, Value};

use crate::status::{Meaning, key_code, meaning};

/// What an upstream says of its own failure, read from structure and never from its sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// The status, in HTTP's meaning.
    pub status: Option<u16>,
    /// The upstream's own code.
    pub code: Option<String>,
    /// How long it asks to wait.
    pub retry_after_ms: Option<u64>,
    /// What it says.
    pub text: Option<String>,
    /// The argument it names.
    pub field: Option<String>,
    /// What a gateway like us, behind us, found out already.
    pub settled: Option<Meaning>,
}

/// The names of google.rpc codes and the HTTP statuses they stand for.
const GOOGLE: [(&str, u16); 16] = [
    ("CANCELLED", 499),
    ("UNKNOWN", 500),
    ("INVALID_ARGUMENT", 400),
    ("DEADLINE_EXCEEDED", 504),
    ("NOT_FOUND", 404),
    ("ALREADY_EXISTS", 409),
    ("PERMISSION_DENIED", 403),
    ("UNAUTHENTICATED", 401),
    ("RESOURCE_EXHAUSTED", 429),
    ("FAILED_PRECONDITION", 400),
    ("ABORTED", 409),
    ("OUT_OF_RANGE", 400),
    ("UNIMPLEMENTED", 501),
    ("INTERNAL", 500),
    ("UNAVAILABLE", 503),
    ("DATA_LOSS", 500),
];

impl Problem {
    /// Reads a problem from an object; nothing if the object is none that we know.
    ///
    /// ```
    /// use amends_wire::Problem;
    /// use serde_json::json;
    ///
    /// let problem = Problem::read(&json!({"status": 429, "code": "slow_down", "retry_after": 1.5})).unwrap();
    /// assert_eq!((problem.status, problem.retry_after_ms), (Some(429), Some(1500)));
    /// assert!(Problem::read(&json!({"status": "shipped"})).is_none());
    /// ```
    pub fn read(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        if let Some(problem) = Self::envelope(object) {
            return Some(problem);
        }
        let details = Self::details(object);
        if details.is_problem() {
            return Some(details);
        }
        let inner = object.get("error").and_then(Value::as_object)?;
        let inner = Self::google(inner).unwrap_or_else(|| Self::details(inner));
        inner.is_problem().then_some(inner)
    }

    /// The failure it stands for and what it proves; nothing if neither its status nor its code is one that we know.
    pub fn judge(&self, contract: &Contract) -> Option<(Failure, Certainty)> {
        let found = self.meaning(contract)?;
        Some((self.failure(found.code), found.certainty))
    }

    /// The failure of that code with what the problem says.
    pub fn failure(&self, code: Code) -> Failure {
        let words = UpstreamWords { code: self.code.clone(), text: self.text.clone(), field: self.field.clone() };
        Failure {
            code,
            status: self.status,
            retry_after_ms: self.retry_after_ms,
            upstream: (words != UpstreamWords::default()).then_some(words),
        }
    }

    fn meaning(&self, contract: &Contract) -> Option<Meaning> {
        if let Some(settled) = self.settled {
            return Some(settled);
        }
        match (self.status, self.code.as_deref()) {
            (Some(status), word) => Some(meaning(status, word, contract)),
            // Without a status only the words about keys count: they have one meaning everywhere.
            (None, Some(word)) => {
                key_code(word).map(|code| Meaning { code, certainty: code.implies().unwrap_or(Certainty::InDoubt) })
            }
            (None, None) => None,
        }
    }

    fn is_problem(&self) -> bool {
        self.status.is_some() || self.code.is_some()
    }

    /// RFC 9457 problem details, with the members that upstreams commonly add.
    fn details(object: &Map<String, Value>) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(bounded);
        let said = match (text("title"), text("detail").or_else(|| text("message"))) {
            (Some(title), Some(detail)) => Some(bounded(&format!("{title}: {detail}"))),
            (title, detail) => detail.or(title),
        };
        let seconds = object.get("retry_after").or_else(|| object.get("retryAfter")).and_then(Value::as_f64);
        let millis = object.get("retry_after_ms").and_then(Value::as_f64);
        Self {
            status: object.get("status").and_then(status),
            code: text("code"),
            retry_after_ms: millis.or(seconds.map(|seconds| seconds * 1000.0)).and_then(wait_ms),
            text: said,
            field: text("field"),
            settled: None,
        }
    }

    /// A google.rpc.Status as JSON APIs carry it: a number, a name from a closed list, a message.
    fn google(object: &Map<String, Value>) -> Option<Self> {
        let name = object.get("status").and_then(Value::as_str)?;
        let (_, by_name) = GOOGLE.iter().find(|(known, _)| *known == name)?;
        Some(Self {
            status: object.get("code").and_then(status).or(Some(*by_name)),
            code: Some(name.to_owned()),
            text: object.get("message").and_then(Value::as_str).map(bounded),
            ..Self::default()
        })
    }

    /// Our own envelope, from a gateway behind this one: its code and certainty are kept.
    fn envelope(object: &Map<String, Value>) -> Option<Self> {
        object.get("charter_version")?.as_str()?;
        let error = object.get("error")?.as_object()?;
        let code = Code::parse(error.get("code")?.as_str()?)?;
        let certainty = match error.get("certainty")?.as_str()? {
            // It did not send it, but we did.
            "not_sent" | "not_processed" => Certainty::NotProcessed,
            "processed" => Certainty::Processed,
            "in_doubt" => Certainty::InDoubt,
            _ => return None,
        };
        let upstream = error.get("upstream").and_then(Value::as_object);
        Some(Self {
            status: upstream.and_then(|upstream| upstream.get("status")).and_then(status),
            code: error.get("kind").and_then(Value::as_str).map(bounded),
            retry_after_ms: error.get("retry_after_ms").and_then(Value::as_f64).and_then(wait_ms),
            text: error.get("message").and_then(Value::as_str).map(bounded),
            field: None,
            settled: Some(Meaning { code, certainty }),
        })
    }
}

/// A status, if the value is a number that can be one.
fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|status| u16::try_from(status).ok()).filter(|status| (100..600).contains(status))
}

/// A wait in whole milliseconds, if the number can be one.
fn wait_ms(ms: f64) -> Option<u64> {
    (ms.is_finite() && ms >= 0.0).then(|| ms.ceil().min(9e15) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(value: &Value) -> Option<(Code, Certainty)> {
        let contract = Contract::undeclared(1, 1, 1);
        let (failure, certainty) = Problem::read(value)?.judge(&contract)?;
        Some((failure.code, certainty))
    }

    #[test]
    fn an_envelope_behind_us_keeps_its_code_and_certainty() {
        let nested = json!({"status": "error", "charter_version": "1.0",
            "error": {"kind": "rate_limited", "code": "RateLimited", "certainty": "not_sent", "message": "later"}});
        assert_eq!(judged(&nested), Some((Code::RateLimited, Certainty::NotProcessed)));
        let forged = json!({"charter_version": "1.0", "error": {"code": "Nonsense", "certainty": "processed"}});
        assert_eq!(judged(&forged), None);
    }

    #[test]
    fn a_google_status_is_read_by_its_name() {
        let value = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}});
        assert_eq!(judged(&value), Some((Code::RateLimited, Certainty::InDoubt)));
        let numbered = json!({"error": {"code": 5, "status": "NOT_FOUND"}});
        assert_eq!(judged(&numbered), Some((Code::NotFound, Certainty::NotProcessed)));
    }

    #[test]
    fn sentences_are_not_read() {
        assert_eq!(judged(&json!({"message": "404 not found, already_processed"})), None);
        assert_eq!(judged(&json!({"code": "not_found"})), None);
        assert_eq!(judged(&json!({"code": "key-reused"})), Some((Code::KeyReused, Certainty::NotProcessed)));
    }

    #[test]
    fn odd_numbers_are_left_out() {
        for wait in [json!(-1), json!("5"), json!(null)] {
            let problem = Problem::read(&json!({"status": 429, "retry_after": wait})).unwrap();
            assert_eq!(problem.retry_after_ms, None);
        }
        assert!(Problem::read(&json!({"status": 70000})).is_none());
        assert!(Problem::read(&json!({"status": 4.5})).is_none());
    }
}
