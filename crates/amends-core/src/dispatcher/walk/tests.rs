use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::attempt::{Payload, Report, Undo};
use crate::call::{Call, Rules};
use crate::certainty::Certainty;
use crate::claim::{Claim, ClaimChange, ClaimKind, ClaimState};
use crate::contract::{Contract, EffectKind};
use crate::dispatcher::redecide::{begins_a_step, redecide};
use crate::dispatcher::{Input, Step};
use crate::effect::{Answer, Reply};
use crate::envelope::{Body, Envelope};
use crate::event::Event;
use crate::failure::Failure;
use crate::id::{ActionName, AttemptId, StateName};
use crate::interaction::{PersonAnswer, choice};
use crate::playbook::{Playbook, PlaybookSpec};
use crate::registry::Code;
use crate::walk::{Arrival, Fork, Weighing};

mod again;
mod alone;
mod drift;
mod given_up;
mod half;
mod intention;
mod late;
mod limits;
mod overtaken;
mod people;
mod stages;
mod unclear;

const BEGAN_MS: u64 = 10_000_000;

/// A session with a walk, and everything around it: what is weighed leads to the first target, unless something else was said.
struct World {
    dispatcher: Dispatcher,
    rules: Arc<Rules>,
    trace: Vec<Event>,
    now: Timestamp,
    replies: Vec<Reply>,
    sent: Vec<AttemptId>,
    says: Vec<Weighed>,
    minted: u32,
    /// The keys of the calls that were to be made.
    keys: Vec<String>,
    joined: Vec<(CallId, CallId)>,
    unwound: bool,
    undoes_since: Timestamp,
    /// What is sampled for calls.
    gates: Gates,
    /// What the next call repeats.
    held: Option<crate::claim::Held>,
    /// Whether the next calls can be undone.
    undoable: bool,
    /// What became of the claims of calls.
    claims: Vec<ClaimChange>,
}

fn rules() -> Arc<Rules> {
    let contract = Contract {
        effect: EffectKind::Write,
        declared: true,
        settles_within_ms: Some(30_000),
        ..Contract::undeclared(5_000, 600_000, 600_000)
    };
    Arc::new(Rules { playbook: Playbook::parse(&PlaybookSpec::default(), &contract).unwrap(), contract })
}

fn machines(spec: Value) -> BTreeMap<MachineName, MachineSpec> {
    serde_json::from_value(spec).unwrap()
}

fn order() -> Value {
    json!({ "order": {
        "initial": "created", "terminal": ["fulfilled"],
        "actions": {
            "take_order": { "from": ["created"], "to": "ordered" },
            "pay": { "from": ["ordered"], "to": "paid", "tool": "charge_card", "timeout": "20s" },
            "fulfil": { "from": ["paid"], "to": "fulfilled" },
        },
    }})
}

fn payload() -> Payload {
    Payload { digest: "d".into(), size: 2 }
}

impl World {
    fn new(spec: Value) -> Self {
        let definition = machines(spec);
        let machine = definition.keys().next().unwrap().clone();
        Self::begin(Beginning { machine, definition, hash: "h".into(), from: None, fields: payload() })
    }

    fn begin(beginning: Beginning) -> Self {
        let mut world = Self {
            dispatcher: Dispatcher::open("s".into(), 7, "local".into(), "mcp"),
            rules: rules(),
            trace: Vec::new(),
            now: Timestamp::from_ms(BEGAN_MS),
            replies: Vec::new(),
            sent: Vec::new(),
            says: Vec::new(),
            minted: 0,
            keys: Vec::new(),
            joined: Vec::new(),
            unwound: false,
            undoes_since: Timestamp::default(),
            gates: Gates::default(),
            held: None,
            undoable: false,
            claims: Vec::new(),
        };
        world.put(Input::Begin(Box::new(beginning)));
        world
    }

    fn put(&mut self, input: Input) {
        let gates = if matches!(input, Input::Call(_)) { self.gates.clone() } else { Gates::default() };
        self.put_with(&gates, input);
    }

    fn put_with(&mut self, gates: &Gates, input: Input) {
        let Step { events, effects, claims, .. } = self.dispatcher.handle(self.now, gates, input);
        self.trace.extend(events);
        self.claims.extend(claims);
        // Whatever was recorded gives back what is live, and is decided again as it was.
        let rules = |_: &Digest| Some(self.rules.clone());
        assert_eq!(Dispatcher::restore(&self.trace, rules).unwrap(), self.dispatcher);
        assert_eq!(redecide(&self.trace, rules), Ok(None));
        for effect in effects {
            match effect {
                Effect::Begin(wish) => {
                    self.keys.push(wish.key.clone());
                    self.minted += 1;
                    let id = CallId::new(format!("call_{}", self.minted));
                    self.put(Input::Call(Box::new(self.leg(id, *wish))));
                }
                Effect::Weigh { of, what } => {
                    let weighed = if self.says.is_empty() { self.lead(what) } else { self.says.remove(0) };
                    self.put(Input::Weighed { of, weighed });
                }
                Effect::Send(attempt) => self.sent.push(attempt.id),
                Effect::Reply(reply) => self.replies.push(*reply),
                Effect::Join { of, first } => self.joined.push((of, first)),
                Effect::Unwind { since, .. } => (self.unwound, self.undoes_since) = (true, since),
                _ => {}
            }
        }
    }

    fn leg(&self, id: CallId, wish: LegWish) -> Call {
        Call {
            id,
            tool: "charge_card".into(),
            upstream: "shop".into(),
            rules: self.rules.clone(),
            rules_hash: "rules".into(),
            arguments: payload(),
            principal: "local".into(),
            deadline: wish.deadline,
            key: None,
            claims: vec![Claim { name: Digest::new(wish.key.as_str()), fingerprint: "f".into(), kind: ClaimKind::Key }],
            effect_key: String::new(),
            repeat_of: self.held.clone(),
            evidence: Vec::new(),
            reversal: self.undoable.then(|| Digest::new(format!("token {}", self.minted))),
            redeems: None,
            view: None,
            leg: Some(wish.leg),
        }
    }

    /// Where the open move leads by the first target of each machine it goes on in.
    fn lead(&self, what: Weighing) -> Weighed {
        let walk = self.dispatcher.walk().unwrap();
        let Underway { action, machine, .. } = walk.open.clone().unwrap();
        let mut to = Vec::new();
        let mut at = walk.machines.get(machine).unwrap();
        let mut action = action.clone();
        let mut depth = walk.frames.len();
        if what != Weighing::Enter {
            loop {
                let state = at.action(action.as_str()).unwrap().1.to.states().next().unwrap().clone();
                to.push(state.clone());
                if !at.is_terminal(&state) || depth == 1 {
                    break;
                }
                action = walk.frames[depth - 1].via.clone().unwrap();
                depth -= 1;
                at = walk.machines.get(&walk.frames[depth - 1].machine).unwrap();
            }
        }
        match what {
            Weighing::Gate => Weighed::Proceed,
            Weighing::Act | Weighing::Skip | Weighing::Enter => {
                Weighed::Arrives { arrival: Arrival { to, fields: payload() } }
            }
        }
    }

    fn wish(&mut self, action: &str) -> CallId {
        self.wish_with(action, "{}", None)
    }

    fn taking(&self, id: &str, action: &str) -> Taking {
        Taking {
            id: id.into(),
            action: ActionName::new(action),
            expect_seq: None,
            inputs: payload(),
            fingerprint: Digest::new(action),
            principal: "local".into(),
            key: None,
            deadline: self.now + 60_000,
            view: None,
            reset: false,
        }
    }

    fn wish_with(&mut self, action: &str, inputs: &str, expect_seq: Option<u64>) -> CallId {
        self.minted += 1;
        let id = CallId::new(format!("move_{}", self.minted));
        let fingerprint = Digest::new(format!("{action}{inputs}"));
        let taking = Taking { expect_seq, fingerprint, ..self.taking(id.as_str(), action) };
        self.put(Input::Move(Box::new(taking)));
        id
    }

    fn result(&mut self, report: Report) {
        let attempt = self.sent.pop().expect("something was sent");
        self.put(Input::Result { attempt, report: Box::new(report) });
    }

    fn done(&mut self) {
        self.result(Report::success(Some(payload())));
    }

    fn ticks(&mut self) {
        while let Some(deadline) = self.dispatcher.deadline() {
            // A person has far longer.
            if deadline.at.since_ms(Timestamp::from_ms(BEGAN_MS)) > 400_000 {
                break;
            }
            self.now = self.now.max(deadline.at);
            self.put(Input::Tick);
            if self.dispatcher.deadline() == Some(deadline) {
                break;
            }
        }
    }

    fn answer(&self, of: &CallId) -> &Envelope {
        let reply = self.replies.iter().rfind(|reply| reply.call == *of).expect("it was answered");
        match &reply.answer {
            Answer::Envelope(envelope) => envelope,
            other => panic!("{other:?}"),
        }
    }

    fn kind(&self, of: &CallId) -> &'static str {
        self.answer(of).error().map_or("none", |error| error.kind)
    }

    fn state(&self) -> &StateName {
        &self.dispatcher.walk().unwrap().frames.last().unwrap().state
    }

    fn standing(&self) -> Standing<'_> {
        self.dispatcher.walk().unwrap().standing
    }

    fn reset(&mut self, id: &str) -> CallId {
        let taking = Taking { reset: true, ..self.taking(id, "reset") };
        self.put(Input::Move(Box::new(taking)));
        id.into()
    }

    /// Lets its tools have that effect, with nothing else declared of them otherwise.
    fn of_effect(&mut self, effect: EffectKind, declared: bool) {
        let contract = Contract { effect, declared, ..rules().contract.clone() };
        let playbook = Playbook::parse(&PlaybookSpec::default(), &contract).unwrap();
        self.rules = Arc::new(Rules { contract, playbook });
    }

    fn message(&self, of: &CallId) -> &str {
        self.answer(of).error().map_or("", |error| &error.message)
    }

    fn count(&self, name: &str) -> usize {
        self.trace.iter().filter(|event| event.fact.name() == name).count()
    }
}

/// The past of that walk, as it is.
fn fork_of(walk: &Look<'_>) -> Fork {
    Fork {
        session: "s".into(),
        seq: walk.moves,
        frames: walk.frames.to_vec(),
        spent_ms: walk.spent_ms.clone(),
        later: walk.postponed.clone(),
    }
}

fn failed(code: Code, certainty: Certainty) -> Report {
    Report::answered(Failure::of(code), certainty, None)
}

#[test]
fn a_walk_goes_to_its_end_and_says_so() {
    let mut world = World::new(order());
    world.wish("take_order");
    assert_eq!(world.state().as_str(), "ordered");
    let pay = world.wish("pay");
    assert_eq!(world.state().as_str(), "ordered", "the tool has not answered yet");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
    assert!(matches!(world.answer(&pay).body, Body::Success { .. }));
    world.wish("fulfil");
    assert!(world.dispatcher.walk().unwrap().over);
    let again = world.wish_with("take_order", "again", None);
    assert_eq!(world.kind(&again), "invalid_transition");
    assert!(world.answer(&again).error().unwrap().message.contains("reset"));
}

#[test]
fn what_the_order_does_not_allow_is_refused_and_changes_nothing() {
    let mut world = World::new(order());
    let before = world.dispatcher.walk().unwrap().frames.to_vec();
    let unknown = world.wish("payy");
    assert_eq!(world.kind(&unknown), "unknown_action");
    assert_eq!(world.answer(&unknown).error().unwrap().recovery.as_ref().unwrap().fuzzy_matches, ["pay"]);
    let early = world.wish("pay");
    assert_eq!(world.kind(&early), "invalid_transition");
    let stale = world.wish_with("take_order", "{}", Some(3));
    assert_eq!(world.kind(&stale), "stale_state");
    assert_eq!(world.dispatcher.walk().unwrap().frames, before);
    assert!(world.sent.is_empty());
}

#[test]
fn a_move_in_doubt_stops_the_others_and_is_applied_only_when_its_agent_comes_back() {
    let mut world = World::new(order());
    world.wish("take_order");
    let pay = world.wish("pay");
    world.ticks();
    assert_eq!(world.answer(&pay).error().unwrap().certainty, Certainty::InDoubt);
    assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
    let other = world.wish_with("pay", "other", None);
    assert_eq!(world.kind(&other), "in_flight");
    let question = world.trace.iter().find_map(|event| match &event.fact {
        Fact::InteractionOpened { interaction } => Some(interaction.id.clone()),
        _ => None,
    });
    let yes =
        PersonAnswer { choice: choice::HAPPENED.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: question.expect("a person is asked"), answer: Box::new(yes) });
    assert_eq!(world.standing(), Standing::Done(&"pay".into()));
    assert_eq!(world.state().as_str(), "ordered", "nothing moves behind the agent's back");
    let sent = world.count("attempt_started");
    let again = world.wish("pay");
    assert_eq!(world.state().as_str(), "paid");
    assert!(matches!(world.answer(&again).body, Body::Success { .. }));
    assert_eq!(world.count("attempt_started"), sent, "nothing is sent a second time");
}

#[test]
fn what_certainly_failed_leaves_the_walk_free() {
    let mut world = World::new(order());
    world.wish("take_order");
    let pay = world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(world.kind(&pay), "action_error");
    assert_eq!(world.answer(&pay).error().unwrap().code, Code::Forbidden);
    assert_eq!(world.standing(), Standing::Free);
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn a_repeat_gets_the_answer_of_the_first_until_that_arrived() {
    let mut world = World::new(order());
    let first = world.wish("take_order");
    let repeat = world.wish("take_order");
    assert_eq!(world.joined, [(repeat, first.clone())]);
    world.put(Input::Delivery { call: first });
    let another = world.wish("take_order");
    assert_eq!(world.kind(&another), "invalid_transition");
    let pay = world.wish("pay");
    let meanwhile = world.wish("pay");
    assert_eq!(world.joined.last(), Some(&(meanwhile, pay)));
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_crash_after_any_event_is_taken_up() {
    let mut world = World::new(order());
    world.wish("take_order");
    world.wish("pay");
    let (trace, rules) = (world.trace.clone(), world.rules.clone());
    let whole = |cut: &usize| trace.get(*cut).is_none_or(|event| begins_a_step(&event.fact));
    for cut in (3..=trace.len()).filter(whole) {
        let restored = Dispatcher::restore(&trace[..cut], |_| Some(rules.clone())).unwrap();
        let mut world =
            World { dispatcher: restored, trace: trace[..cut].to_vec(), sent: Vec::new(), ..World::new(order()) };
        world.put(Input::Resume);
        world.ticks();
        let walk = world.dispatcher.walk().unwrap();
        assert!(walk.open.is_none(), "cut at {cut}: {:?}", world.trace.last());
        let state = walk.frames[0].state.as_str();
        assert!(["created", "ordered"].contains(&state), "cut at {cut}: {state}");
    }
}

#[test]
fn siblings_are_called_at_once_and_joined() {
    let mut world = World::new(json!({ "trip": {
        "initial": "open", "terminal": ["booked"],
        "actions": { "book": { "from": ["open"], "to": "booked", "parallel": {
            "flight": { "tool": "charge_card" }, "hotel": { "tool": "charge_card" },
        }}},
    }}));
    let book = world.wish("book");
    assert_eq!(world.sent.len(), 2);
    world.done();
    assert_eq!(world.state().as_str(), "open");
    world.done();
    assert_eq!(world.state().as_str(), "booked");
    assert!(matches!(world.answer(&book).body, Body::Success { .. }));
}

#[test]
fn a_machine_within_a_machine_is_walked_to_its_end() {
    let mut world = World::new(json!({
        "house": { "initial": "plan", "terminal": ["built"], "actions": {
            "build": { "from": ["plan"], "to": "built", "machine": "wall" },
        }},
        "wall": { "initial": "low", "terminal": ["high"], "actions": {
            "lay": { "from": ["low"], "to": "high" },
        }},
    }));
    world.wish("build");
    assert_eq!(world.dispatcher.walk().unwrap().frames.len(), 2);
    assert_eq!(world.state().as_str(), "low");
    let outer = world.wish_with("build", "again", None);
    assert_eq!(world.kind(&outer), "unknown_action");
    let message = world.answer(&outer).error().unwrap().message.clone();
    assert_eq!(message, "`build` is an action of `house`, which goes on when `wall` is over; there are `lay`");
    world.wish("lay");
    let walk = world.dispatcher.walk().unwrap();
    assert_eq!(walk.frames.len(), 1);
    assert_eq!(walk.frames[0].state.as_str(), "built");
    assert!(walk.over);
    assert_eq!(walk.frames[0].taken.get(&ActionName::new("build")), Some(&1));
}

#[test]
fn a_person_is_asked_before_anything_is_sent() {
    let mut spec = order();
    spec["order"]["actions"]["pay"]["queue"] = json!("finance");
    for (pick, state, kind) in [(choice::APPROVE, "paid", "none"), (choice::DENY, "ordered", "approval_denied")] {
        let mut world = World::new(spec.clone());
        world.wish("take_order");
        let pay = world.wish("pay");
        assert!(world.sent.is_empty());
        let (id, _) = world.dispatcher.state.questions.first_key_value().expect("a person is asked");
        let answer = PersonAnswer { choice: pick.into(), by: "ann".into(), note: None, at: world.now, content: None };
        let id = id.clone();
        world.now = world.now + 30_000;
        world.put(Input::Answer { interaction: id, answer: Box::new(answer) });
        if pick == choice::APPROVE {
            world.done();
        }
        assert_eq!(world.state().as_str(), state);
        assert_eq!(world.kind(&pay), kind);
    }
}

#[test]
fn a_permission_that_comes_late_is_spent_by_the_next_equal_wish() {
    let mut spec = order();
    spec["order"]["actions"]["pay"]["queue"] = json!("finance");
    let mut world = World::new(spec);
    world.wish("take_order");
    let pay = world.wish("pay");
    world.now = world.now + 20_000;
    world.put(Input::Tick);
    assert_eq!(world.kind(&pay), "awaiting_person");
    let id = world.dispatcher.state.questions.keys().next().unwrap().clone();
    let answer =
        PersonAnswer { choice: choice::APPROVE.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: id, answer: Box::new(answer) });
    assert!(world.sent.is_empty(), "nobody waits for it any more");
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
    assert_eq!(world.count("interaction_opened"), 1);
}

#[test]
fn a_stage_is_tried_again_and_then_resolved_as_declared() {
    let stage = json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": {
            "from": ["created"], "to": "paid", "tool": "charge_card", "assert": "'ok'",
            "retry": { "max_attempts": 2, "backoff": "fixed", "initial": "1s" },
            "resolution": "retry_later", "later": "10m",
        }},
    }});
    let mut world = World::new(stage);
    let pay = world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(world.count("move_waits"), 1);
    world.now = world.dispatcher.deadline().unwrap().at;
    world.put(Input::Tick);
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(world.kind(&pay), "retry_later");
    let soon = world.wish("pay");
    assert_eq!(world.kind(&soon), "retry_later");
    assert_eq!(world.answer(&soon).error().unwrap().retry_after_ms, Some(600_000));
    world.now = world.now + 600_001;
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn a_workflow_that_is_aborted_is_unwound_and_over() {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": {
            "from": ["created"], "to": "paid", "tool": "charge_card", "assert": "'ok'", "resolution": "abort_workflow",
        }},
    }}));
    world.wish("pay");
    world.says = vec![Weighed::Fail];
    world.done();
    assert!(world.unwound && world.dispatcher.walk().unwrap().over);
    let pay = world.trace.iter().find_map(|event| match &event.fact {
        Fact::WalkAborted { of } => Some(of.clone()),
        _ => None,
    });
    world.unwound = false;
    world.put(Input::Resume);
    assert!(world.unwound, "a crash in between loses no undoing");
    let reset = world.wish_with("pay", "busy", None);
    assert_eq!(world.kind(&reset), "in_flight");
    world.put(Input::Unwound { of: pay.unwrap(), undone: 0, failed: vec!["call_9".into()], doubtful: Vec::new() });
    let (_, asked) = world.dispatcher.state.questions.first_key_value().expect("a person hears of it");
    assert!(asked.interaction.question.contains("call_9"));
    let again = world.wish_with("pay", "again", None);
    assert_eq!(world.kind(&again), "invalid_transition");
}

#[test]
fn a_fork_begins_where_the_other_was() {
    let mut world = World::new(order());
    world.wish("take_order");
    let walk = world.dispatcher.walk().unwrap();
    let fork = fork_of(&walk);
    let definition = machines(order());
    let (machine, hash) = ("order".into(), "h".into());
    let mut forked = World::begin(Beginning { machine, definition, hash, from: Some(fork), fields: payload() });
    assert_eq!(forked.state().as_str(), "ordered");
    forked.wish_with("pay", "{}", Some(1));
    forked.done();
    assert_eq!(forked.state().as_str(), "paid");
}

#[test]
fn what_is_said_must_follow_from_the_machine() {
    let mut world = World::new(order());
    let nowhere = Arrival { to: vec!["paid".into()], fields: payload() };
    world.says = vec![Weighed::Arrives { arrival: nowhere }];
    let taken = world.wish("take_order");
    assert_eq!(world.state().as_str(), "created");
    assert_eq!(world.kind(&taken), "action_error");
}
