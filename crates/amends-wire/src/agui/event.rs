//! The events of a run, as they are written.

use serde::Serialize;
use serde_json::{Map, Value};

/// The version of the protocol that we speak.
pub const PROTOCOL_VERSION: &str = "1.0";
/// What is written now and then while nothing happens.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// What a stream tells of a run. What is absent is left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// The conversation it belongs to.
        thread_id: String,
        /// The run.
        run_id: String,
        /// What we speak.
        protocol_version: &'static str,
    },
    /// A step of it begins: a call, or a move in a machine.
    StepStarted {
        /// Its name.
        step_name: String,
    },
    /// The step is over.
    StepFinished {
        /// Its name.
        step_name: String,
    },
    /// A tool is called.
    ToolCallStart {
        /// The call.
        tool_call_id: String,
        /// The tool, or the action of a machine.
        tool_call_name: String,
    },
    /// What it is given.
    ToolCallArgs {
        /// The call.
        tool_call_id: String,
        /// The arguments, as they were written.
        delta: String,
    },
    /// There is nothing more to say of what it is given.
    ToolCallEnd {
        /// The call.
        tool_call_id: String,
    },
    /// How it went.
    ToolCallResult {
        /// The message that this becomes.
        message_id: String,
        /// The call.
        tool_call_id: String,
        /// What a model reads of it.
        content: Content,
        /// Whose message it becomes.
        role: &'static str,
        /// The envelope and the receipt, under the names they have in MCP.
        #[serde(skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    /// What the client carries from here on.
    StateSnapshot {
        /// All of it.
        snapshot: Value,
    },
    /// What changed of what the client carries.
    StateDelta {
        /// The changes, as RFC 6902 has them.
        delta: Vec<Change>,
    },
    /// The run is over, and did not fail.
    RunFinished {
        /// The conversation.
        thread_id: String,
        /// The run.
        run_id: String,
        /// Why it is over.
        outcome: Outcome,
        /// What became of each step.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    /// The run failed.
    RunError {
        /// What went wrong, for a person.
        message: String,
        /// The registry's code.
        code: &'static str,
    },
}

impl Event {
    /// The event as it goes over a stream. JSON of our own writing has no line break in it.
    pub fn framed(&self) -> String {
        let json = serde_json::to_string(self).expect("events are made of texts and JSON values, which can be written");
        format!("data: {json}\n\n")
    }
}

/// What a model reads of a tool's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Words.
    Text(String),
    /// Words and media, in their order.
    Parts(Vec<Part>),
}

/// A part of what a tool gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// Where it is.
        source: Source,
    },
    /// Sound.
    Audio {
        /// Where it is.
        source: Source,
    },
}

/// The bytes of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// That they are here.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The bytes, in base64.
    pub value: String,
    /// What they are.
    pub mime_type: String,
}

/// One change of a JSON Patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Change {
    /// A member is set, whether or not it was there.
    Add {
        /// Where, as a JSON Pointer.
        path: String,
        /// To what.
        value: Value,
    },
    /// A member is taken out.
    Remove {
        /// Where.
        path: String,
    },
}

/// Why a run that did not fail is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outcome {
    /// What could be done was done.
    Success,
    /// Somebody must answer first.
    Interrupt {
        /// What is asked.
        interrupts: Vec<Interrupt>,
    },
    /// Somebody stopped it.
    Cancelled,
}

/// Something that must be answered before a thread goes on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// What its answer names.
    pub id: String,
    /// Why it is asked.
    pub reason: &'static str,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The call it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What an answer looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Until when it can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}
