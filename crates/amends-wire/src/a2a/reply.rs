//! Tasks as messages, in the words of either version.

use amends_core::Interaction;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::state::State;
use super::version::Version;
use crate::mcp::InputRequired;
use crate::object::{Object, is_null, quoted};

/// A part of a message or an artifact.
#[derive(Clone, Debug)]
pub enum Part {
    /// A text.
    Text(String),
    /// A value, as it was written.
    Data(Box<RawValue>),
    /// Bytes in base 64, and what they are.
    Bytes(String, File),
    /// An address, and what is there.
    Address(String, File),
}

/// What a file is.
#[derive(Clone, Debug)]
pub struct File {
    /// Its media type.
    pub media: String,
    /// What it is called.
    pub name: Option<String>,
}

/// A task as it is told.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// Its id.
    pub id: String,
    /// The context it belongs to.
    pub context: String,
    /// Where it is.
    pub state: State,
    /// Since when: a time in UTC with a `T` and a `Z`.
    pub since: String,
    /// What is said of its state.
    pub says: Vec<Part>,
    /// What it gave.
    pub artifacts: Vec<(&'static str, Vec<Part>)>,
    /// What else is known of it, an object.
    pub metadata: Value,
}

impl Part {
    /// It in the words of that version.
    pub fn json(&self, version: Version) -> String {
        let kind = |kind: &str| match version {
            Version::V1 => String::new(),
            Version::V03 => format!("\"kind\":\"{kind}\","),
        };
        match (self, version) {
            (Self::Text(text), _) => format!("{{{}\"text\":{}}}", kind("text"), quoted(text)),
            (Self::Data(data), Version::V1) => {
                format!("{{\"data\":{},\"mediaType\":\"application/json\"}}", data.get())
            }
            // Before 1.0 only objects were data.
            (Self::Data(data), Version::V03) if data.get().starts_with('{') => {
                format!("{{\"kind\":\"data\",\"data\":{}}}", data.get())
            }
            (Self::Data(data), Version::V03) => format!("{{\"kind\":\"data\",\"data\":{{\"value\":{}}}}}", data.get()),
            (Self::Bytes(bytes, file), Version::V1) => file.part("raw", bytes),
            (Self::Address(url, file), Version::V1) => file.part("url", url),
            (Self::Bytes(bytes, file), Version::V03) => file.old_part("bytes", bytes),
            (Self::Address(url, file), Version::V03) => file.old_part("uri", url),
        }
    }
}

impl File {
    fn part(&self, member: &str, value: &str) -> String {
        let mut part = json!({ member: value, "mediaType": self.media });
        if let Some(name) = &self.name {
            part["filename"] = name.as_str().into();
        }
        part.to_string()
    }

    fn old_part(&self, member: &str, value: &str) -> String {
        let mut file = json!({ member: value, "mimeType": self.media });
        if let Some(name) = &self.name {
            file["name"] = name.as_str().into();
        }
        json!({ "kind": "file", "file": file }).to_string()
    }
}

impl TaskView {
    /// It as a task.
    pub fn task(&self, version: Version, with_artifacts: bool) -> String {
        let mut members = vec![
            format!("\"id\":{}", quoted(&self.id)),
            format!("\"contextId\":{}", quoted(&self.context)),
            format!("\"status\":{}", self.status(version)),
        ];
        if with_artifacts && !self.artifacts.is_empty() {
            let artifacts: Vec<String> = (0..self.artifacts.len()).map(|at| self.artifact(at, version)).collect();
            members.push(format!("\"artifacts\":[{}]", artifacts.join(",")));
        }
        members.push(format!("\"metadata\":{}", self.metadata));
        if version == Version::V03 {
            members.push("\"kind\":\"task\"".into());
        }
        format!("{{{}}}", members.join(","))
    }

    /// The answer to a message: what a request gets, or the first that a stream says.
    pub fn answer(&self, version: Version) -> String {
        match version {
            Version::V1 => format!("{{\"task\":{}}}", self.task(version, true)),
            Version::V03 => self.task(version, true),
        }
    }

    /// The event that says where the task is now.
    pub fn status_update(&self, version: Version) -> String {
        let (id, context) = (quoted(&self.id), quoted(&self.context));
        let status = self.status(version);
        let metadata = &self.metadata;
        match version {
            Version::V1 => format!(
                "{{\"statusUpdate\":{{\"taskId\":{id},\"contextId\":{context},\"status\":{status},\"metadata\":{metadata}}}}}"
            ),
            Version::V03 => format!(
                "{{\"kind\":\"status-update\",\"taskId\":{id},\"contextId\":{context},\"status\":{status},\"final\":{},\"metadata\":{metadata}}}",
                // A stream of 0.3 ends where somebody is asked.
                self.state.is_terminal() || self.state.is_interrupted()
            ),
        }
    }

    /// The events that say what it gave.
    pub fn artifact_updates(&self, version: Version) -> Vec<String> {
        let (id, context) = (quoted(&self.id), quoted(&self.context));
        let one = |at| {
            let artifact = self.artifact(at, version);
            let update = format!(
                "\"taskId\":{id},\"contextId\":{context},\"artifact\":{artifact},\"append\":false,\"lastChunk\":true"
            );
            match version {
                Version::V1 => format!("{{\"artifactUpdate\":{{{update}}}}}"),
                Version::V03 => format!("{{\"kind\":\"artifact-update\",{update}}}"),
            }
        };
        (0..self.artifacts.len()).map(one).collect()
    }

    fn status(&self, version: Version) -> String {
        let state = self.state.name(version);
        let said = match self.says.is_empty() {
            true => String::new(),
            false => format!(",\"message\":{}", self.message(version)),
        };
        format!("{{\"state\":\"{state}\"{said},\"timestamp\":{}}}", quoted(&self.since))
    }

    fn message(&self, version: Version) -> String {
        let (role, kind) = match version {
            Version::V1 => ("ROLE_AGENT", ""),
            Version::V03 => ("agent", "\"kind\":\"message\","),
        };
        let parts: Vec<String> = self.says.iter().map(|part| part.json(version)).collect();
        format!(
            "{{{kind}\"messageId\":{},\"taskId\":{},\"contextId\":{},\"role\":\"{role}\",\"parts\":[{}]}}",
            quoted(&format!("{}-{}", self.id, self.state.name(Version::V03))),
            quoted(&self.id),
            quoted(&self.context),
            parts.join(",")
        )
    }

    fn artifact(&self, at: usize, version: Version) -> String {
        let (name, parts) = &self.artifacts[at];
        let parts: Vec<String> = parts.iter().map(|part| part.json(version)).collect();
        format!("{{\"artifactId\":\"{name}\",\"name\":\"{name}\",\"parts\":[{}]}}", parts.join(","))
    }
}

/// What a finished call gave: its content as parts, where it has any beside data, and the envelope.
pub fn artifacts(envelope: &RawValue) -> Vec<(&'static str, Vec<Part>)> {
    let content = content(envelope);
    let envelope = ("envelope", vec![Part::Data(envelope.to_owned())]);
    match content.is_empty() {
        true => vec![envelope],
        false => vec![("content", content), envelope],
    }
}

/// The same without the envelope: only what the tool gave, its data among it.
pub fn given(envelope: &RawValue) -> Vec<(&'static str, Vec<Part>)> {
    let mut parts = content(envelope);
    if parts.is_empty() {
        parts.extend(data(envelope).map(|data| Part::Data(data.to_owned())));
    }
    if parts.is_empty() { Vec::new() } else { vec![("content", parts)] }
}

fn data(envelope: &RawValue) -> Option<&RawValue> {
    Object::parse(envelope.get()).and_then(|envelope| envelope.get("data")).filter(|data| !is_null(data))
}

/// The blocks of content in an envelope's data, as parts.
fn content(envelope: &RawValue) -> Vec<Part> {
    let blocks = data(envelope).and_then(|data| Object::parse(data.get())).and_then(|data| data.get("content"));
    let blocks: Vec<Object<'_>> = blocks.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    blocks.iter().filter_map(block).collect()
}

/// A block of a tool's content as a part.
fn block(block: &Object<'_>) -> Option<Part> {
    let text = |object: &Object<'_>, name: &str| object.string(name).map(|text| text.into_owned());
    let media = |object: &Object<'_>| text(object, "mimeType").unwrap_or_else(|| "application/octet-stream".into());
    let file = |object: &Object<'_>, name: Option<String>| File { media: media(object), name };
    match block.string("type")?.as_ref() {
        "text" => Some(Part::Text(text(block, "text")?)),
        "image" | "audio" => Some(Part::Bytes(text(block, "data")?, file(block, None))),
        "resource_link" => Some(Part::Address(text(block, "uri")?, file(block, text(block, "name")))),
        "resource" => {
            let resource = Object::parse(block.get("resource")?.get())?;
            match text(&resource, "blob") {
                Some(blob) => {
                    let name = text(&resource, "uri").and_then(|uri| last_segment(&uri));
                    Some(Part::Bytes(blob, file(&resource, name)))
                }
                None => Some(written(text(&resource, "text")?, &media(&resource))),
            }
        }
        _ => None,
    }
}

/// A text of that type: what is JSON is data.
fn written(text: String, media: &str) -> Part {
    let data = (media == "application/json").then(|| RawValue::from_string(text.clone()).ok()).flatten();
    data.map_or(Part::Text(text), Part::Data)
}

/// What a file at that address is called.
fn last_segment(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// What is said of a call that did not end well: its sentence, and the envelope.
pub fn failure(envelope: &RawValue) -> Vec<Part> {
    let error = Object::parse(envelope.get()).and_then(|envelope| Object::parse(envelope.get("error")?.get()));
    let message = error.and_then(|error| error.string("message").map(|text| text.into_owned()));
    let text = message.into_iter().map(Part::Text);
    text.chain([Part::Data(envelope.to_owned())]).collect()
}

/// What is said while a person is asked: the question, and what an answer looks like where whoever called may give one.
pub fn question(asks: &Interaction, may: bool) -> Vec<Part> {
    let words = match may {
        true => asks.question.clone(),
        false => format!("{} A person is asked, and not whoever called.", asks.question),
    };
    let mut data = json!({
        "interaction": asks.id,
        "kind": asks.kind.as_str(),
        "queue": asks.queue,
        "question": asks.question,
        "due": asks.due.ms(),
        "default": asks.default,
    });
    if may {
        data["responseSchema"] = json!({
            "type": "object",
            "properties": { "choice": { "type": "string", "enum": asks.options } },
            "required": ["choice"],
        });
    }
    if let Some(view) = &asks.view {
        data["call"] = json!({ "tool": asks.tool, "view": view });
    }
    vec![Part::Text(words), data_of(&data)]
}

/// What is said while an upstream asks something of the agent: each question, and what an answer looks like.
pub fn inquiry(asked: &InputRequired) -> Vec<Part> {
    let mut says = Vec::new();
    let mut questions = serde_json::Map::new();
    for question in &asked.questions {
        let params: Value =
            question.params.as_deref().and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        if let Some(message) = params["message"].as_str() {
            says.push(Part::Text(message.to_owned()));
        }
        questions.insert(question.key.clone(), json!({ "method": question.method, "params": params }));
    }
    let schema = match asked.questions.as_slice() {
        [only] => only.params.as_deref().and_then(|params| serde_json::from_str::<Value>(params).ok()),
        _ => None,
    };
    let mut data = json!({ "questions": questions });
    if let Some(mut params) = schema
        && !params["requestedSchema"].is_null()
    {
        data["responseSchema"] = params["requestedSchema"].take();
    }
    says.push(data_of(&data));
    says
}

/// What is said to somebody whose message names no tool.
pub fn how_to_call(tools: &[String]) -> String {
    let shown: Vec<String> = tools.iter().take(8).map(|tool| format!("`{tool}`")).collect();
    let known = if shown.is_empty() { String::new() } else { format!("; there are {}", shown.join(", ")) };
    format!("a message calls a tool with a data part {{\"tool\": …, \"args\": {{…}}}}{known}")
}

fn data_of(value: &Value) -> Part {
    Part::Data(serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
}

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_envelope_there_is_what_the_tool_gave() {
        let parts = |envelope: &str| -> Vec<String> {
            let raw: &RawValue = serde_json::from_str(envelope).unwrap();
            given(raw).iter().flat_map(|(_, parts)| parts.iter().map(|part| part.json(Version::V1))).collect()
        };
        let data = r#"{"status":"success","data":{"key":"value"},"charter_version":"1.0"}"#;
        assert_eq!(parts(data), [r#"{"data":{"key":"value"},"mediaType":"application/json"}"#]);
        let content = r#"{"status":"success","data":{"content":[{"type":"text","text":"hi"}]}}"#;
        assert_eq!(parts(content), [r#"{"text":"hi"}"#]);
        for nothing in [r#"{"status":"success"}"#, r#"{"status":"success","data":null}"#] {
            assert!(parts(nothing).is_empty(), "{nothing}");
        }
    }
}
