//! Answers and questions as AG-UI says them.

use amends_core::interaction::{Form, InteractionKind, choice};
use amends_core::refusal::ArgumentFault;
use amends_core::registry::AgUi;
use amends_core::{Certainty, Code, Interaction, InteractionId, Refusal, RefusalKind};
use serde_json::{Map, Value, json};

use super::event::{Content, Event, Interrupt, Part, Source};
use super::input::{Answer, unfit};
use crate::Schema;
use crate::mcp::Question;
use crate::mcp::reply::{ENVELOPE, RECEIPT};
use crate::message::Message;

/// How a run goes on after the answer of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goes {
    /// The step was done.
    On,
    /// It was not, and whoever wrote the plan has to think again.
    Stops,
    /// It was not, for reasons that are nobody's in this conversation.
    Fails {
        /// The registry's code.
        code: Code,
        /// What went wrong.
        message: String,
    },
    /// Somebody must answer first.
    Asks(Option<InteractionId>),
    /// It was stopped.
    Cancelled,
}

/// How a run goes on after an answer with that envelope, as the registry says.
pub fn goes(envelope: &Value) -> Goes {
    let error = &envelope["error"];
    if error.is_null() {
        return Goes::On;
    }
    let code = error["code"].as_str().and_then(Code::parse).unwrap_or(Code::ActionError);
    let refused = envelope["status"] == "refused";
    let kind = error["kind"].as_str().and_then(|kind| RefusalKind::ALL.into_iter().find(|it| it.as_str() == kind));
    let says = kind.filter(|_| refused).map_or_else(|| code.ag_ui(), RefusalKind::ag_ui);
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let in_doubt = error["certainty"] == Certainty::InDoubt.as_str();
    match says {
        // What is known of an effect outranks every code.
        AgUi::ToolResult if in_doubt => Goes::Fails { code, message },
        AgUi::ToolResult => Goes::Stops,
        AgUi::HttpError | AgUi::RunError => Goes::Fails { code, message },
        AgUi::Interrupt => Goes::Asks(error["interaction"].as_str().map(InteractionId::new)),
        AgUi::Cancelled => Goes::Cancelled,
    }
}

/// The result of a call. `message` is its answer as an MCP client gets it, and `envelope` what it says.
pub fn result(call: &str, message_id: String, message: &str, envelope: &Value) -> Event {
    let (content, receipt) = match Message::parse(message) {
        Ok(Message::Success { result, .. }) => {
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            (content(&result), result["_meta"][RECEIPT].clone())
        }
        Ok(Message::Failure { error, .. }) => {
            let data: Value = error.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
            (Content::Text(error.message.into_owned()), data["_meta"][RECEIPT].clone())
        }
        Ok(Message::Request { .. } | Message::Notification { .. }) | Err(_) => {
            (Content::Text(String::new()), Value::Null)
        }
    };
    let mut bare = envelope.clone();
    if let Some(bare) = bare.as_object_mut() {
        // What was given is the content.
        bare.remove("data");
    }
    let members = [(ENVELOPE, bare), (RECEIPT, receipt)].into_iter().filter(|(_, value)| !value.is_null());
    let metadata = members.map(|(name, value)| (name.to_owned(), value)).collect();
    Event::ToolCallResult { message_id, tool_call_id: call.to_owned(), content, role: "tool", metadata }
}

/// What a model reads of an MCP result.
fn content(result: &Value) -> Content {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut parts: Vec<Part> = blocks.iter().map(part).collect();
    match (parts.pop(), parts.is_empty(), &result["structuredContent"]) {
        (None, _, Value::Null) => Content::Text(String::new()),
        (None, _, structured) => Content::Text(structured.to_string()),
        (Some(Part::Text { text }), true, _) => Content::Text(text),
        (Some(last), _, _) => {
            parts.push(last);
            Content::Parts(parts)
        }
    }
}

/// A block of an MCP result. What this protocol has no part for is told as JSON.
fn part(block: &Value) -> Part {
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    let source = || Some(Source { kind: "data", value: text("data")?, mime_type: text("mimeType")? });
    let known = match block["type"].as_str() {
        Some("text") => text("text").map(|text| Part::Text { text }),
        Some("image") => source().map(|source| Part::Image { source }),
        Some("audio") => source().map(|source| Part::Audio { source }),
        _ => None,
    };
    known.unwrap_or_else(|| Part::Text { text: block.to_string() })
}

/// A question to a person, as what a run ends with. `expires_at` is when it is due.
pub fn of_person(interaction: &Interaction, call: &str, expires_at: String) -> Interrupt {
    let shown = interaction.view.as_ref().map(|view| format!(" {view}")).unwrap_or_default();
    let reason = match interaction.kind {
        InteractionKind::Approve => "tool_call",
        InteractionKind::Confirm => "confirmation",
        InteractionKind::Ask | InteractionKind::Select => "input_required",
        InteractionKind::AuthUrl | InteractionKind::AuthDeviceCode => "amends:sign_in",
    };
    let about = json!({
        "kind": interaction.kind, "subject": interaction.subject, "tool": interaction.tool, "queue": interaction.queue,
        "options": interaction.options, "default": interaction.default,
    });
    Interrupt {
        id: interaction.id.to_string(),
        reason,
        message: Some(format!("{}{shown}", interaction.question)),
        tool_call_id: Some(call.to_owned()),
        response_schema: Some(schema(interaction)),
        expires_at: Some(expires_at),
        metadata: Map::from_iter([("amends".to_owned(), about)]),
    }
}

/// The form that an answer fills in, where none of the options is an answer by itself.
fn form(interaction: &Interaction) -> Option<&Form> {
    interaction.form().filter(|form| form.choices.is_empty())
}

/// What an answer of a person looks like.
fn schema(interaction: &Interaction) -> Value {
    if let Some(form) = form(interaction) {
        return serde_json::from_str(&form.schema).unwrap_or_else(|_| json!({ "type": "object" }));
    }
    if interaction.options.is_empty() {
        let answer = json!({ "type": "string", "title": "Answer" });
        return json!({ "type": "object", "properties": { "answer": answer }, "required": ["answer"] });
    }
    let choice = json!({ "type": "string", "title": "Answer", "enum": interaction.options });
    let note = json!({ "type": "string", "title": "Note" });
    if interaction.kind != InteractionKind::Approve {
        return json!({ "type": "object", "properties": { "choice": choice, "note": note }, "required": ["choice"] });
    }
    let approved = json!({ "type": "boolean", "title": "Approve" });
    json!({
        "type": "object",
        "properties": { "approved": approved, "choice": choice, "note": note },
        "anyOf": [{ "required": ["approved"] }, { "required": ["choice"] }],
    })
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonSaid {
    /// One of the options.
    pub choice: String,
    /// What they added.
    pub note: Option<String>,
    /// What they filled in, as it came.
    pub content: Option<Value>,
}

impl PersonSaid {
    const fn picking(choice: String, note: Option<String>) -> Self {
        Self { choice, note, content: None }
    }
}

/// What a person answered. Nothing where the client only looks whether somebody else has answered.
pub fn said(interaction: &Interaction, answer: &Answer) -> Result<Option<PersonSaid>, Box<Refusal>> {
    if answer.cancelled {
        return Ok(Some(PersonSaid::picking(interaction.default.clone(), None)));
    }
    if let (Some(form), Value::Object(fields)) = (form(interaction), &answer.payload) {
        let schema: Value = serde_json::from_str(&form.schema).unwrap_or_default();
        // A no is told as everywhere, unless that is what the form calls a field of its own.
        let denies = fields.get("choice").is_some_and(|picked| picked == choice::DENY);
        if denies && schema["properties"].get("choice").is_none() {
            return Ok(Some(PersonSaid::picking(choice::DENY.to_owned(), None)));
        }
        let (choice, content) = (choice::ANSWER.to_owned(), Some(answer.payload.clone()));
        return Ok(Some(PersonSaid { choice, note: None, content }));
    }
    let field = |name: &str| format!("resume.payload.{name}");
    let Some(payload) = answer.payload.as_object() else {
        return match &answer.payload {
            Value::Null => Ok(None),
            Value::Bool(yes) => Ok(Some(PersonSaid::picking(approved(*yes), None))),
            other => Err(unfit("resume.payload", "an object as `responseSchema` has it", Some(&other.to_string()))),
        };
    };
    let known = ["approved", "choice", "note", "answer"];
    if let Some(odd) = payload.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(unfit(&field(odd), "no such field: what is asked about stays as it is", None));
    }
    let text = |name: &str| match payload.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(unfit(&field(name), "a text", Some(&other.to_string()))),
    };
    let yes = match payload.get("approved") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(yes)) if interaction.kind == InteractionKind::Approve => Some(approved(*yes)),
        Some(other) => {
            return Err(unfit(&field("approved"), "true or false, for an approval", Some(&other.to_string())));
        }
    };
    let picked = text("choice")?.or(text("answer")?).or(yes);
    if let Some(picked) = &picked
        && !interaction.options.is_empty()
        && !interaction.options.contains(picked)
    {
        return Err(unfit(&field("choice"), &format!("one of {}", interaction.options.join(", ")), Some(picked)));
    }
    Ok(picked.map(|picked| PersonSaid::picking(picked, text("note").ok().flatten())))
}

fn approved(yes: bool) -> String {
    if yes { choice::APPROVE } else { choice::DENY }.to_owned()
}

/// An upstream's question to the user, as what a run ends with, under that id.
pub fn of_upstream(question: &Question, id: String, call: &str) -> Interrupt {
    let params: Value = question.params.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let words = params["message"].as_str().map(str::to_owned);
    let schema = Some(params["requestedSchema"].clone()).filter(Value::is_object);
    let mut about = Map::from_iter([("method".to_owned(), json!(question.method))]);
    if let Some(url) = params["url"].as_str() {
        about.insert("url".to_owned(), url.into());
    }
    Interrupt {
        id,
        reason: "input_required",
        message: words,
        tool_call_id: Some(call.to_owned()),
        response_schema: schema,
        expires_at: None,
        metadata: Map::from_iter([("amends".to_owned(), Value::Object(about))]),
    }
}

/// What an upstream is told of an answer to its question. What does not fit `schema`, which came with the question, is none; a schema that
/// cannot be read is the upstream's own to judge by.
pub fn to_upstream(answer: &Answer, schema: Option<&Value>) -> Result<String, Box<Refusal>> {
    if let (false, Some(Ok(schema))) = (answer.cancelled, schema.map(|schema| Schema::from_value(schema.clone()))) {
        let empty = json!({});
        let given = if answer.payload.is_null() { &empty } else { &answer.payload };
        let faults = schema.check(given).into_iter().map(|fault| ArgumentFault {
            field: match fault.field.as_str() {
                "" => "resume.payload".to_owned(),
                field => format!("resume.payload.{field}"),
            },
            // What somebody answered is for the upstream alone.
            got: None,
            ..fault
        });
        let faults: Vec<ArgumentFault> = faults.collect();
        if let Some(first) = faults.first() {
            let mut refusal = unfit(&first.field, &first.expected, None);
            refusal.details = faults;
            return Err(refusal);
        }
    }
    let said = match (answer.cancelled, &answer.payload) {
        (true, _) => json!({ "action": "cancel" }),
        (false, Value::Null) => json!({ "action": "accept" }),
        (false, content) => json!({ "action": "accept", "content": content }),
    };
    Ok(said.to_string())
}
