//! Agents that we call: their cards, what we send them, and what they say of a task.

use serde_json::{Map, Value, json};

use super::error::Trouble;
use super::state::State;
use super::version::Version;
use crate::object::quoted;

/// The tool that reads the state of a task.
pub const LOOK: &str = "get_task";
/// The member of a result's `_meta` that names the task it comes from.
pub const META: &str = "amends/a2a";
/// How many skills of one agent are served.
const SKILLS_MAX: usize = 256;

/// An agent, as its card describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// Where it is spoken to with JSON-RPC.
    pub url: String,
    /// Which version it speaks there.
    pub speaks: Version,
    /// Whether it streams.
    pub streams: bool,
    /// Its skills as tools, as an MCP list shows them.
    pub tools: Vec<Value>,
}

impl Agent {
    /// Reads a card. It says what is missing where nobody can be called by it.
    pub fn read(card: &str) -> Result<Self, String> {
        let card: Value = serde_json::from_str(card).map_err(|error| format!("its card is not JSON: {error}"))?;
        let text = |name: &str| card[name].as_str().unwrap_or_default().to_owned();
        let (url, speaks) =
            interface(&card).ok_or("its card names no address for JSON-RPC in a version that is spoken here")?;
        let mut tools: Vec<Value> = Vec::new();
        for skill in card["skills"].as_array().into_iter().flatten().take(SKILLS_MAX) {
            let id = skill["id"].as_str().unwrap_or_default();
            let name = sound(id);
            if name.is_empty() || name == LOOK || tools.iter().any(|tool| tool["name"] == name.as_str()) {
                continue;
            }
            tools.push(tool(&name, id, skill));
        }
        if tools.is_empty() {
            tools.push(tool("send", "", &json!({ "name": text("name"), "description": text("description") })));
        }
        tools.push(look());
        let streams = card["capabilities"]["streaming"].as_bool().unwrap_or(false);
        Ok(Self { name: text("name"), version: text("version"), url, speaks, streams, tools })
    }
}

/// Where it is spoken to: the newest version that both know.
fn interface(card: &Value) -> Option<(String, Version)> {
    let listed = card["supportedInterfaces"].as_array();
    let mut known: Vec<(String, Version)> = listed
        .into_iter()
        .flatten()
        .filter(|interface| interface["protocolBinding"] == "JSONRPC")
        .filter_map(|interface| {
            let version = interface["protocolVersion"].as_str().unwrap_or("1.0");
            Some((interface["url"].as_str()?.to_owned(), Version::parse(version)?))
        })
        .collect();
    known.sort_by_key(|(_, version)| *version != Version::V1);
    known.into_iter().next().or_else(|| {
        let transport = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
        let version = Version::parse(card["protocolVersion"].as_str()?)?;
        (transport == "JSONRPC").then_some((card["url"].as_str()?.to_owned(), version))
    })
}

/// A skill's id as the name of a tool.
fn sound(id: &str) -> String {
    let sound = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    id.chars().take(64).map(sound).collect()
}

fn tool(name: &str, id: &str, skill: &Value) -> Value {
    let title = skill["name"].as_str().unwrap_or(name);
    let description = skill["description"].as_str().unwrap_or_default();
    let properties = json!({
        "message": { "type": "string", "description": "what the agent is told or asked, in words" },
        "data": { "type": "object", "description": "what it is given as data" },
        "context": { "type": "string", "description": "the context of an earlier answer, to go on in it" },
    });
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "anyOf": [{ "required": ["message"] }, { "required": ["data"] }],
            "additionalProperties": false,
        },
        "_meta": { META: { "skill": id } },
    })
}

fn look() -> Value {
    json!({
        "name": LOOK,
        "title": "Look at a task",
        "description": "says where a task of this agent is, by the id that an answer named",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "wait": { "type": "boolean", "description": "whether to wait until the task is over" },
            },
            "required": ["id"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true },
    })
}

/// The methods, in the words of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Send a message and wait.
    Send,
    /// Send a message and hear of its task.
    Stream,
    /// Look at a task.
    Get,
    /// Stop a task.
    Cancel,
    /// Hear of a task again.
    Subscribe,
}

impl Method {
    /// Its name.
    pub const fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Send, Version::V1) => "SendMessage",
            (Self::Send, Version::V03) => "message/send",
            (Self::Stream, Version::V1) => "SendStreamingMessage",
            (Self::Stream, Version::V03) => "message/stream",
            (Self::Get, Version::V1) => "GetTask",
            (Self::Get, Version::V03) => "tasks/get",
            (Self::Cancel, Version::V1) => "CancelTask",
            (Self::Cancel, Version::V03) => "tasks/cancel",
            (Self::Subscribe, Version::V1) => "SubscribeToTask",
            (Self::Subscribe, Version::V03) => "tasks/resubscribe",
        }
    }
}

/// A message that we send.
#[derive(Clone, Debug, Default)]
pub struct Outgoing<'a> {
    /// Its id.
    pub id: &'a str,
    /// The context it belongs to.
    pub context: Option<&'a str>,
    /// The task it goes on with.
    pub task: Option<&'a str>,
    /// Its words.
    pub text: Option<&'a str>,
    /// Its data, as they were written.
    pub data: Option<&'a str>,
    /// The skill it is for.
    pub skill: &'a str,
}

impl Outgoing<'_> {
    /// The parameters of a request that sends it.
    pub fn params(&self, version: Version) -> String {
        let (role, kinds) = match version {
            Version::V1 => ("ROLE_USER", ["", ""]),
            Version::V03 => ("user", ["\"kind\":\"text\",", "\"kind\":\"data\","]),
        };
        let mut parts = Vec::new();
        parts.extend(self.text.map(|text| format!("{{{}\"text\":{}}}", kinds[0], quoted(text))));
        parts.extend(self.data.map(|data| format!("{{{}\"data\":{data}}}", kinds[1])));
        let mut members = vec![format!("\"messageId\":{}", quoted(self.id)), format!("\"role\":\"{role}\"")];
        members.extend(self.context.map(|context| format!("\"contextId\":{}", quoted(context))));
        members.extend(self.task.map(|task| format!("\"taskId\":{}", quoted(task))));
        members.push(format!("\"parts\":[{}]", parts.join(",")));
        if !self.skill.is_empty() {
            members.push(format!("\"metadata\":{{\"skill\":{}}}", quoted(self.skill)));
        }
        if version == Version::V03 {
            members.push("\"kind\":\"message\"".into());
        }
        let modes = r#""acceptedOutputModes":["application/json","text/plain"]"#;
        let waits = match version {
            Version::V1 => "",
            Version::V03 => ",\"blocking\":true",
        };
        format!("{{\"message\":{{{}}},\"configuration\":{{{modes}{waits}}}}}", members.join(","))
    }
}

/// What an agent says of its work.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It answers with a message, and there is no task.
    Message(Value),
    /// A task, whole.
    Task(Box<Task>),
    /// A task is somewhere else now.
    Status(Box<Task>),
    /// Something of a task that says nothing of its state.
    Aside {
        /// The task.
        id: String,
        /// The context it belongs to.
        context: String,
    },
}

/// A task of an agent, as far as it was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// The context it belongs to.
    pub context: String,
    /// Where it is; nothing where its word for that is not known here.
    pub state: Option<State>,
    /// All of it.
    pub value: Value,
}

impl Said {
    /// Reads the result of a request or of one event of a stream; nothing where it is none of that.
    pub fn read(result: &Value) -> Option<Self> {
        let named = |name: &str| result.get(name).filter(|value| value.is_object());
        // 1.0 says what it is by the member, 0.3 by the kind.
        let (kind, value) = ["task", "message", "statusUpdate", "artifactUpdate"]
            .into_iter()
            .find_map(|name| Some((name, named(name)?)))
            .or_else(|| Some((result["kind"].as_str()?, result)))
            .or_else(|| result.get("status").is_some().then_some(("task", result)))?;
        match kind {
            "task" => Some(Self::Task(Box::new(Task::read(value)?))),
            "message" => Some(Self::Message(value.clone())),
            "statusUpdate" | "status-update" => {
                let id = value["taskId"].as_str()?;
                let task = json!({ "id": id, "contextId": value["contextId"], "status": value["status"] });
                Some(Self::Status(Box::new(Task::read(&task)?)))
            }
            "artifactUpdate" | "artifact-update" => {
                let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
                Some(Self::Aside { id: text("taskId"), context: text("contextId") })
            }
            _ => None,
        }
    }
}

impl Task {
    /// Reads a task.
    pub fn read(value: &Value) -> Option<Self> {
        let id = value["id"].as_str().filter(|id| !id.is_empty())?.to_owned();
        let state = State::parse(value["status"]["state"].as_str()?);
        let context = value["contextId"].as_str().unwrap_or_default().to_owned();
        Some(Self { id, context, state, value: value.clone() })
    }

    /// What its state is said to be about: the words of its message, and the first object of data in it.
    pub fn says(&self) -> (String, Option<&Value>) {
        let parts = self.value["status"]["message"]["parts"].as_array();
        let parts = parts.map(Vec::as_slice).unwrap_or_default();
        let words: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        (words.join("\n"), parts.iter().map(|part| &part["data"]).find(|data| data.is_object()))
    }

    /// Whether it waits for a person that only the agent can ask: one of ours says whom it asks, and no answer of whoever called
    /// would fit.
    pub fn asks_elsewhere(&self) -> bool {
        let (_, data) = self.says();
        self.state == Some(State::InputRequired)
            && data.is_some_and(|data| data["interaction"].is_string() && data["responseSchema"].is_null())
    }

    /// It as the result of a tool. What did not end well is said to be an error.
    pub fn result(&self) -> Value {
        let artifacts = self.value["artifacts"].as_array();
        let given: Vec<&Value> =
            artifacts.into_iter().flatten().filter_map(|artifact| artifact["parts"].as_array()).flatten().collect();
        let said = self.value["status"]["message"]["parts"].as_array().into_iter().flatten();
        let done = self.state == Some(State::Completed);
        let parts: Vec<&Value> = match done && !given.is_empty() {
            true => given,
            false => said.collect(),
        };
        let mut result = result(&parts);
        if !done {
            result["isError"] = true.into();
        }
        let state = self.state.map(|state| state.name(Version::V1));
        result["_meta"] = json!({ META: { "task": self.id, "context": self.context, "state": state } });
        result
    }
}

/// A message of an agent as the result of a tool.
pub fn message_result(message: &Value) -> Value {
    let parts: Vec<&Value> = message["parts"].as_array().into_iter().flatten().collect();
    let mut result = result(&parts);
    result["_meta"] = json!({ META: { "context": message["contextId"] } });
    result
}

/// Parts as the content of a result. One object of data is its structured content; several are listed, unless one of them is an
/// envelope of ours, which says it all.
fn result(parts: &[&Value]) -> Value {
    let content: Vec<Value> = parts.iter().filter_map(|part| block(part)).collect();
    let data: Vec<&Value> = parts.iter().map(|part| &part["data"]).filter(|data| !data.is_null()).collect();
    let mut result = Map::from_iter([("content".to_owned(), Value::Array(content))]);
    let envelope = data.iter().find(|data| data["charter_version"].is_string() && data["status"].is_string());
    match envelope.map_or(data.as_slice(), std::slice::from_ref) {
        [] => {}
        [only] if only.is_object() => drop(result.insert("structuredContent".into(), (*only).clone())),
        several => drop(result.insert("structuredContent".into(), json!({ "parts": several }))),
    }
    Value::Object(result)
}

fn block(part: &Value) -> Option<Value> {
    let media = |part: &Value| {
        let media = part["mediaType"].as_str().or_else(|| part["mimeType"].as_str());
        media.unwrap_or("application/octet-stream").to_owned()
    };
    let bytes = |blob: &str, of: &Value| json!({ "type": "resource", "resource": { "uri": "amends:part", "mimeType": media(of), "blob": blob } });
    let link =
        |uri: &str, of: &Value| json!({ "type": "resource_link", "uri": uri, "name": uri, "mimeType": media(of) });
    if let Some(text) = part["text"].as_str() {
        return Some(json!({ "type": "text", "text": text }));
    }
    if let Some(blob) = part["raw"].as_str() {
        return Some(bytes(blob, part));
    }
    if let Some(uri) = part["url"].as_str() {
        return Some(link(uri, part));
    }
    let file = &part["file"];
    if let Some(blob) = file["bytes"].as_str() {
        return Some(bytes(blob, file));
    }
    if let Some(uri) = file["uri"].as_str() {
        return Some(link(uri, file));
    }
    // What is only data is said in words as well, for clients that do not look elsewhere.
    (!part["data"].is_null()).then(|| json!({ "type": "text", "text": part["data"].to_string() }))
}

/// The reason that an error names of itself.
pub fn reason(data: &Value) -> Option<&str> {
    let details = data.as_array().into_iter().flatten();
    details.filter(|detail| detail["domain"] == "a2a-protocol.org").find_map(|detail| detail["reason"].as_str())
}

/// Whether an error says that there is no such task.
pub fn is_gone(number: i64, data: &Value) -> bool {
    Trouble::find(number, reason(data)) == Some(Trouble::TaskNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_of_either_version_names_an_address_and_tools() {
        let new = r#"{"name":"a","version":"1","supportedInterfaces":[
            {"url":"http://h/grpc","protocolBinding":"GRPC","protocolVersion":"1.0"},
            {"url":"http://h/old","protocolBinding":"JSONRPC","protocolVersion":"0.3"},
            {"url":"http://h/new","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
            "capabilities":{"streaming":true},
            "skills":[{"id":"book a flight","name":"Book","description":"books"},{"id":"book_a_flight"},{"id":"get_task"}]}"#;
        let agent = Agent::read(new).unwrap();
        assert_eq!((agent.url.as_str(), agent.speaks, agent.streams), ("http://h/new", Version::V1, true));
        let names: Vec<&str> = agent.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["book_a_flight", LOOK]);
        let old = r#"{"name":"a","url":"http://h/","protocolVersion":"0.3.0","capabilities":{},"skills":[]}"#;
        let agent = Agent::read(old).unwrap();
        assert_eq!((agent.speaks, agent.tools[0]["name"].as_str()), (Version::V03, Some("send")));
        for odd in ["", "[]", "{}", r#"{"url":"http://h","protocolVersion":"9"}"#] {
            assert!(Agent::read(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn what_is_said_of_a_task_is_known_in_both_versions() {
        let status = json!({"state": "TASK_STATE_WORKING"});
        let new = [
            json!({"task": {"id": "t", "contextId": "c", "status": status}}),
            json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}),
        ];
        let old = [
            json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}),
            json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "working"}}),
        ];
        for said in new.iter().chain(&old) {
            match Said::read(said) {
                Some(Said::Task(task) | Said::Status(task)) => {
                    assert_eq!((task.id.as_str(), task.state), ("t", Some(State::Working)));
                }
                other => panic!("{said}: {other:?}"),
            }
        }
        let odd = json!({"task": {"id": "t", "status": {"state": "TASK_STATE_DREAMING"}}});
        assert!(matches!(Said::read(&odd), Some(Said::Task(task)) if task.state.is_none()));
        for odd in [json!(7), json!({}), json!({"task": 7}), json!({"task": {"id": ""}}), json!({"kind": "x"})] {
            assert_eq!(Said::read(&odd), None, "{odd}");
        }
    }

    #[test]
    fn artifacts_become_content_and_one_object_is_structured() {
        let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [
            {"parts": [{"text": "done"}, {"data": {"n": 1}}, {"raw": "AA==", "mediaType": "image/png"}]}]});
        let result = Task::read(&task).unwrap().result();
        assert_eq!((result["structuredContent"]["n"].as_i64(), result.get("isError")), (Some(1), None));
        assert_eq!(result["content"][0]["text"], "done");
        assert_eq!(result["content"][2]["resource"]["mimeType"], "image/png");
        let failed =
            json!({"id": "t", "status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"text": "no"}]}}});
        let result = Task::read(&failed).unwrap().result();
        assert_eq!((result["isError"].as_bool(), result["content"][0]["text"].as_str()), (Some(true), Some("no")));
    }
}
