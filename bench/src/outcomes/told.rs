//! What an agent was told at the end of a call, read as kindly as the answer allows.

use std::time::Duration;

use serde_json::Value;

/// What came back on the wire.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A JSON-RPC message.
    Message(Value),
    /// Something that is not one.
    Garbage,
    /// The connection broke, or nothing came in time.
    Nothing,
}

/// Whose words an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// The shop's own, as they are or relayed.
    Shop,
    CtrlRun,
    Amends,
}

/// What the agent may believe of its wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// It was done.
    Done,
    /// It was not done.
    NotDone,
    /// A field says that nobody knows.
    Doubt,
}

/// One answer, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The call did what it should.
    pub(crate) success: bool,
    pub(crate) belief: Belief,
    /// It is a success, or a field names the failure. A sentence names nothing.
    pub(crate) typed: bool,
    /// A person must act.
    pub(crate) person: bool,
    /// A field says that the call must not be repeated.
    pub(crate) warned: bool,
    /// A field says that a repeat is safe and can work, after so long.
    pub(crate) again: Option<Duration>,
}

impl Told {
    const UNTYPED: Self =
        Self { success: false, belief: Belief::NotDone, typed: false, person: false, warned: false, again: None };
    const SUCCESS: Self = Self { success: true, belief: Belief::Done, typed: true, ..Self::UNTYPED };

    /// Reads a reply in the words of whoever gave it.
    pub(crate) fn read(reply: &Reply, words: Words) -> Self {
        match (reply, words) {
            (Reply::Garbage | Reply::Nothing, _) => Self::UNTYPED,
            (Reply::Message(message), Words::Shop) => Self::plain(message),
            (Reply::Message(message), Words::CtrlRun) => Self::ctrlrun(message),
            (Reply::Message(message), Words::Amends) => Self::envelope(message),
        }
    }

    /// A loop around a model does not check output schemas: what is not an error, and has content, is a success.
    fn plain(message: &Value) -> Self {
        let result = &message["result"];
        if result["content"].is_array() && result["isError"] != true {
            return Self::SUCCESS;
        }
        let named = [&result["structuredContent"]["code"], &message["error"]["data"]["error"]];
        Self { typed: named.iter().any(|name| name.is_string()), ..Self::UNTYPED }
    }

    /// Its receipt counts although it lies outside the result, where most clients drop it.
    fn ctrlrun(message: &Value) -> Self {
        let plain = Self::plain(message);
        let receipt = &message["_meta"]["com.ctrlrun/receipt"];
        let token = message["error"]["data"]["error"].as_str().unwrap_or("");
        let in_doubt = matches!(token, "ctrlrun.ambiguous_effect" | "ctrlrun.upstream_ambiguous");
        if plain.success {
            return plain;
        }
        if in_doubt || receipt["result"] == "ambiguous" {
            // An effect that is ambiguous is refused until somebody runs `ctrlrun resolve`; a read has no effect key.
            let held =
                [&receipt["effect_key"], &message["error"]["data"]["effect_key"]].iter().any(|key| key.is_string());
            return Self { belief: Belief::Doubt, typed: true, person: held, warned: held, ..plain };
        }
        let done = token == "ctrlrun.duplicate_effect" || receipt["result"] == "committed";
        let belief = if done { Belief::Done } else { Belief::NotDone };
        Self { belief, typed: plain.typed || done, warned: done, ..plain }
    }

    fn envelope(message: &Value) -> Self {
        let envelope = &message["result"]["_meta"]["amends/envelope"];
        let envelope = if envelope.is_object() { envelope } else { &message["error"]["data"] };
        let error = &envelope["error"];
        match envelope["status"].as_str() {
            Some("success" | "empty" | "partial" | "degraded") => return Self::SUCCESS,
            Some("error" | "refused") => {}
            _ => return Self::UNTYPED,
        }
        let wait = Duration::from_millis(error["retry_after_ms"].as_u64().unwrap_or(0));
        let again = error["retryable"] == true && error["safe_to_repeat"] == true;
        Self {
            success: false,
            belief: match error["certainty"].as_str() {
                Some("processed") => Belief::Done,
                Some("in_doubt") => Belief::Doubt,
                _ => Belief::NotDone,
            },
            typed: error["code"].is_string() && error["certainty"].is_string(),
            person: error["who_must_act"] == "person",
            warned: error["safe_to_repeat"] == false,
            again: again.then_some(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sentence_is_not_typed_and_a_code_is() {
        let sentence = json!({"result": {"content": [{"type": "text", "text": "no"}], "isError": true}});
        assert_eq!(Told::read(&Reply::Message(sentence), Words::Shop), Told::UNTYPED);
        let code = json!({"result": {"content": [], "isError": true, "structuredContent": {"code": "forbidden"}}});
        let told = Told::read(&Reply::Message(code), Words::Shop);
        assert!(told.typed && !told.success);
    }

    #[test]
    fn an_ambiguous_receipt_is_a_doubt_for_a_person_where_an_effect_is_held() {
        let answer = |key: Value| {
            let receipt = json!({"result": "ambiguous", "effect_key": key});
            let message =
                json!({"result": {"content": [], "isError": true}, "_meta": {"com.ctrlrun/receipt": receipt}});
            Told::read(&Reply::Message(message), Words::CtrlRun)
        };
        assert_eq!(answer(json!("charge:1")).belief, Belief::Doubt);
        assert!(answer(json!("charge:1")).person);
        assert!(!answer(Value::Null).person);
    }

    #[test]
    fn a_receipt_that_says_committed_counts_although_the_result_makes_no_sense() {
        let message = json!({"result": {"content": "done"}, "_meta": {"com.ctrlrun/receipt": {"result": "committed"}}});
        let told = Told::read(&Reply::Message(message), Words::CtrlRun);
        assert_eq!((told.success, told.belief, told.typed), (false, Belief::Done, true));
    }

    #[test]
    fn an_envelope_says_whether_to_call_again() {
        let answer = |error: Value| {
            let meta = json!({"amends/envelope": {"status": "error", "error": error}});
            Told::read(&Reply::Message(json!({"result": {"isError": true, "_meta": meta}})), Words::Amends)
        };
        let later = answer(json!({"code": "RateLimited", "certainty": "not_processed", "retryable": true,
            "safe_to_repeat": true, "retry_after_ms": 7}));
        assert_eq!(later.again, Some(Duration::from_millis(7)));
        let doubt = answer(json!({"code": "NetworkTimeout", "certainty": "in_doubt", "retryable": false,
            "safe_to_repeat": false, "who_must_act": "person"}));
        assert!(doubt.typed && doubt.person && doubt.warned);
        assert_eq!((doubt.belief, doubt.again), (Belief::Doubt, None));
    }
}
