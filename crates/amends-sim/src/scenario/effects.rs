//! What the dispatcher asks for, done with what is written.

use std::collections::VecDeque;

use amends_core::envelope::{Body, DegradationReason};
use amends_core::expression::ExpressionError;
use amends_core::id::StateName;
use amends_core::machine::{Action, Does, Known, Lost, Machine, Said, Written};
use amends_core::walk::{Arrival, Frame, LegWish, Part, Weighed, Weighing};
use amends_core::{
    Answer, Call, CallId, Digest, Effect, Gates, Input, Interaction, PersonAnswer, Refusal, RefusalKind, Reply,
    ReversalChange, Step, ToolName,
};
use amends_wire::Schema;
use serde_json::{Map, Value};

use super::answer::payload;
use super::telling::{Called, Happened, Telling};
use super::undo::Token;

impl Telling<'_> {
    /// Takes one input, and does what follows from it.
    pub(super) fn put(&mut self, gates: &Gates, input: Input) {
        let mut left = VecDeque::from([(gates.clone(), input)]);
        // Ends: an input leads to others only while a move goes on, and its parts are bounded.
        while let Some((gates, input)) = left.pop_front() {
            let step = self.dispatcher.handle(self.now, &gates, input);
            self.happened.push(Happened { at: self.now, step: step.clone(), due: self.dispatcher.deadline() });
            let Step { events, effects, reversals, .. } = step;
            for event in &events {
                self.follow(&event.fact);
            }
            self.trace.extend(events);
            for change in reversals {
                self.token(change);
            }
            for effect in effects {
                left.extend(self.perform(effect));
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<(Gates, Input)> {
        match effect {
            Effect::Begin(wish) => return Some(self.leg(*wish)),
            Effect::Weigh { of, what } => {
                let weighed = self.weigh(&of, what);
                return Some((Gates::default(), Input::Weighed { of, weighed }));
            }
            Effect::Send(attempt) => self.send(&attempt),
            Effect::Reply(reply) => self.reply(*reply),
            Effect::Join { of, first } => {
                self.joins.insert(of, first);
            }
            Effect::Ask(question) => self.questions.push_back(*question),
            Effect::Withdraw(id) => self.questions.retain(|question| question.id != id),
            Effect::Unwind { of, since } => {
                let undone = |token: &&Token| token.armed && token.minted >= since;
                self.undoing = self.tokens.iter().filter(undone).cloned().collect();
                self.unwinds = Some((of, self.undoing.len() as u32));
            }
            // What was sent is still listened for; no faked tool asks anything of the agent.
            Effect::Abort(_) | Effect::Inquire(_) | Effect::Tell(_) | Effect::Retract { .. } => {}
        }
        None
    }

    fn reply(&mut self, reply: Reply) {
        let Reply { call, answer, .. } = reply;
        match answer {
            Answer::Forward { attempt, envelope } => {
                let body = self.bodies.get(&attempt).cloned().unwrap_or_default();
                self.results.insert(call.clone(), body);
                self.replies.insert(call, envelope);
            }
            Answer::Envelope(envelope) => {
                let settled =
                    matches!(envelope.body, Body::Degraded { reason: DegradationReason::SettledByPerson, .. });
                let body = match settled {
                    true => self.content.clone(),
                    false => envelope.payload_of().and_then(|attempt| self.bodies.get(attempt)).cloned(),
                };
                if let Some(body) = body {
                    self.results.insert(call.clone(), body);
                }
                self.replies.insert(call, envelope);
            }
            // No call of a scenario repeats another one.
            Answer::Recorded { .. } | Answer::Asked { .. } => {}
        }
    }

    /// The call that a move wants made. What cannot be evaluated is refused.
    fn leg(&mut self, wish: LegWish) -> (Gates, Input) {
        let known = self.known();
        let id = self.mint("call");
        let (tool, args) = match self.action(&wish).map(|action| arguments(action, &wish, &known, self.course.fields()))
        {
            Some((tool, Ok(args))) => (tool, Ok(args)),
            Some((tool, Err(error))) => (tool, Err(error.to_string())),
            None => (ToolName::new(""), Err("there is no such action".to_owned())),
        };
        let mut gates = Gates::default();
        let args = args.unwrap_or_else(|why| {
            gates.refusal = Some(Box::new(Refusal::of(RefusalKind::InvalidArgument, why)));
            Map::new()
        });
        let args = Value::Object(args);
        if gates.refusal.is_none() {
            gates.refusal = self.not_taken(&tool, &args).map(Box::new);
        }
        let deadline = wish.deadline;
        let intention = format!("{tool} {}", wish.key);
        let sibling = wish.leg.is_sibling();
        let mut call = Call { leg: Some(wish.leg), ..self.call(id, tool, args, deadline) };
        if let Some(called) = self.calls.get_mut(&call.id) {
            called.sibling = sibling;
        }
        if !call.rules.contract.effect.is_read() {
            // What was done before is not done again, and so there is nothing more to undo.
            call.reversal = call.reversal.filter(|_| !self.kept.contains_key(&intention));
            if let Some(called) = self.calls.get_mut(&call.id) {
                called.intention = Some(intention);
            }
        }
        gates.approval.clone_from(&call.rules.contract.approval);
        (gates, Input::Call(Box::new(call)))
    }

    pub(super) fn call(&mut self, id: CallId, tool: ToolName, args: Value, deadline: amends_core::Timestamp) -> Call {
        let rules = (self.cast.rules)(&tool);
        let reversal = rules.contract.reverse.as_ref().map(|_| Digest::new(format!("token of {id}")));
        self.calls
            .insert(id.clone(), Called { args: args.clone(), rules: rules.clone(), sibling: false, intention: None });
        Call {
            rules_hash: Digest::new(tool.as_str()),
            tool,
            upstream: "faked".into(),
            rules,
            arguments: payload(&args),
            principal: "agent".into(),
            deadline,
            key: None,
            claims: Vec::new(),
            effect_key: format!("key of {id}"),
            repeat_of: None,
            evidence: Vec::new(),
            reversal,
            redeems: None,
            view: None,
            leg: None,
            id,
        }
    }

    fn action(&self, wish: &LegWish) -> Option<&Action> {
        Some(self.machines.get(&wish.machine)?.action(wish.action.as_str())?.1)
    }

    /// What the open move's expressions say.
    fn weigh(&mut self, of: &CallId, what: Weighing) -> Weighed {
        let mut known = self.known();
        if what == Weighing::Skip {
            known.result = Value::Null;
        }
        let weighed = self.weighed(what, &known);
        self.results.insert(of.clone(), known.result);
        weighed.unwrap_or_else(|lost| Weighed::Unclear { why: lost.to_string() })
    }

    fn weighed(&mut self, what: Weighing, known: &Known) -> Result<Weighed, Lost> {
        let walk = self.dispatcher.walk().ok_or(Lost::Nowhere)?;
        let open = walk.open.as_ref().ok_or(Lost::Nowhere)?;
        let name = open.action;
        let machine = self.machines.get(open.machine).ok_or(Lost::Nowhere)?;
        let (_, action) = machine.action(name.as_str()).ok_or(Lost::Nowhere)?;
        let scope = known.over(self.course.fields());
        let (to, written) = match what {
            Weighing::Gate => {
                return Ok(match action.gated(scope)? {
                    Said::GoOn => Weighed::Proceed,
                    Said::Retry => Weighed::Retry,
                    Said::Skip => Weighed::Skip,
                    Said::Fail => Weighed::Fail,
                });
            }
            Weighing::Enter => (Vec::new(), self.course.enters(machine, name, known)?),
            Weighing::Skip => self.course.leads(&self.machines, walk.frames, name, known)?,
            Weighing::Act => match action.asserted(scope)? {
                Said::GoOn => self.course.leads(&self.machines, walk.frames, name, known)?,
                Said::Retry => return Ok(Weighed::Retry),
                Said::Skip => return Ok(Weighed::Skip),
                Said::Fail => return Ok(Weighed::Fail),
            },
        };
        let entered = match (what, &action.does) {
            (Weighing::Enter, Does::Machine(run)) => self.machines.get(run),
            _ => None,
        };
        let misfit = match what {
            Weighing::Enter => entered.and_then(|entered| self.misfit_within(entered, &written)),
            Weighing::Gate | Weighing::Act | Weighing::Skip => self.misfit(&to, &written, walk.frames),
        };
        if let Some(why) = misfit {
            return Ok(Weighed::Unclear { why });
        }
        let fields = payload(&Value::Object(written.fields.clone()));
        self.leaves = Some::<Written>(written);
        Ok(Weighed::Arrives { arrival: Arrival { to, fields } })
    }

    /// Why the fields that a machine would begin with are not what was declared of them, if they are not.
    fn misfit_within(&self, entered: &Machine, written: &Written) -> Option<String> {
        let mut course = self.course.clone();
        course.enter(entered, written.clone());
        let schema = Schema::from_value(entered.schema()?.clone()).ok()?;
        let fault = schema.check(course.fields()).into_iter().next()?;
        Some(format!("`state.{}` of `{}` would not be {}", fault.field, entered.name(), fault.expected))
    }

    /// Why the fields would no longer be what was declared of them, if they would not.
    fn misfit(&self, to: &[StateName], written: &Written, frames: &[Frame]) -> Option<String> {
        let frame = frames.get(frames.len().checked_sub(to.len())?)?;
        let schema = self.machines.get(&frame.machine)?.schema()?;
        let mut course = self.course.clone();
        course.arrive(to.len(), written.clone());
        let schema = Schema::from_value(schema.clone()).ok()?;
        let fault = schema.check(course.fields()).into_iter().next()?;
        Some(format!("`state.{}` would not be {}", fault.field, fault.expected))
    }

    /// A person answers.
    pub(super) fn say(&mut self, question: &Interaction, choice: String) -> bool {
        self.spoke = true;
        let content = self.content.clone();
        let answer = PersonAnswer { choice, by: "ada".into(), note: None, at: self.now, content };
        let input = Input::Answer { interaction: question.id.clone(), answer: Box::new(answer) };
        self.put(&Gates::default(), input);
        true
    }

    fn token(&mut self, change: ReversalChange) {
        match change {
            ReversalChange::Mint { token, call } => {
                self.tokens.push(Token { token, call, armed: false, minted: self.now, by: None });
            }
            ReversalChange::Arm { token, .. } => self.set_armed(&token, true),
            ReversalChange::Rearm { token, .. } => self.set_armed(&token, true),
            ReversalChange::Void { token } | ReversalChange::Spend { token, .. } => {
                self.tokens.retain(|known| known.token != token);
            }
            ReversalChange::Redeem { token, by, .. } => {
                self.set_armed(&token, false);
                if let Some(known) = self.tokens.iter_mut().find(|known| known.token == token) {
                    known.by = Some(by);
                }
            }
        }
    }

    fn set_armed(&mut self, token: &Digest, armed: bool) {
        if let Some(known) = self.tokens.iter_mut().find(|known| known.token == *token) {
            (known.armed, known.by) = (armed, None);
        }
    }
}

/// The tool of a leg and what it is given.
fn arguments(
    action: &Action,
    wish: &LegWish,
    known: &Known,
    fields: &Value,
) -> (ToolName, Result<Map<String, Value>, ExpressionError>) {
    let name = wish.leg.name.as_str();
    let legs = |legs: &[(String, amends_core::machine::ToolUse)]| {
        legs.iter().find(|(known, _)| known == name).map(|(_, used)| used.clone())
    };
    let used = match (wish.leg.part, &action.does) {
        (Part::Setup, _) => legs(&action.stage.setup),
        (Part::Exit, _) => legs(&action.stage.exit),
        (Part::Act, Does::Parallel(siblings)) => siblings.get(name).cloned(),
        (Part::Act, Does::Tool(used)) => Some(used.clone()),
        (Part::Act, Does::Function(function)) => {
            return (ToolName::new(function.as_str()), action.given(known.over(fields)));
        }
        (Part::Act, Does::Nothing | Does::Machine(_) | Does::Allowed(_)) => None,
    };
    match used {
        Some(used) => (used.tool.clone(), used.arguments(known.over(fields))),
        None => (ToolName::new(name), Ok(Map::new())),
    }
}
