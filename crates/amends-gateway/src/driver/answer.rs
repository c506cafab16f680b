//! What a door gets to render.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use amends_core::attempt::Recorded;
use amends_core::effect::{Answer, Reply};
use amends_core::envelope::{Body, Data, DegradationReason};
use amends_core::recovery::NextCall;
use amends_core::{AttemptId, Certainty, Code, Envelope, Outcome};
use amends_ledger::{Form as StoredForm, StoredAnswer};
use amends_wire::mcp::classify::structured;
use amends_wire::mcp::shape::shape;
use amends_wire::mcp::steps::{Moved, Names, Written};
use amends_wire::mcp::{Receipt, reply};
use amends_wire::object::Object;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Delivery;
use super::session::Live;

/// An answer on its way to the agent.
#[derive(Debug)]
pub struct Answered {
    /// What it says.
    pub rendered: Rendered,
    /// The proof that it is recorded, where it is.
    pub receipt: Option<Receipt>,
    /// Whether the call is over.
    pub last: bool,
    /// Whom to tell when it has arrived, where that matters.
    pub delivery: Option<Delivery>,
    /// Whether the tool declares what it gives.
    pub declares_output: bool,
}

/// An answer with its payload filled in.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Whether it is the upstream's own result or an envelope.
    pub form: Form,
    /// Whether it is an earlier call's answer.
    pub replayed: bool,
}

impl Rendered {
    /// What the agent of a move is told, which says so where it is an earlier answer.
    pub fn as_told<'a>(&self, told: &'a MoveTold) -> Cow<'a, MoveTold> {
        if self.replayed && !told.envelope.replayed { Cow::Owned(told.again()) } else { Cow::Borrowed(told) }
    }

    /// Fills in what a person says that a call gave, where they settled it.
    pub(super) fn given(&mut self, gave: Option<&Value>) {
        if let Form::Envelope { envelope, .. } = &mut self.form
            && let Body::Degraded { data, reason: DegradationReason::SettledByPerson, .. } = &mut envelope.body
        {
            *data = gave.cloned().map(Data::Value);
        }
    }

    /// Whether it says that nobody knows what became of the call.
    pub(super) fn is_doubtful(&self) -> bool {
        let Form::Envelope { envelope, .. } = &self.form else { return false };
        envelope.error().is_some_and(|error| error.certainty == Certainty::InDoubt)
    }

    /// What it says, as an envelope.
    pub fn envelope_json(&self) -> Value {
        serde_json::from_str(self.envelope_raw().get()).unwrap_or(Value::Null)
    }

    /// The same, as it is written.
    pub fn envelope_raw(&self) -> Box<RawValue> {
        match &self.form {
            Form::Forward { result, envelope } => envelope.to_json(content(result).as_deref()),
            Form::Envelope { envelope, payload } => envelope.to_json(payload.as_deref()),
            Form::Moved(told) => told.written().whole.clone(),
            Form::Stored { json } => json.clone(),
            Form::Asked { .. } => RawValue::NULL.to_owned(),
        }
    }
}

/// What an answer is made of.
#[derive(Clone, Debug)]
pub enum Form {
    /// The upstream's own result, with the envelope that goes beside it.
    Forward {
        /// The result, as it was written.
        result: Bytes,
        /// What goes beside it.
        envelope: Box<Envelope>,
    },
    /// An envelope of our own.
    Envelope {
        /// The envelope.
        envelope: Box<Envelope>,
        /// What it carries.
        payload: Option<Box<RawValue>>,
    },
    /// What came of a move.
    Moved(Box<MoveTold>),
    /// An envelope as it was stored.
    Stored {
        /// The envelope as JSON.
        json: Box<RawValue>,
    },
    /// What the upstream asks: the agent comes back with it.
    Asked {
        /// The result that says so.
        result: Bytes,
    },
}

/// What the agent of a move is told.
#[derive(Clone, Debug)]
pub struct MoveTold {
    /// The envelope.
    pub envelope: Envelope,
    /// Where the walk is now, and what the move gave.
    pub moved: Moved,
    /// What the tools of machines are called.
    pub names: Arc<Names>,
    written: OnceLock<Written>,
}

impl MoveTold {
    /// What it is told, of which nothing is written yet.
    pub fn of(envelope: Envelope, moved: Moved, names: Arc<Names>) -> Self {
        Self { envelope, moved, names, written: OnceLock::new() }
    }

    /// It as JSON, written once: for the ledger, and for the agent.
    pub fn written(&self) -> &Written {
        self.written.get_or_init(|| Written::of(&self.envelope, &self.moved, &self.names))
    }

    /// The same where it is an earlier answer, which it says.
    fn again(&self) -> Self {
        let envelope = Envelope { replayed: true, ..self.envelope.clone() };
        Self::of(envelope, self.moved.clone(), self.names.clone())
    }
}

/// Fills in the payloads of a reply.
pub(super) fn render(reply: &Reply, live: Option<&Live>) -> Rendered {
    // A move goes on with what its calls gave; only what leaves is masked.
    let shown = |live: &Live, attempt| live.shown.get(attempt).filter(|_| live.leg.is_none()).cloned();
    let result_of = |attempt| live.and_then(|live| shown(live, attempt).or_else(|| live.results.get(attempt).cloned()));
    match &reply.answer {
        Answer::Forward { attempt, envelope } => match result_of(attempt) {
            Some(result) => {
                Rendered { form: Form::Forward { result, envelope: Box::new(envelope.clone()) }, replayed: false }
            }
            None => Rendered {
                form: Form::Envelope { envelope: Box::new(envelope.clone()), payload: None },
                replayed: false,
            },
        },
        Answer::Envelope(envelope) => {
            let payload = envelope.payload_of().and_then(result_of).and_then(|result| content(&result));
            let mut envelope = envelope.clone();
            if let Some(live) = live {
                point_to_status(&mut envelope, live);
            }
            Rendered { form: Form::Envelope { envelope: Box::new(envelope), payload }, replayed: false }
        }
        Answer::Asked { attempt } => {
            let result = live.and_then(|live| live.recorded.get(attempt)).map(|stored| stored.body.clone());
            Rendered { form: Form::Asked { result: result.unwrap_or_default() }, replayed: true }
        }
        Answer::Recorded { attempt } => match live.and_then(|live| live.recorded.get(attempt)) {
            Some(stored) => recorded(stored, live),
            None => Rendered { form: Form::Stored { json: RawValue::NULL.to_owned() }, replayed: true },
        },
    }
}

/// What an answer looks like in the ledger, for the call's repeat.
pub(super) fn store(rendered: &Rendered) -> (StoredForm, Bytes) {
    match &rendered.form {
        Form::Forward { result, envelope } => match &envelope.reversal {
            Some(note) => {
                let text = String::from_utf8_lossy(result);
                (StoredForm::Forward, Bytes::from(reply::with_token(&text, note)))
            }
            None => (StoredForm::Forward, result.clone()),
        },
        Form::Envelope { envelope, payload } => {
            (StoredForm::Envelope, Bytes::from(envelope.to_json(payload.as_deref()).get().to_owned()))
        }
        Form::Moved(told) => (StoredForm::Envelope, Bytes::from(told.written().whole.get().to_owned())),
        Form::Stored { json } => (StoredForm::Envelope, Bytes::from(json.get().to_owned())),
        Form::Asked { result } => (StoredForm::Asked, result.clone()),
    }
}

/// The same for a call whose agent looks for it: always an envelope, as that agent is told it.
pub(super) fn store_envelope(rendered: &Rendered) -> (StoredForm, Bytes) {
    match &rendered.form {
        Form::Asked { .. } => store(rendered),
        _ => (StoredForm::Envelope, Bytes::from(rendered.envelope_raw().get().to_owned())),
    }
}

/// How a call ended, by its recorded answer.
pub(super) fn ended(stored: &StoredAnswer) -> Recorded {
    #[derive(Deserialize)]
    struct Told {
        error: Option<Wrong>,
    }
    #[derive(Deserialize)]
    struct Wrong {
        code: Option<Code>,
        kind: Option<Value>,
    }
    let envelope = (stored.form == StoredForm::Envelope).then_some(&stored.body);
    let told = envelope.and_then(|body| serde_json::from_slice::<Told>(body).ok());
    let wrong = told.and_then(|told| told.error);
    let code = wrong.as_ref().and_then(|wrong| wrong.code);
    // What failed has a kind of its own, which is none of ours.
    let refused = wrong.and_then(|wrong| serde_json::from_value(wrong.kind?).ok());
    let refused = refused.filter(|_| stored.outcome == Outcome::Refused);
    Recorded { outcome: stored.outcome, certainty: stored.certainty, code, refused }
}

pub(super) fn recorded(stored: &StoredAnswer, live: Option<&Live>) -> Rendered {
    let form = match stored.form {
        StoredForm::Forward => {
            // The bytes themselves are the data; this only says whose they are.
            let data = Data::Of(AttemptId { call: stored.call.clone(), n: 1 });
            let envelope = match live {
                Some(live) => looked_at(stored, data, live),
                None => Envelope::of(Body::Success { outcome: stored.outcome, data }),
            };
            let envelope = Box::new(Envelope { replayed: true, ..envelope });
            Form::Forward { result: stored.body.clone(), envelope }
        }
        StoredForm::Asked => Form::Asked { result: stored.body.clone() },
        StoredForm::Envelope => {
            let text = String::from_utf8_lossy(&stored.body);
            let mut splice = amends_wire::splice::Splice::new(&text);
            let marked = splice.set_member(&text, "replayed", "true").map(|()| splice.finish());
            let json = marked.ok().and_then(|text| RawValue::from_string(text).ok());
            Form::Stored { json: json.unwrap_or_else(|| RawValue::NULL.to_owned()) }
        }
    };
    Rendered { form, replayed: true }
}

/// The same for an agent that fetches the answer to its own call, which it was not given before.
pub(crate) fn fetched(stored: &StoredAnswer) -> Rendered {
    let form = match stored.form {
        StoredForm::Forward => {
            let data = Data::Of(AttemptId { call: stored.call.clone(), n: 1 });
            let envelope = Box::new(Envelope::of(Body::Success { outcome: stored.outcome, data }));
            Form::Forward { result: stored.body.clone(), envelope }
        }
        StoredForm::Asked => Form::Asked { result: stored.body.clone() },
        StoredForm::Envelope => {
            let json = RawValue::from_string(String::from_utf8_lossy(&stored.body).into_owned()).ok();
            Form::Stored { json: json.unwrap_or_else(|| RawValue::NULL.to_owned()) }
        }
    };
    Rendered { form, replayed: false }
}

/// The envelope of a recorded result, by what it looks like.
fn looked_at(stored: &StoredAnswer, data: Data, live: &Live) -> Envelope {
    let contract = &live.rules.contract;
    let found = || structured(&String::from_utf8_lossy(&stored.body)).unwrap_or(Value::Null);
    let shape = (!contract.answer.is_plain()).then(|| shape(contract, &found(), &live.arguments().unwrap_or_default()));
    let tool = live.tool.as_ref().map_or("", |tool| tool.name.as_str());
    Envelope::shaped(tool, contract, stored.outcome, data, shape.as_ref())
}

/// What a result holds, as an envelope carries it: its structured content, or all of it.
fn content(result: &Bytes) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(result).ok()?;
    let held = Object::parse(text).and_then(|object| object.get("structuredContent"));
    if let Some(held) = held.filter(|held| held.get() != "null") {
        return Some(held.to_owned());
    }
    match structured(text) {
        Some(value) => serde_json::value::to_raw_value(&value).ok(),
        None => RawValue::from_string(text.to_owned()).ok(),
    }
}

/// Where a doubt is left and its status can be read by anybody, says which call reads it.
fn point_to_status(envelope: &mut Envelope, live: &Live) {
    let Body::Error { error, outcome } = &mut envelope.body else {
        return;
    };
    let doubt = error.certainty == Certainty::InDoubt && *outcome != Some(Outcome::Cancelled);
    let Some(status) = live.contract().and_then(|contract| contract.status.as_ref()).filter(|_| doubt) else {
        return;
    };
    if let Some(args) = live.status_arguments() {
        let call = NextCall { tool: status.tool.clone(), args };
        error.recovery.get_or_insert_default().call = Some(call);
    }
}

/// The arguments of a status read, from those of the call, the key of its effect, and what its upstream calls the work.
pub(super) fn status_arguments(
    status: &amends_core::contract::StatusReader,
    arguments: &Value,
    key: &str,
    named: Option<&str>,
) -> Option<Map<String, Value>> {
    let key = Value::String(key.to_owned());
    let work = named.map_or(Value::Null, |name| Value::String(name.to_owned()));
    let mut args = Map::new();
    for (name, expression) in &status.args {
        let value = expression.evaluate(&[("args", arguments), ("key", &key), ("work", &work)]);
        match value {
            // What is not known cannot be asked about.
            Ok(Value::Null) => return None,
            Ok(value) => args.insert(name.clone(), value),
            Err(error) => {
                tracing::warn!(%error, "a status cannot be read");
                return None;
            }
        };
    }
    Some(args)
}

/// The envelope that is kept of a call; nothing where what is kept is a question.
pub(crate) fn kept(stored: &StoredAnswer) -> Option<Box<RawValue>> {
    match stored.form {
        StoredForm::Asked => None,
        StoredForm::Envelope => RawValue::from_string(String::from_utf8_lossy(&stored.body).into_owned()).ok(),
        StoredForm::Forward => {
            let data = Data::Of(AttemptId { call: stored.call.clone(), n: 1 });
            let envelope = Envelope::of(Body::Success { outcome: stored.outcome, data });
            Some(envelope.to_json(content(&stored.body).as_deref()))
        }
    }
}
