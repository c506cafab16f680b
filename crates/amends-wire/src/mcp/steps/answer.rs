//! What the answer of a move says, as JSON.

use amends_core::envelope::Data;
use amends_core::id::{MachineName, StateName};
use amends_core::{Envelope, RefusalKind, Status};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::guide::{guided, hint};
use super::names::Names;
use super::view::{Moved, Next, Schemas, View, Waits};
use crate::splice::Splice;

/// What the answer of a move says, as JSON. It is kept in the ledger and sent to the agent, and written once for both.
#[derive(Clone, Debug)]
pub struct Written {
    /// The envelope alone.
    pub(in crate::mcp) bare: Box<RawValue>,
    /// The same with where the walk is. What was done is its data; a refusal and an error carry that beside the error.
    pub whole: Box<RawValue>,
    /// What to do now, in a sentence.
    pub(in crate::mcp) hint: String,
}

impl Written {
    /// Writes it.
    pub fn of(envelope: &Envelope, moved: &Moved, names: &Names) -> Self {
        let bare = guided(envelope, moved, names).to_json(None);
        let hint = hint(&moved.view, names);
        let whole = fill(&bare, envelope, moved, names, &hint);
        Self { bare, whole, hint }
    }
}

/// The envelope of a move as JSON, with where the walk is.
pub fn filled(envelope: &Envelope, moved: &Moved, names: &Names) -> Box<RawValue> {
    Written::of(envelope, moved, names).whole
}

fn fill(bare: &RawValue, envelope: &Envelope, moved: &Moved, names: &Names, hint: &str) -> Box<RawValue> {
    let mut splice = Splice::new(bare.get());
    let mut set = |name: &str, value: String| {
        // An envelope is an object, so that there is a place for every member.
        let _ = splice.set_member(bare.get(), name, value);
    };
    // What was looked at is the data as it is, a text perhaps.
    if matches!(envelope.status(), Status::Error | Status::Refused) || looked(envelope) {
        if !moved.view.is_nowhere() {
            set("state", written(&state(&moved.view)));
        }
        if !moved.view.session.as_str().is_empty() {
            set("session", written(&moved.view.session));
        }
        set("seq", moved.view.seq.to_string());
        set("next_action_schemas", written(&moved.view.schemas(names)));
        set("next_hint", written(&hint));
        let is = |kind: RefusalKind| envelope.error().is_some_and(|error| error.kind == kind.as_str());
        let known = known(&moved.view, names);
        if (is(RefusalKind::UnknownAction) || is(RefusalKind::UnknownName)) && !known.is_empty() {
            set("known_actions", written(&known));
        }
        let timeout = envelope.error().and_then(|error| error.timeout_ms);
        if let Some(ms) = timeout.filter(|_| is(RefusalKind::ActionTimeout)) {
            set("timeout_ms", ms.to_string());
        }
        if let Some(waits) = &moved.view.waits(names) {
            set("waits", waiting(waits, &moved.view, names).to_string());
        }
    } else {
        let body = Done {
            action: &moved.action,
            result: moved.result.as_deref(),
            skipped: skipped(envelope),
            state: state(&moved.view),
            session: moved.view.session.as_str(),
            seq: moved.view.seq,
            valid_next_actions: moved.view.offered(names),
            next_action_schemas: moved.view.schemas(names),
            next_hint: hint,
            waits: moved.view.waits(names).as_ref().map(|waits| waiting(waits, &moved.view, names)),
        };
        set("data", written(&body));
    }
    RawValue::from_string(splice.finish()).unwrap_or_else(|_| bare.to_owned())
}

/// What a move that was made says.
#[derive(Serialize)]
struct Done<'a> {
    action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a Value>,
    state: At<'a>,
    session: &'a str,
    seq: u64,
    valid_next_actions: Vec<String>,
    next_action_schemas: Schemas<'a>,
    next_hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Value>,
}

/// Whether nothing was done but to look.
pub(super) fn looked(envelope: &Envelope) -> bool {
    matches!(envelope.data(), Some(Data::Shown { .. }))
}

/// Why a move that was made was passed over, and what of it was done; nothing where it was not.
pub(super) fn skipped(envelope: &Envelope) -> Option<&Value> {
    match envelope.data()? {
        Data::Value(value) => value.get("skipped"),
        Data::Of(_) | Data::Shown { .. } => None,
    }
}

/// What may be done now, as it is read. A walk that has not begun has no handle yet.
pub fn next_body(view: &View, names: &Names) -> Value {
    let mut body = json!({
        "machine": view.machine, "state": view.state, "seq": view.seq, "over": view.over,
        "valid_next_actions": view.offered(names), "next_action_schemas": view.schemas(names),
        "next_hint": hint(view, names),
    });
    let called = |next: &Next| names.called(&view.machine, &next.action).to_owned();
    let about: Map<String, Value> =
        view.next.iter().filter_map(|next| Some((called(next), Value::String(next.description.clone()?)))).collect();
    if !about.is_empty() {
        body["descriptions"] = Value::Object(about);
    }
    name_walk(&mut body, view, names);
    body
}

/// Every action there is where the walk is, by the names under which they are taken.
fn known<'a>(view: &'a View, names: &'a Names) -> Vec<&'a str> {
    if view.is_nowhere() {
        return view.next.iter().map(|next| next.action.as_str()).collect();
    }
    names.known(&view.machine).into_iter().map(|action| names.called(&view.machine, action)).collect()
}

/// Where a walk is, as it is read.
pub fn state_body(view: &View, names: &Names) -> Value {
    let mut body = json!({ "state": state(view), "seq": view.seq, "over": view.over });
    if view.frames.len() > 1 {
        body["frames"] = view
            .frames
            .iter()
            .map(|frame| json!({ "machine": frame.machine, "state": frame.state, "moves": frame.moves }))
            .collect();
    }
    name_walk(&mut body, view, names);
    body
}

fn name_walk(body: &mut Value, view: &View, names: &Names) {
    if !view.session.as_str().is_empty() {
        body["session"] = json!(view.session);
    }
    if let Some(waits) = &view.waits(names) {
        body["waits"] = waiting(waits, view, names);
    }
}

/// Where a walk is.
#[derive(Serialize)]
struct At<'a> {
    machine: &'a MachineName,
    name: &'a StateName,
    fields: &'a Map<String, Value>,
}

const fn state(view: &View) -> At<'_> {
    At { machine: &view.machine, name: &view.state, fields: &view.fields }
}

/// A part of an answer as JSON. Nothing in one can fail to be written.
pub(super) fn written(part: &impl Serialize) -> String {
    serde_json::to_string(part).unwrap_or_else(|_| "null".to_owned())
}

/// Why nothing, or only one thing, may be done, with what was done of that already.
fn waiting(waits: &Waits, view: &View, names: &Names) -> Value {
    let mut told = words_of(waits);
    let half = view.halves.iter().find(|half| told["action"] == names.called(&half.machine, half.action.as_str()));
    if let Some(half) = half.filter(|half| half.machine == view.machine) {
        told["was_done"] = json!(half.done);
    }
    told
}

fn words_of(waits: &Waits) -> Value {
    match waits {
        Waits::Open { action, asked: false } => json!({ "for": "open", "action": action }),
        Waits::Open { action, asked: true } => json!({ "for": "open", "action": action, "asked": true }),
        Waits::Unsettled { action, done, asked: false } => {
            json!({ "for": "unsettled", "action": action, "done": done })
        }
        Waits::Unsettled { action, done, asked: true } => {
            json!({ "for": "unsettled", "action": action, "done": done, "asked": true })
        }
        Waits::Unknown { action } => json!({ "for": "unknown", "action": action }),
        Waits::Unclear { action } => json!({ "for": "unclear", "action": action }),
        Waits::Later { action, not_before_ms } => {
            json!({ "for": "later", "action": action, "not_before": not_before_ms })
        }
        Waits::GivenUp(given_up) => {
            let (is, count) = match given_up.undone {
                Some(undone) => ("undone", undone),
                None => ("undoing", given_up.undoing),
            };
            let mut told =
                json!({ "for": "given_up", is: count, "not_undone": given_up.stays(), "left": given_up.left });
            if !given_up.doubtful.is_empty() {
                told["in_doubt"] = json!(given_up.doubtful);
            }
            told
        }
        Waits::Undone { undone } => json!({ "for": "undone", "undone": undone }),
        Waits::Drifted { why, .. } => json!({ "for": "drift", "why": why }),
    }
}
