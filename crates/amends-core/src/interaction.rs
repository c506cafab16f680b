//! One question to a person.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest, InteractionId, Principal, SessionId, ToolName};
use crate::time::Timestamp;

/// What kind of question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InteractionKind {
    /// May this go on?
    Approve,
    /// A question with a free answer.
    Ask,
    /// Which of these is it?
    Select,
    /// Take notice of this.
    Confirm,
    /// Sign in at an address.
    AuthUrl,
    /// Sign in with a code.
    AuthDeviceCode,
}

/// What the answer decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Whether a call that is in doubt happened.
    Doubt,
    /// Whether a call that failed is sent again.
    Resend,
    /// Nothing about the call: a person should know of it.
    Notice,
    /// Whether a move of a machine is made.
    Move,
    /// Whether a call is sent at all.
    Call,
}

/// One question to a person: durable, with a deadline and a named default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interaction {
    /// Its id.
    pub id: InteractionId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The call it is about.
    pub call: CallId,
    /// The tool that was called.
    pub tool: ToolName,
    /// Who called.
    pub principal: Principal,
    /// The queue it is on.
    pub queue: String,
    /// What kind of question it is.
    pub kind: InteractionKind,
    /// What the answer decides.
    pub subject: Subject,
    /// The question, in a sentence.
    pub question: String,
    /// What the call was asked to do: its arguments, as far as they may be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// The answers that can be given.
    pub options: Vec<String>,
    /// What counts when nobody answers in time.
    pub default: String,
    /// When it was asked.
    pub opened: Timestamp,
    /// When the default counts.
    pub due: Timestamp,
    /// Until when what the call sent may still arrive. That it did not happen counts from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrives_by: Option<Timestamp>,
    /// What a yes is bound to, and whose counts, for the question whether a call is sent at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounds: Option<Box<Grounds>>,
    /// The JSON Schema of what the tool gives, where it declares one: whoever says that it happened may say what it gave.
    /// Only the question has it, and no trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gives: Option<String>,
}

/// What a yes to a call is bound to, and whose counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    /// The digest of the call's arguments: no others are sent.
    pub arguments: Digest,
    /// What was read for it, by tool, with the hash of what it said: where that changes, nothing is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Read>,
    /// How many persons must say yes.
    pub persons: u8,
    /// How many have.
    pub said_yes: u8,
    /// The names whose yes does not count here: whoever called, unless they may, and whoever said yes before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barred: Vec<String>,
    /// The policy that asks; empty where the contract does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// What is asked for, where that is more than a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<Form>>,
}

/// What a person is asked for, where that is more than a yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The question, in a sentence.
    pub message: String,
    /// The JSON Schema of the answer, an object, as it was written.
    pub schema: String,
    /// The answers to choose from, where it is a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// A fact that was read for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The tool that read it.
    pub tool: ToolName,
    /// The hash of what it said.
    pub hash: Digest,
    /// What it said, as far as it may be shown. Only the question has it, and no trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
}

impl Interaction {
    /// Whether that name may give that answer. A no counts from anybody.
    pub fn admits(&self, by: &str, picked: &str) -> bool {
        let barred = self.grounds.as_ref().is_some_and(|grounds| grounds.barred.iter().any(|name| name == by));
        !(barred && self.is_yes(picked))
    }

    /// What is asked for, where that is more than a yes.
    pub fn form(&self) -> Option<&Form> {
        self.grounds.as_ref()?.form.as_deref()
    }

    /// Whether that lets the call go on. What is asked for in a form is given by every answer but a no.
    pub fn is_yes(&self, picked: &str) -> bool {
        match self.form() {
            Some(_) => picked != choice::DENY,
            None => choice::is_yes(picked),
        }
    }
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonAnswer {
    /// One of the options.
    pub choice: String,
    /// Who answered.
    pub by: String,
    /// What they added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When.
    pub at: Timestamp,
    /// What was asked for, or what a call gave that happened. It rests with the question, and no trace has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<serde_json::Value>,
}

impl InteractionKind {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Ask => "ask",
            Self::Select => "select",
            Self::Confirm => "confirm",
            Self::AuthUrl => "auth_url",
            Self::AuthDeviceCode => "auth_device_code",
        }
    }
}

/// The answers to whether a call in doubt happened, and to whether one is sent again.
pub mod choice {
    /// It happened.
    pub const HAPPENED: &str = "happened";
    /// It did not happen.
    pub const DID_NOT_HAPPEN: &str = "did_not_happen";
    /// Nobody knows; what is in doubt stays in doubt.
    pub const UNKNOWN: &str = "unknown";
    /// Go on.
    pub const APPROVE: &str = "approve";
    /// Go on, and do not ask again for this tool in this session.
    pub const APPROVE_SESSION: &str = "approve_session";
    /// Go on, and do not ask again for these arguments.
    pub const APPROVE_ARGUMENTS: &str = "approve_arguments";
    /// Do not go on.
    pub const DENY: &str = "deny";
    /// What was asked for is given.
    pub const ANSWER: &str = "answer";
    /// Taken notice of.
    pub const SEEN: &str = "seen";

    /// Whether that is one of the ways to say yes.
    pub fn is_yes(choice: &str) -> bool {
        matches!(choice, APPROVE | APPROVE_SESSION | APPROVE_ARGUMENTS)
    }
}
