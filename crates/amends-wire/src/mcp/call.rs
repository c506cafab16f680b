//! A `tools/call`: what the agent asks for, and what of it goes on to the upstream.

mod edits;

use std::borrow::Cow;

use amends_core::{Refusal, RefusalKind};
use serde_json::value::RawValue;
use thiserror::Error;

pub use edits::{Edits, ProgressToken, with_deadline};

use super::dialect::Dialect;
use super::era::{CLIENT_INFO, PROTOCOL_VERSION};
use crate::object::{Object, is_array, is_null, is_object};

/// The field of `_meta` with the agent's own key for the call.
pub const KEY: &str = "amends/key";
/// The field of `_meta` with the session the call belongs to.
pub const SESSION: &str = "amends/session";
/// The field of `_meta` with what the call is based on.
pub const EVIDENCE: &str = "amends/evidence";
/// The field of `_meta` with the milliseconds that are left for the call.
pub const DEADLINE: &str = "amends/deadline";
/// The field of `_meta` with the words in which the agent wants our own answers.
pub const DIALECT: &str = "amends/dialect";
/// The field of `_meta` with the milliseconds that the agent waits for a person before it wants to be told.
pub const HOLD: &str = "amends/hold";
/// The field of `_meta` with what whoever calls says to the question whether the call may be sent.
pub const ANSWER: &str = "amends/answer";
/// How many characters a key or a session may have.
pub const KEY_CHARS_MAX: usize = 256;
/// How many characters a tool's name may have.
pub const NAME_CHARS_MAX: usize = 256;

/// The params of a `tools/call`, found well formed: a name, and arguments and `_meta` that are objects where they are there.
#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    params: &'a str,
    name: Cow<'a, str>,
    name_raw: &'a RawValue,
    arguments: Option<&'a RawValue>,
    meta: Option<&'a RawValue>,
}

/// What the `_meta` of a call says to us.
#[derive(Clone, Debug, Default)]
pub struct Meta<'a> {
    /// What progress is told by.
    pub progress_token: Option<&'a RawValue>,
    /// The agent's own key for the call.
    pub key: Option<String>,
    /// The session it belongs to.
    pub session: Option<String>,
    /// What it is based on.
    pub evidence: Option<&'a RawValue>,
    /// The version of the protocol, from 2026-07-28 on.
    pub protocol_version: Option<String>,
    /// The client's name, from 2026-07-28 on.
    pub client_name: Option<String>,
    /// The client's version, from 2026-07-28 on.
    pub client_version: Option<String>,
    /// The milliseconds the agent leaves for the call.
    pub deadline_ms: Option<u64>,
    /// The words in which the agent wants our own answers.
    pub dialect: Option<Dialect>,
    /// The milliseconds that the agent waits for a person before it wants to be told.
    pub hold_ms: Option<u64>,
    /// What whoever calls says to the question whether the call may be sent.
    pub decision: Option<Decision>,
}

/// What whoever calls says to the question whether a call may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The question.
    pub interaction: String,
    /// Whether it may be sent.
    pub approves: bool,
}

/// Why a call is not well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// There are no params, or they are not an object.
    #[error("the params of a tool call are an object with a `name`")]
    NoParams,
    /// There is no name, or it is not a string.
    #[error("`name` must be a string that names a tool")]
    BadName,
    /// The name is too long or cannot be seen.
    #[error("`name` must have 1 to 256 visible characters")]
    OddName,
    /// A member that decides what is called stands there twice.
    #[error("`name`, `arguments` and `_meta` may each be given once")]
    Repeated,
    /// The arguments are not an object.
    #[error("`arguments` must be an object")]
    BadArguments,
    /// `_meta` is not an object.
    #[error("`_meta` must be an object")]
    BadMeta,
    /// The key is not one.
    #[error("`amends/key` must be a string of 1 to 256 visible characters")]
    BadKey,
    /// The session is not one.
    #[error("`amends/session` must be a string of 1 to 256 visible characters")]
    BadSession,
    /// The progress token is not one.
    #[error("`progressToken` must be a string or a number")]
    BadProgressToken,
    /// The deadline is not one.
    #[error("`amends/deadline` must be a whole number of milliseconds")]
    BadDeadline,
    /// The dialect is not one.
    #[error("`amends/dialect` must be `amends`, `schemabrain` or `theodosia`")]
    BadDialect,
    /// The time to wait for a person is not one.
    #[error("`amends/hold` must be a whole number of milliseconds")]
    BadHold,
    /// The answer to a question is not one.
    #[error("`amends/answer` must have an `interaction` and a `choice`, which is `approve` or `deny`")]
    BadAnswer,
}

impl CallError {
    /// The kind of refusal it is.
    pub const fn kind(self) -> RefusalKind {
        match self {
            Self::NoParams | Self::BadName | Self::OddName => RefusalKind::MalformedName,
            Self::Repeated
            | Self::BadArguments
            | Self::BadMeta
            | Self::BadKey
            | Self::BadSession
            | Self::BadProgressToken
            | Self::BadDeadline
            | Self::BadDialect
            | Self::BadHold
            | Self::BadAnswer => RefusalKind::InvalidArgument,
        }
    }

    /// The refusal it comes to.
    pub fn refusal(self) -> Refusal {
        Refusal::of(self.kind(), self.to_string())
    }
}

impl<'a> ToolCall<'a> {
    /// Reads the params of a `tools/call`.
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, CallError> {
        let params = params.ok_or(CallError::NoParams)?.get();
        let object = Object::parse(params).ok_or(CallError::NoParams)?;
        // Two readers may disagree on which of two counts, and one of them would be asked for what the other allowed.
        if ["name", "arguments", "_meta"].into_iter().any(|name| object.repeats(name)) {
            return Err(CallError::Repeated);
        }
        let name_raw = object.get("name").ok_or(CallError::BadName)?;
        let name = object.string("name").ok_or(CallError::BadName)?;
        if !is_visible(&name, NAME_CHARS_MAX) {
            return Err(CallError::OddName);
        }
        let arguments = object.get("arguments").filter(|arguments| !is_null(arguments));
        if arguments.is_some_and(|arguments| !is_object(arguments)) {
            return Err(CallError::BadArguments);
        }
        let meta = object.get("_meta").filter(|meta| !is_null(meta));
        if meta.is_some_and(|meta| !is_object(meta)) {
            return Err(CallError::BadMeta);
        }
        Ok(Self { params, name, name_raw, arguments, meta })
    }

    /// The tool's name as the agent wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments, an object.
    pub const fn arguments(&self) -> Option<&'a RawValue> {
        self.arguments
    }

    /// The whole `_meta`, an object.
    pub const fn raw_meta(&self) -> Option<&'a RawValue> {
        self.meta
    }

    /// What `_meta` says to us.
    pub fn meta(&self) -> Result<Meta<'a>, CallError> {
        let Some(object) = self.meta.and_then(|meta| Object::parse(meta.get())) else {
            return Ok(Meta::default());
        };
        let word = |name: &str, error: CallError| match object.get(name) {
            None => Ok(None),
            Some(_) => match object.string(name) {
                Some(text) if is_visible(&text, KEY_CHARS_MAX) => Ok(Some(text.into_owned())),
                _ => Err(error),
            },
        };
        let progress_token = object.get("progressToken").filter(|token| !is_null(token));
        if progress_token.is_some_and(|token| is_object(token) || is_array(token)) {
            return Err(CallError::BadProgressToken);
        }
        let ms = |name: &str, error: CallError| match object.get(name) {
            None => Ok(None),
            Some(raw) => serde_json::from_str(raw.get()).map(Some).map_err(|_| error),
        };
        let decision = match object.get(ANSWER) {
            None => None,
            Some(raw) => Some(Decision::parse(raw.get()).ok_or(CallError::BadAnswer)?),
        };
        let dialect = match object.get(DIALECT) {
            None => None,
            Some(_) => {
                let named = object.string(DIALECT).and_then(|name| Dialect::parse(&name));
                Some(named.ok_or(CallError::BadDialect)?)
            }
        };
        let client = object.get(CLIENT_INFO).and_then(|info| Object::parse(info.get()));
        let of_client = |name: &str| client.as_ref().and_then(|client| client.string(name)).map(Cow::into_owned);
        Ok(Meta {
            progress_token,
            key: word(KEY, CallError::BadKey)?,
            session: word(SESSION, CallError::BadSession)?,
            evidence: object.get(EVIDENCE),
            protocol_version: object.string(PROTOCOL_VERSION).map(Cow::into_owned),
            client_name: of_client("name"),
            client_version: of_client("version"),
            deadline_ms: ms(DEADLINE, CallError::BadDeadline)?,
            dialect,
            hold_ms: ms(HOLD, CallError::BadHold)?,
            decision,
        })
    }
}

impl Decision {
    fn parse(text: &str) -> Option<Self> {
        let object = Object::parse(text)?;
        let interaction = object.string("interaction").filter(|id| is_visible(id, KEY_CHARS_MAX))?.into_owned();
        let approves = match object.string("choice")?.as_ref() {
            "approve" => true,
            "deny" => false,
            _ => return None,
        };
        Some(Self { interaction, approves })
    }
}

/// The milliseconds that the agent of a call waits for a person before it wants to be told, by the params of that call.
pub fn hold_ms(params: &str) -> Option<u64> {
    let params = serde_json::from_str::<&RawValue>(params).ok()?;
    ToolCall::parse(Some(params)).ok()?.meta().ok()?.hold_ms
}

/// The words in which whoever made a call wants our own answers, by the params of that call, whatever else is wrong with them: a No is
/// said in them too.
pub fn dialect(params: &str) -> Option<Dialect> {
    let meta = Object::parse(params)?.get("_meta")?;
    Dialect::parse(&Object::parse(meta.get())?.string(DIALECT)?)
}

/// Whether a text has 1 to `max` characters, none of them a control, a change of direction or without width.
fn is_visible(text: &str, max: usize) -> bool {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
            || matches!(c, '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
    };
    !text.is_empty() && text.chars().nth(max).is_none() && !text.chars().any(hidden)
}

/// The number that a progress notification names, where its token is one of ours.
pub fn progress_ticket(params: &str) -> Option<u64> {
    Object::parse(params)?.get("progressToken")?.get().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn error(text: &str) -> CallError {
        let raw = raw(text);
        match ToolCall::parse(Some(&raw)) {
            Err(error) => error,
            Ok(call) => call.meta().expect_err(text),
        }
    }

    #[test]
    fn wrong_shapes_are_refused_with_a_kind() {
        assert_eq!(ToolCall::parse(None).unwrap_err().kind(), RefusalKind::MalformedName);
        assert_eq!(error("[]"), CallError::NoParams);
        assert_eq!(error("{}"), CallError::BadName);
        assert_eq!(error(r#"{"name":7}"#), CallError::BadName);
        assert_eq!(error(r#"{"name":""}"#), CallError::OddName);
        assert_eq!(error(r#"{"name":"a\u202eb"}"#), CallError::OddName);
        assert_eq!(error(r#"{"name":"a","name":"b"}"#), CallError::Repeated);
        assert_eq!(error(r#"{"name":"a","arguments":[]}"#), CallError::BadArguments);
        assert_eq!(error(r#"{"name":"a","_meta":1}"#), CallError::BadMeta);
        assert_eq!(error(r#"{"name":"a","_meta":{"amends/key":1}}"#), CallError::BadKey);
        assert_eq!(error(r#"{"name":"a","_meta":{"amends/key":""}}"#), CallError::BadKey);
        assert_eq!(error(r#"{"name":"a","_meta":{"amends/session":"\n"}}"#), CallError::BadSession);
        assert_eq!(error(r#"{"name":"a","_meta":{"progressToken":{}}}"#), CallError::BadProgressToken);
        assert_eq!(error(r#"{"name":"a","_meta":{"amends/deadline":-1}}"#), CallError::BadDeadline);
        assert_eq!(error(r#"{"name":"a","_meta":{"amends/dialect":"latin"}}"#), CallError::BadDialect);
        assert_eq!(error(r#"{"name":"a","_meta":{"amends/hold":"soon"}}"#), CallError::BadHold);
        for answer in ["7", "{}", r#"{"interaction":"i"}"#, r#"{"interaction":"i","choice":"perhaps"}"#] {
            let text = format!(r#"{{"name":"a","_meta":{{"amends/answer":{answer}}}}}"#);
            assert_eq!(error(&text), CallError::BadAnswer, "{answer}");
        }
        assert_eq!(CallError::BadKey.refusal().kind, RefusalKind::InvalidArgument);
    }

    #[test]
    fn what_is_said_to_a_question_is_read() {
        let params =
            r#"{"name":"a","_meta":{"amends/hold":0,"amends/answer":{"interaction":"int_1","choice":"deny"}}}"#;
        let raw = raw(params);
        let meta = ToolCall::parse(Some(&raw)).unwrap().meta().unwrap();
        assert_eq!(meta.decision, Some(Decision { interaction: "int_1".into(), approves: false }));
        assert_eq!((meta.hold_ms, hold_ms(params), hold_ms(r#"{"name":"a"}"#)), (Some(0), Some(0), None));
    }

    #[test]
    fn the_words_that_are_wanted_are_read_whatever_else_is_wrong() {
        for odd in [
            r#"{"name":"a","arguments":[],"_meta":{"amends/dialect":"theodosia"}}"#,
            r#"{"name":7,"_meta":{"amends/dialect":"theodosia"}}"#,
            r#"{"name":"a","_meta":{"amends/dialect":"theodosia","amends/key":7}}"#,
        ] {
            assert_eq!(dialect(odd), Some(Dialect::Theodosia), "{odd}");
        }
        for none in [r#"{"name":"a","_meta":{"amends/dialect":"latin"}}"#, r#"{"_meta":[]}"#, "{}", "[", "7"] {
            assert_eq!(dialect(none), None, "{none}");
        }
    }

    #[test]
    fn meta_is_read() {
        let raw = raw(
            r#"{"name":"a","arguments":{"n":1.0},"_meta":{"progressToken":3,"amends/key":"k","amends/session":"s","amends/deadline":50,
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}"#,
        );
        let meta = ToolCall::parse(Some(&raw)).unwrap().meta().unwrap();
        assert_eq!((meta.key.as_deref(), meta.session.as_deref(), meta.deadline_ms), (Some("k"), Some("s"), Some(50)));
        assert_eq!((meta.client_name.as_deref(), meta.client_version.as_deref()), (Some("c"), Some("1")));
        assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
        assert_eq!(meta.progress_token.unwrap().get(), "3");
    }
}
