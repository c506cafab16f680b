//! What an agent sends: a message, and the call or the answer that is in it.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::{Refused, Trouble};
use super::version::Version;
use crate::object::{Object, is_null, is_object, quoted};

/// How long an id of an agent's own may be.
pub const ID_BYTES_MAX: usize = 256;
/// The media type of a file that does not say.
const UNNAMED: &str = "application/octet-stream";

/// A message that could be read.
#[derive(Clone, Debug)]
pub struct Incoming<'a> {
    /// Its id, which is the key of the call in it.
    pub id: String,
    /// The context it belongs to, as the agent names it.
    pub context: Option<String>,
    /// The task it goes on with.
    pub task: Option<String>,
    /// The whole of it, as it was written.
    pub raw: &'a RawValue,
    /// Whether it is answered at once, rather than when the task is over or waits for somebody.
    pub at_once: bool,
    /// Where its task's changes are to be told, as it was written.
    pub push: Option<&'a RawValue>,
    data: Vec<&'a RawValue>,
    text: Vec<String>,
    /// The media types of its parts, where those are not what is always read.
    media: Vec<String>,
}

/// What a message wants.
#[derive(Clone, Debug)]
pub enum Wanted<'a> {
    /// A tool called.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments, as they were written.
        args: Option<&'a RawValue>,
    },
    /// Nothing that names a tool: only this text.
    Text(String),
    /// Something else.
    Other,
}

impl<'a> Incoming<'a> {
    /// Reads the parameters of a request that sends a message.
    pub fn read(params: &'a RawValue, version: Version) -> Result<Self, Refused> {
        let params = Object::parse(params.get()).ok_or_else(|| wrong("the parameters are not an object"))?;
        let raw = given(&params, "message").ok_or_else(|| wrong("there is no `message`"))?;
        let message = Object::parse(raw.get()).ok_or_else(|| wrong("`message` is not an object"))?;
        let id = name(&message, "messageId")?
            .ok_or_else(|| wrong("`message.messageId` is needed: it is the key of a call"))?;
        let parts = given(&message, "parts").ok_or_else(|| wrong("`message.parts` is needed"))?;
        let parts: Vec<Object<'a>> =
            serde_json::from_str(parts.get()).map_err(|_| wrong("`message.parts` is not a list of parts"))?;
        if parts.is_empty() {
            return Err(wrong("`message.parts` is empty"));
        }
        let role = message.string("role");
        let roles: &[&str] = match version {
            Version::V1 => &["ROLE_USER"],
            Version::V03 => &["user"],
        };
        if role.as_deref().is_some_and(|role| !roles.contains(&role)) {
            return Err(wrong(&format!("`message.role` is {} for whoever sends one", quoted(roles[0]))));
        }
        let configuration = given(&params, "configuration").and_then(|raw| Object::parse(raw.get()));
        let flag = |name: &str| {
            let value = configuration.as_ref().and_then(|configuration| configuration.get(name));
            value.map(|value| value.get() == "true")
        };
        let at_once = match version {
            Version::V1 => flag("returnImmediately").unwrap_or(false),
            // Before 1.0 it was said the other way round, and not to say it meant not to wait.
            Version::V03 => !flag("blocking").unwrap_or(true),
        };
        let pushed = match version {
            Version::V1 => "taskPushNotificationConfig",
            Version::V03 => "pushNotificationConfig",
        };
        let push = configuration.as_ref().and_then(|configuration| given(configuration, pushed));
        let data = parts.iter().filter_map(|part| given(part, "data")).collect();
        let text = parts.iter().filter_map(|part| part.string("text")).map(|text| text.into_owned()).collect();
        let media = parts.iter().filter_map(media).collect();
        let (context, task) = (name(&message, "contextId")?, name(&message, "taskId")?);
        Ok(Self { id, context, task, raw, at_once, push, data, text, media })
    }

    /// The first media type of its parts that is neither always read nor among those: `image/png`, or `image/*`.
    pub fn strange(&self, taken: &[String]) -> Option<&str> {
        let fits = |media: &str| taken.iter().any(|wanted| is_media(media, wanted));
        self.media.iter().map(String::as_str).find(|media| !fits(media))
    }

    /// What it wants.
    pub fn wanted(&self) -> Wanted<'a> {
        let call = |raw: &&'a RawValue| {
            let object = Object::parse(raw.get())?;
            let tool = object.string("tool")?.into_owned();
            Some(Wanted::Call { tool, args: object.get("args").filter(|args| !is_null(args)) })
        };
        if let Some(call) = self.data.iter().find_map(call) {
            return call;
        }
        match self.text() {
            Some(text) if self.data.is_empty() => Wanted::Text(text),
            _ => Wanted::Other,
        }
    }

    /// Its text, all parts of it.
    pub fn text(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| self.text.join("\n"))
    }

    /// The first object among its parts.
    pub fn object(&self) -> Option<&'a RawValue> {
        self.data.iter().copied().find(|raw| is_object(raw))
    }

    /// What it answers to a question that wants an object of that schema: its data, or its text where one field wants a text.
    pub fn content(&self, schema: &Value) -> Option<Value> {
        if let Some(object) = self.object() {
            return serde_json::from_str(object.get()).ok();
        }
        let text = self.text()?;
        let fields = schema["properties"].as_object()?;
        let mut texts = fields.iter().filter(|(_, field)| field["type"] == "string");
        let (only, _) = texts.next().filter(|_| fields.len() == 1)?;
        Some(Value::Object(Map::from_iter([(only.clone(), Value::String(text))])))
    }
}

/// The media type of a part, where it is not one that is always read: a text, or JSON as data. A file says what it is.
fn media(part: &Object<'_>) -> Option<String> {
    let text = |object: &Object<'_>, name: &str| object.string(name).map(|text| text.to_lowercase());
    let named = text(part, "mediaType").filter(|media| !media.is_empty());
    let file = given(part, "file").and_then(|file| Object::parse(file.get()));
    if let Some(file) = file {
        return Some(text(&file, "mimeType").or(named).unwrap_or_else(|| UNNAMED.into()));
    }
    if given(part, "raw").is_some() || given(part, "url").is_some() {
        return Some(named.unwrap_or_else(|| UNNAMED.into()));
    }
    let named = named?;
    let plain = named.split(';').next().unwrap_or_default().trim();
    let is_read = match given(part, "data") {
        Some(_) => plain == "application/json" || plain.ends_with("+json"),
        None => plain.starts_with("text/"),
    };
    (!is_read).then_some(named)
}

fn is_media(media: &str, wanted: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim();
    match wanted.strip_suffix("/*") {
        Some("*") => true,
        Some(kind) => media.split('/').next() == Some(kind),
        None => media == wanted,
    }
}

/// A member that is there and not null.
fn given<'a>(object: &Object<'a>, name: &str) -> Option<&'a RawValue> {
    object.get(name).filter(|value| !is_null(value))
}

/// A member that names something. An empty text is none, as in the protocol's own encoding.
fn name(object: &Object<'_>, member: &str) -> Result<Option<String>, Refused> {
    let Some(raw) = given(object, member) else { return Ok(None) };
    let text = crate::object::string(raw).ok_or_else(|| wrong(&format!("`message.{member}` is not a text")))?;
    if text.len() > ID_BYTES_MAX {
        return Err(wrong(&format!("`message.{member}` is longer than {ID_BYTES_MAX} bytes")));
    }
    Ok((!text.is_empty()).then(|| text.into_owned()))
}

fn wrong(message: &str) -> Refused {
    Refused::of(Trouble::InvalidParams, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, version: Version) -> Result<Incoming<'_>, Refused> {
        Incoming::read(serde_json::from_str(text).unwrap(), version)
    }

    #[test]
    fn a_call_is_a_data_part_and_keeps_its_bytes() {
        let text = r#"{"message":{"messageId":"m1","contextId":"","role":"ROLE_USER","parts":[{"text":"please"},
            {"data":{"tool":"pay","args":{"n":1.0,"big":12345678901234567890123}}}]},
            "configuration":{"returnImmediately":true}}"#;
        let incoming = read(text, Version::V1).unwrap();
        assert!(incoming.at_once && incoming.context.is_none());
        let Wanted::Call { tool, args } = incoming.wanted() else { panic!("{incoming:?}") };
        assert_eq!((tool.as_str(), args.unwrap().get()), ("pay", r#"{"n":1.0,"big":12345678901234567890123}"#));
    }

    #[test]
    fn a_message_of_the_older_version_is_read_as_well() {
        let text = r#"{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]},
            "configuration":{"blocking":false}}"#;
        let incoming = read(text, Version::V03).unwrap();
        assert!(incoming.at_once);
        assert!(matches!(incoming.wanted(), Wanted::Text(text) if text == "hi"));
    }

    #[test]
    fn what_is_no_message_is_said_to_be_none() {
        let long = format!(r#"{{"message":{{"messageId":"{}","parts":[{{"text":"x"}}]}}}}"#, "x".repeat(300));
        for odd in [
            "[]",
            "{}",
            r#"{"message":7}"#,
            r#"{"message":{"parts":[]}}"#,
            r#"{"message":{"messageId":"","parts":[{"text":"x"}]}}"#,
            r#"{"message":{"messageId":7,"parts":[{"text":"x"}]}}"#,
            r#"{"message":{"messageId":"m","parts":[]}}"#,
            r#"{"message":{"messageId":"m","parts":[7]}}"#,
            r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#,
            &long,
        ] {
            assert_eq!(read(odd, Version::V1).unwrap_err().trouble, Trouble::InvalidParams, "{odd}");
        }
    }

    #[test]
    fn a_file_is_of_a_type_that_is_taken_or_strange() {
        let strange = |parts: &str, taken: &[&str]| {
            let text = format!(r#"{{"message":{{"messageId":"m","parts":{parts}}}}}"#);
            let incoming = read(&text, Version::V1).unwrap();
            let taken: Vec<String> = taken.iter().map(|media| (*media).to_owned()).collect();
            incoming.strange(&taken).map(str::to_owned)
        };
        let file = r#"[{"raw":"AA==","mediaType":"image/png"}]"#;
        assert_eq!(strange(file, &[]).as_deref(), Some("image/png"));
        for taken in ["image/png", "image/*", "*/*"] {
            assert_eq!(strange(file, &[taken]), None, "{taken}");
        }
        assert_eq!(strange(r#"[{"text":"a"},{"url":"https://h/a"}]"#, &["image/*"]).as_deref(), Some(UNNAMED));
        let old = r#"[{"kind":"file","file":{"uri":"https://h/a","mimeType":"audio/ogg"}}]"#;
        assert_eq!(strange(old, &[]).as_deref(), Some("audio/ogg"));
        let read = r#"[{"text":"a","mediaType":"text/markdown; charset=utf-8"},{"data":{},"mediaType":"application/json"},{"data":{}}]"#;
        assert_eq!(strange(read, &[]), None);
        assert_eq!(strange(r#"[{"data":{},"mediaType":"text/csv"}]"#, &[]).as_deref(), Some("text/csv"));
    }

    #[test]
    fn a_text_answers_a_question_that_wants_one_text() {
        let text = r#"{"message":{"messageId":"m","parts":[{"text":"blue"}]}}"#;
        let incoming = read(text, Version::V1).unwrap();
        let one = serde_json::json!({"type":"object","properties":{"color":{"type":"string"}}});
        assert_eq!(incoming.content(&one).unwrap()["color"], "blue");
        let two = serde_json::json!({"properties":{"a":{"type":"string"},"b":{"type":"string"}}});
        assert_eq!(incoming.content(&two), None);
        let number = serde_json::json!({"properties":{"a":{"type":"number"}}});
        assert_eq!(incoming.content(&number), None);
    }
}
