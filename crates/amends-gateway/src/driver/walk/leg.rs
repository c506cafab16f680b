//! The calls of a move.

use amends_core::dispatcher::walk::Leg;
use amends_core::envelope::Data;
use amends_core::machine::{Does, ToolUse};
use amends_core::walk::{LegOf, LegWish, Part};
use amends_core::{CallId, Input, Refusal, RefusalKind};
use amends_ledger::StoredAnswer;
use amends_wire::mcp::ToolCall;
use amends_wire::mcp::classify::structured;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::super::admission::{self, Admitted, Wish};
use super::super::answer::{Answered, Form, Rendered, recorded};
use super::super::listener::Listener;
use super::super::permission::Caller;
use super::super::session::{Live, Session};
use crate::policy::{Origin, Step};

/// A tool and what it is given.
type Told = (String, Map<String, Value>);
/// A tool, and why it cannot be told what it is given.
type Untold = (String, Box<Refusal>);

impl Session {
    /// Makes a call for a move. What cannot be made is refused as any call is.
    pub(super) fn begin_leg(&mut self, wish: LegWish) {
        let LegWish { leg, key, deadline, .. } = &wish;
        let mut admitted = match self.arguments_of(&wish) {
            Ok((tool, arguments)) => {
                let key = format!("{}/{key}", self.id);
                let params =
                    json!({ "name": tool, "arguments": arguments, "_meta": { "amends/key": key } }).to_string();
                self.admitted(&wish, &tool, &params)
            }
            Err((tool, refusal)) => admission::refused(&self.principal, &tool, *refusal),
        };
        admitted.call.deadline = (admitted.call.deadline + self.ahead_ms).min(*deadline);
        admitted.call.leg = Some(leg.clone());
        let listener = self.listener_of(leg);
        let Admitted { call, gates, evidence, tool, params, room, place, reserved } = admitted;
        let live = Live { reserved, ..Live::of(&call, evidence, tool, params, listener, (room, place)) };
        self.rules.entry(call.rules_hash.clone()).or_insert_with(|| call.rules.clone());
        let id = call.id.clone();
        self.live.insert(id.clone(), live);
        self.take(Input::Call(call), gates);
        // Its move may not want it any more.
        if !self.dispatcher.is_open(&id) {
            self.live.remove(&id);
        }
    }

    fn admitted(&self, wish: &LegWish, tool: &str, params: &str) -> Admitted {
        let walk = self.dispatcher.walk();
        let frame = walk.and_then(|walk| walk.frames.iter().rfind(|frame| frame.machine == wish.machine));
        let state = frame.map_or("", |frame| frame.state.as_str());
        let step = Step { machine: wish.machine.as_str(), action: wish.action.as_str(), state };
        let origin = Origin { session: self.id.as_str(), door: &self.door, step: Some(step) };
        let caller = Caller { principal: &self.principal, origin, counts: false, judged: true, keeps: false };
        if let Some(question) = self.gateway.config().asks(tool).first() {
            let words = format!("`{tool}` asks people first; in a machine, an action of its own calls `{question}`");
            return admission::refused(&self.principal, tool, Refusal::of(RefusalKind::InvalidArgument, words));
        }
        let parsed = serde_json::from_str::<&RawValue>(params).ok();
        match parsed.and_then(|raw| ToolCall::parse(Some(raw)).ok()) {
            Some(call) => admission::admit(&self.gateway, &caller, Wish::Call { params, call: &call }),
            None => {
                let refusal = Refusal::of(RefusalKind::InvalidArgument, format!("`{tool}` cannot be called like that"));
                admission::refused(&self.principal, tool, refusal)
            }
        }
    }

    /// The tool of a call, and what it is given.
    fn arguments_of(&self, wish: &LegWish) -> Result<Told, Untold> {
        let lost = |tool: &str, why: String| {
            let message = format!("what `{tool}` is to be given cannot be told: {why}");
            (tool.to_owned(), Box::new(Refusal::of(RefusalKind::InvalidArgument, message)))
        };
        let gone = || lost(wish.action.as_str(), "the machine has no such action".to_owned());
        let look = self.dispatcher.walk().ok_or_else(gone)?;
        let walking = self.walking.as_ref().ok_or_else(gone)?;
        let machine = look.machines.get(&wish.machine).ok_or_else(gone)?;
        let (_, action) = machine.action(wish.action.as_str()).ok_or_else(gone)?;
        let live = walking.moves.get(&wish.leg.of).ok_or_else(gone)?;
        let known = live.known(matches!(action.does, Does::Parallel(_)));
        let scope = known.over(walking.course.fields());
        let named =
            |uses: &[(String, ToolUse)]| uses.iter().find(|(name, _)| *name == wish.leg.name).map(|(_, it)| it.clone());
        let tool = match (wish.leg.part, &action.does) {
            (Part::Setup, _) => named(&action.stage.setup),
            (Part::Exit, _) => named(&action.stage.exit),
            (Part::Act, Does::Tool(tool)) => Some(tool.clone()),
            (Part::Act, Does::Parallel(siblings)) => siblings.get(&wish.leg.name).cloned(),
            (Part::Act, Does::Function(function)) => {
                let given = action.given(scope).map_err(|error| lost(function, error.to_string()))?;
                return Ok((function.clone(), given));
            }
            (Part::Act, Does::Nothing | Does::Machine(_) | Does::Allowed(_)) => None,
        };
        let tool = tool.ok_or_else(gone)?;
        let arguments = tool.arguments(scope).map_err(|error| lost(tool.tool.as_str(), error.to_string()))?;
        Ok((tool.tool.to_string(), arguments))
    }

    /// What an upstream says while it acts goes to the agent of the move.
    fn listener_of(&self, leg: &LegOf) -> Listener {
        let live = self.walking.as_ref().and_then(|walking| walking.moves.get(&leg.of));
        let listener = live.and_then(|live| live.listener.as_ref()).filter(|_| leg.part == Part::Act);
        listener.map_or_else(Listener::of_the_answer, |listener| Listener {
            task: None,
            takes_tasks: false,
            ..listener.clone()
        })
    }

    /// Whoever waits for the move that a call is made for, now that it is to be asked something.
    pub(in crate::driver) fn waits_for_move(&mut self, leg: &LegOf) -> Vec<oneshot::Sender<Answered>> {
        let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.get_mut(&leg.of)) else {
            return Vec::new();
        };
        live.answer.take().into_iter().chain(std::mem::take(&mut live.also)).collect()
    }

    /// What the agent of the move called that a call is made for.
    pub(in crate::driver) fn subject_of_move(&self, leg: &LegOf) -> Option<(String, String)> {
        self.walking.as_ref()?.moves.get(&leg.of)?.subject.clone()
    }

    /// The agent of a move came back to a call of it, and waits for the move's answer.
    pub(in crate::driver) fn came_back(
        &mut self,
        leg: &LegOf,
        subject: Option<(String, String)>,
        listener: &Listener,
        answer: oneshot::Sender<Answered>,
    ) {
        let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.get_mut(&leg.of)) else { return };
        live.listener = Some(listener.clone());
        live.subject = subject.or(live.subject.take());
        if let Some(before) = live.answer.replace(answer) {
            live.also.push(before);
        }
        live.also.retain(|door| !door.is_closed());
    }

    /// Keeps what a call of a move gave. The move may be over, and not settled before: the same wish goes on with it.
    pub(in crate::driver) fn keep_result(&mut self, call: &CallId, rendered: &Rendered) {
        let Some(look) = self.dispatcher.walk() else { return };
        let of = |leg: &Leg<'_>| (leg.part, leg.name.to_owned());
        let open = look.open.as_ref().and_then(|open| {
            let leg = open.legs.iter().find(|leg| leg.call == call)?;
            Some((open.id.clone(), of(leg)))
        });
        let past = look.unsettled.iter().find(|leg| leg.call == call).map(of);
        // In the step that ends a move, it is open no more.
        let own = self.live.get(call).and_then(|live| live.leg.as_ref());
        let open = open.or_else(|| own.map(|leg| (leg.of.clone(), (leg.part, leg.name.clone()))));
        let (Some(walking), Some((value, raw))) = (self.walking.as_mut(), given(rendered)) else { return };
        if let Some(leg) = past {
            walking.past.insert(leg, value.clone());
        }
        if let Some((id, leg)) = open
            && let Some(live) = walking.moves.get_mut(&id)
        {
            if leg.0 == Part::Act {
                live.gave = raw;
            }
            live.results.insert(leg, value);
        }
    }
}

/// That something was done and gave nothing.
const NOTHING: (Value, Option<Box<RawValue>>) = (Value::Null, None);

/// What a call gave, by the answer that is kept of it; nothing where it was not done.
pub fn gave(stored: &StoredAnswer) -> Option<Value> {
    given(&recorded(stored, None)).map(|(value, _)| value)
}

/// What an answer gave, and how it was written; nothing for what was not done.
fn given(rendered: &Rendered) -> Option<(Value, Option<Box<RawValue>>)> {
    let read = |text: &str| {
        let value = structured(text).or_else(|| serde_json::from_str(text).ok())?;
        let raw = serde_json::value::to_raw_value(&value).ok();
        Some((value, raw))
    };
    match &rendered.form {
        Form::Forward { result, .. } => read(&String::from_utf8_lossy(result)),
        Form::Envelope { payload: Some(raw), .. } => Some((serde_json::from_str(raw.get()).ok()?, Some(raw.clone()))),
        // What a person said that it gave.
        Form::Envelope { envelope, payload: None } => match envelope.data() {
            Some(Data::Value(value) | Data::Shown { value, .. }) => {
                Some((value.clone(), serde_json::value::to_raw_value(value).ok()))
            }
            Some(Data::Of(_)) => None,
            None => envelope.error().is_none().then_some(NOTHING),
        },
        Form::Stored { json } => {
            let envelope: Value = serde_json::from_str(json.get()).ok()?;
            let Some(data) = envelope.get("data").cloned() else {
                return envelope.get("error").is_none().then_some(NOTHING);
            };
            let raw = serde_json::value::to_raw_value(&data).ok();
            Some((data, raw))
        }
        Form::Moved(_) | Form::Asked { .. } => None,
    }
}
