//! What an upstream asks of a client while it works on a request, in both eras.
//!
//! Up to 2025-11-25 a server sends requests of its own while it works. From 2026-07-28 on it answers with what it needs, and the
//! client sends its request again with that: `inputRequests`, `inputResponses`, `requestState`.

use amends_core::failure::{UpstreamWords, bounded};
use amends_core::{AskKind, Certainty, Code, Failure, Report};
use serde_json::value::RawValue;

use super::era::MISSING_CLIENT_CAPABILITY;
use crate::object::{Object, is_null, is_object, quoted};
use crate::splice::Splice;

/// The method by which a user is asked.
pub const ELICIT: &str = "elicitation/create";
/// The method by which a client's model is asked.
pub const SAMPLE: &str = "sampling/createMessage";
/// The method by which a client is asked where it works.
pub const ROOTS: &str = "roots/list";
/// The member of a request in which a client brings back what it was given with the questions.
pub const REQUEST_STATE: &str = "requestState";
/// How long a server's own state may be.
pub const STATE_BYTES_MAX: usize = 256 << 10;

/// What we declare to an upstream of the stateful era, whose session all agents share: each question is then answered by what
/// its own agent declared.
pub const OURS: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;

/// What a client declared that it can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Askable {
    /// Forms for its user.
    pub form: bool,
    /// Addresses for its user.
    pub url: bool,
    /// Messages of its model.
    pub sampling: bool,
    /// The same, with tools.
    pub sampling_tools: bool,
    /// Where it works.
    pub roots: bool,
}

impl Askable {
    /// Reads the capabilities of a client. What is not an object counts as not declared.
    pub fn of(capabilities: Option<&str>) -> Self {
        let Some(declared) = capabilities.and_then(Object::parse) else {
            return Self::default();
        };
        let part = |name: &str| declared.get(name).and_then(|raw| Object::parse(raw.get()));
        let has = |part: &Option<Object<'_>>, name: &str| {
            part.as_ref().is_some_and(|part| part.get(name).is_some_and(is_object))
        };
        let (elicitation, sampling, roots) = (part("elicitation"), part("sampling"), part("roots"));
        let url = has(&elicitation, "url");
        Self {
            // Before there were modes, there were forms.
            form: has(&elicitation, "form") || (elicitation.is_some() && !url),
            url,
            sampling_tools: has(&sampling, "tools"),
            sampling: sampling.is_some(),
            roots: roots.is_some(),
        }
    }

    /// The capabilities of a client that can be asked just that.
    pub fn declared(self) -> String {
        let word = |is: bool, word: &str| if is { format!("\"{word}\":{{}}") } else { String::new() };
        let modes = [word(self.form, "form"), word(self.url, "url")].into_iter().filter(|it| !it.is_empty());
        let modes = modes.collect::<Vec<_>>().join(",");
        let parts = [
            (self.form || self.url).then(|| format!("\"elicitation\":{{{modes}}}")),
            self.sampling.then(|| format!("\"sampling\":{{{}}}", word(self.sampling_tools, "tools"))),
            self.roots.then(|| word(true, "roots")),
        ];
        format!("{{{}}}", parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }

    /// Whether a client that declared this can be asked that.
    pub fn takes(self, question: &Question) -> bool {
        match question.kind() {
            AskKind::Form => self.form,
            AskKind::Url => self.url,
            AskKind::Sampling => self.sampling && (self.sampling_tools || !question.has("tools")),
            AskKind::Roots => self.roots,
            AskKind::Other => false,
        }
    }
}

/// One question of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name by which its answer is told from others.
    pub key: String,
    /// Its method.
    pub method: String,
    /// Its parameters, as they were written.
    pub params: Option<String>,
}

impl Question {
    /// What is asked for.
    pub fn kind(&self) -> AskKind {
        match self.method.as_str() {
            ELICIT if self.mode().as_deref() == Some("url") => AskKind::Url,
            ELICIT if self.mode().is_none_or(|mode| mode == "form") => AskKind::Form,
            SAMPLE => AskKind::Sampling,
            ROOTS => AskKind::Roots,
            _ => AskKind::Other,
        }
    }

    /// The capability that a client must declare to be asked it.
    pub fn capability(&self) -> &'static str {
        match self.kind() {
            AskKind::Form | AskKind::Url => "elicitation",
            AskKind::Sampling => "sampling",
            AskKind::Roots => "roots",
            AskKind::Other => "experimental",
        }
    }

    /// Its parameters as the stateful era wants them: there, an address has an id.
    pub fn for_line(&self, id: &str) -> Option<String> {
        let params = self.params.as_deref()?;
        if self.kind() != AskKind::Url || self.has("elicitationId") {
            return Some(params.to_owned());
        }
        let mut splice = Splice::new(params);
        let _ = splice.set_member(params, "elicitationId", quoted(id));
        Some(splice.finish())
    }

    /// What stands for an answer that nobody gave: the user dismissed it, there is nowhere. Nothing where there is no such word.
    pub fn dismissed(&self) -> Option<&'static str> {
        match self.kind() {
            AskKind::Form | AskKind::Url => Some(r#"{"action":"cancel"}"#),
            AskKind::Roots => Some(r#"{"roots":[]}"#),
            AskKind::Sampling | AskKind::Other => None,
        }
    }

    fn mode(&self) -> Option<String> {
        let params = Object::parse(self.params.as_deref()?)?;
        params.string("mode").map(std::borrow::Cow::into_owned)
    }

    fn has(&self, name: &str) -> bool {
        let params = self.params.as_deref().and_then(Object::parse);
        params.is_some_and(|params| params.get(name).is_some_and(|value| !is_null(value)))
    }
}

/// A result that asks for input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputRequired {
    /// The questions, in their order.
    pub questions: Vec<Question>,
    /// What the server wants back with the answers, as it means it.
    pub state: Option<String>,
}

impl InputRequired {
    /// Reads a result; nothing where it asks for nothing, or not in the protocol's way.
    pub fn parse(result: &str) -> Option<Self> {
        let object = Object::parse(result)?;
        if object.string("resultType").as_deref() != Some("input_required") {
            return None;
        }
        let state = match object.get("requestState").filter(|state| !is_null(state)) {
            Some(_) => Some(object.string("requestState")?.into_owned()).filter(|state| state.len() <= STATE_BYTES_MAX),
            None => None,
        };
        let mut questions = Vec::new();
        if let Some(requests) = object.get("inputRequests").filter(|requests| !is_null(requests)) {
            for member in Object::parse(requests.get())?.members() {
                let request = Object::parse(member.value.get())?;
                questions.push(Question {
                    key: member.name().into_owned(),
                    method: request.string("method")?.into_owned(),
                    params: request.get("params").map(|params| params.get().to_owned()),
                });
            }
        }
        (!questions.is_empty() || state.is_some()).then_some(Self { questions, state })
    }

    /// The result that says so, with that state in place of the server's own.
    pub fn result(&self, state: &str) -> String {
        let one = |question: &Question| {
            let params = question.params.as_ref().map(|params| format!(",\"params\":{params}")).unwrap_or_default();
            format!("{}:{{\"method\":{}{params}}}", quoted(&question.key), quoted(&question.method))
        };
        let requests: Vec<String> = self.questions.iter().map(one).collect();
        let requests = match requests.is_empty() {
            true => String::new(),
            false => format!(",\"inputRequests\":{{{}}}", requests.join(",")),
        };
        format!("{{\"resultType\":\"input_required\"{requests},\"requestState\":{}}}", quoted(state))
    }
}

/// What a client came back with.
#[derive(Clone, Debug)]
pub struct Returned<'a> {
    /// The state it was given.
    pub state: String,
    /// Its answers, an object.
    pub inputs: Option<&'a RawValue>,
}

/// What is wrong with what a client came back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReturn {
    /// The state is not a text.
    #[error("`requestState` must be the string that was given")]
    State,
    /// The answers are not an object.
    #[error("`inputResponses` must be an object")]
    Inputs,
}

impl<'a> Returned<'a> {
    /// Reads the params of a request; nothing where it does not come back to anything. Answers without a state are for the
    /// server to judge.
    pub fn read(params: &'a str) -> Result<Option<Self>, BadReturn> {
        let Some(object) = Object::parse(params) else {
            return Ok(None);
        };
        if object.get("requestState").is_none_or(is_null) {
            return Ok(None);
        }
        let state = object.string("requestState").ok_or(BadReturn::State)?.into_owned();
        let inputs = object.get("inputResponses").filter(|inputs| !is_null(inputs));
        if inputs.is_some_and(|inputs| !is_object(inputs)) {
            return Err(BadReturn::Inputs);
        }
        Ok(Some(Self { state, inputs }))
    }

    /// Its answer to a question.
    pub fn answer(&self, key: &str) -> Option<&'a RawValue> {
        Object::parse(self.inputs?.get())?.get(key).filter(|answer| is_object(answer))
    }
}

/// The params of a request with these answers and that state in them, or without any.
pub fn with_inputs(params: &str, inputs: Option<&str>, state: Option<&str>) -> String {
    let known = Object::parse(params);
    let mut splice = Splice::new(params);
    for (name, value) in [("inputResponses", inputs.map(str::to_owned)), ("requestState", state.map(quoted))] {
        let there = known.as_ref().is_some_and(|known| known.get(name).is_some());
        let _ = match value {
            Some(value) => splice.set_member(params, name, value),
            None if there => splice.remove_member(params, name),
            None => Ok(()),
        };
    }
    splice.finish()
}

/// Answers to questions, as one object.
pub fn responses<'a>(answers: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members: Vec<String> = answers.into_iter().map(|(key, answer)| format!("{}:{answer}", quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// The report of an attempt whose upstream asks what its agent cannot be asked: nothing was done, and nothing will be.
pub fn unaskable(question: Option<&Question>, why: &str) -> Report {
    let capability = question.map(Question::capability);
    let words = UpstreamWords {
        code: Some(MISSING_CLIENT_CAPABILITY.to_string()),
        text: Some(bounded(&match capability {
            Some(capability) => format!("it needs `{capability}` of the agent: {why}"),
            None => why.to_owned(),
        })),
        field: capability.map(str::to_owned),
    };
    let failure = Failure { upstream: Some(words), ..Failure::of(Code::MissingCapability) };
    Report::answered(failure, Certainty::NotProcessed, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(method: &str, params: &str) -> Question {
        Question { key: "k".into(), method: method.into(), params: Some(params.into()) }
    }

    #[test]
    fn a_client_is_asked_only_what_it_declared() {
        let form = question(ELICIT, r#"{"message":"m","requestedSchema":{}}"#);
        let url = question(ELICIT, r#"{"mode":"url","message":"m","url":"https://e.org"}"#);
        let odd = question(ELICIT, r#"{"mode":"song"}"#);
        let plain = question(SAMPLE, "{}");
        let tools = question(SAMPLE, r#"{"tools":[]}"#);
        let roots = Question { params: None, ..question(ROOTS, "") };
        let taken = |declared: Option<&str>| {
            let askable = Askable::of(declared);
            [&form, &url, &odd, &plain, &tools, &roots].map(|question| askable.takes(question))
        };
        assert_eq!(taken(None), [false; 6]);
        assert_eq!(taken(Some("[]")), [false; 6]);
        assert_eq!(taken(Some(r#"{"elicitation":7,"roots":true,"sampling":null}"#)), [false; 6]);
        assert_eq!(taken(Some(r#"{"elicitation":{}}"#)), [true, false, false, false, false, false]);
        assert_eq!(taken(Some(r#"{"elicitation":{"url":{}}}"#)), [false, true, false, false, false, false]);
        assert_eq!(taken(Some(r#"{"sampling":{},"roots":{}}"#)), [false, false, false, true, false, true]);
        assert_eq!(taken(Some(OURS)), [true, true, false, true, true, true]);
    }

    #[test]
    fn a_question_keeps_its_bytes_on_its_way() {
        let text = r#"{"resultType":"input_required","inputRequests":{"a\u0041":{"method":"elicitation/create","params":{"n":1.0, "x":null}},"r":{"method":"roots/list"}},"requestState":"s\"1"}"#;
        let asked = InputRequired::parse(text).unwrap();
        assert_eq!(asked.state.as_deref(), Some("s\"1"));
        assert_eq!(asked.questions[0].params.as_deref(), Some(r#"{"n":1.0, "x":null}"#));
        let ours = asked.result("ours");
        let again = InputRequired::parse(&ours).unwrap();
        assert_eq!((again.questions, again.state.as_deref()), (asked.questions, Some("ours")));
        assert!(ours.contains(r#""params":{"n":1.0, "x":null}"#), "{ours}");
    }

    #[test]
    fn what_does_not_ask_in_the_protocols_way_asks_nothing() {
        for odd in [
            "{}",
            r#"{"resultType":"complete","requestState":"s"}"#,
            r#"{"resultType":"input_required"}"#,
            r#"{"resultType":"input_required","requestState":7}"#,
            r#"{"resultType":"input_required","inputRequests":[]}"#,
            r#"{"resultType":"input_required","inputRequests":{"a":1}}"#,
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":1}}}"#,
        ] {
            assert_eq!(InputRequired::parse(odd), None, "{odd}");
        }
        let alone = InputRequired::parse(r#"{"resultType":"input_required","requestState":"s"}"#).unwrap();
        assert!(alone.questions.is_empty() && !alone.result("t").contains("inputRequests"));
    }

    #[test]
    fn what_a_client_comes_back_with_is_read_and_replaced() {
        assert!(Returned::read(r#"{"name":"a"}"#).unwrap().is_none());
        assert_eq!(Returned::read(r#"{"requestState":7}"#).unwrap_err(), BadReturn::State);
        assert_eq!(Returned::read(r#"{"inputResponses":[],"requestState":"s"}"#).unwrap_err(), BadReturn::Inputs);
        assert!(Returned::read(r#"{"inputResponses":{"k":{}},"requestState":null}"#).unwrap().is_none());
        let params = r#"{"name":"a","arguments":{"n":1.0},"inputResponses":{"k":{"action":"accept"},"odd":1},"requestState":"ours"}"#;
        let returned = Returned::read(params).unwrap().unwrap();
        assert_eq!(returned.state, "ours");
        assert_eq!(returned.answer("k").unwrap().get(), r#"{"action":"accept"}"#);
        assert!(returned.answer("odd").is_none() && returned.answer("none").is_none());
        assert_eq!(with_inputs(params, None, None), r#"{"name":"a","arguments":{"n":1.0}}"#);
        let sent = with_inputs(params, Some(r#"{"k":{}}"#), Some("th\"eirs"));
        assert!(sent.ends_with(r#""inputResponses":{"k":{}},"requestState":"th\"eirs"}"#), "{sent}");
    }

    #[test]
    fn an_address_gets_an_id_where_the_era_wants_one() {
        let url = question(ELICIT, r#"{"mode":"url","url":"u"}"#);
        assert_eq!(url.for_line("e1").unwrap(), r#"{"mode":"url","url":"u","elicitationId":"e1"}"#);
        let known = question(ELICIT, r#"{"mode":"url","elicitationId":"x"}"#);
        assert_eq!(known.for_line("e1"), known.params);
        assert_eq!(question(ELICIT, "{}").for_line("e1").unwrap(), "{}");
    }
}
