//! Golden tools, answers and refusals in `fixtures/wire/mcp/steps`. `UPDATE=1` writes them anew; the diff is read like code.

use std::path::PathBuf;

use amends_core::dispatcher::walk::Half;
use amends_core::envelope::{Body, Data, Trouble};
use amends_core::id::{ActionName, InteractionId, MachineName, StateName, ToolName};
use amends_core::machine::Machine;
use amends_core::walk::{Frame, GivenUp};
use amends_core::{Certainty, Code, Envelope, Outcome, Refusal, RefusalKind, SessionId, Verdict, WhoMustAct};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::mcp::reply::{self, Receipt};
use crate::mcp::{ClientTraits, Dialect, Era};

const NATIVE: ClientTraits = ClientTraits { era: Era::Modern, validates_errors: false, dialect: Dialect::Amends };
const FLAT: ClientTraits = ClientTraits { era: Era::Legacy, validates_errors: true, dialect: Dialect::Theodosia };

fn machine() -> Machine {
    let declared = json!({
        "description": "an order and its payment",
        "initial": "created", "terminal": ["fulfilled"],
        "actions": {
            "take_order": {
                "description": "Writes the order down.", "from": ["created"], "to": "ordered",
                "input": {
                    "type": "object", "properties": { "item": { "type": "string" } }, "required": ["item"],
                    "additionalProperties": false,
                },
                "writes": { "item": "inputs.item" },
            },
            "pay": {
                "from": ["ordered"], "to": "paid", "tool": "charge_card", "timeout": "5s",
                "input": { "type": "object", "properties": { "amount": { "type": "number" } }, "required": ["amount"] },
            },
            "hand_over": { "from": ["paid"], "to": "fulfilled" },
        },
    });
    Machine::read("order", &serde_json::from_value(declared).unwrap()).unwrap()
}

fn names(tools: bool) -> Names {
    let machine = machine();
    let actions: Vec<_> = machine.actions().map(|(name, _)| (machine.name().clone(), name.clone())).collect();
    Names::assign(&Tool::ALL, if tools { &actions } else { &[] }, |name| name == "pay").knowing([&machine])
}

fn view(state: &str, seq: u64) -> View {
    let machine = machine();
    let at = StateName::new(state);
    let legal = machine.actions().filter(|(_, action)| action.from.contains(&at));
    let next = legal.map(|(name, action)| Next {
        action: name.to_string(),
        description: action.description.clone(),
        schema: action.input.clone(),
    });
    let frame = Frame { machine: machine.name().clone(), state: at.clone(), moves: seq, taken: [].into(), via: None };
    View {
        session: SessionId::new("ses_1"),
        root: machine.name().clone(),
        machine: machine.name().clone(),
        seq,
        fields: json!({ "item": "latte" }).as_object().cloned().filter(|_| seq > 0).unwrap_or_default(),
        over: machine.is_terminal(&at),
        next: next.collect(),
        waits: None,
        frames: vec![frame],
        halves: Vec::new(),
        state: at,
    }
}

fn moved(action: &str, view: View) -> Moved {
    Moved::at(action, view)
}

fn done() -> Envelope {
    Envelope::of(Body::Success { outcome: Outcome::Succeeded, data: Data::Value(Value::Null) })
}

fn refused(requested: &str, kind: RefusalKind, message: &str) -> Envelope {
    let mut refusal = Refusal::of(kind, message);
    if kind == RefusalKind::ValidationFailed {
        let faults = read(Tool::Step, "step", Some(&raw(r#"{"action":"pay","inputs":"{\"amount\""}"#))).unwrap_err();
        refusal = *faults;
    }
    if kind == RefusalKind::UnknownAction {
        refusal.recovery.get_or_insert_default().fuzzy_matches = vec!["pay".into()];
    }
    Envelope::of(Body::Refused { error: Box::new(Trouble::refused(requested, &refusal)) })
}

fn failed(kind: RefusalKind, certainty: Certainty, message: &str) -> Envelope {
    let refusal = Refusal::of(kind, message);
    let code = if kind == RefusalKind::ActionTimeout { Code::NetworkTimeout } else { Code::ActionError };
    let trouble = Trouble {
        code,
        verdict: Some(Verdict::InDoubt).filter(|_| certainty == Certainty::InDoubt),
        certainty,
        safe_to_repeat: certainty.nothing_happened(),
        who_must_act: WhoMustAct::Nobody,
        timeout_ms: Some(5_000).filter(|_| kind == RefusalKind::ActionTimeout),
        ..Trouble::refused("pay", &refusal)
    };
    Envelope::of(Body::Error { outcome: Some(Outcome::Unresolved), error: Box::new(trouble) })
}

/// A walk in which `charge` of `pay` was done, and what it waits for.
fn half(waiting: bool, waits: Option<Waits>) -> View {
    let (machine, action) = (MachineName::new("order"), ActionName::new("pay"));
    let halves = vec![Half { machine, action, done: vec!["charge".into()] }];
    let there = view("ordered", 1);
    View { waits, halves, next: if waiting { Vec::new() } else { there.next.clone() }, ..there }
}

fn asked_person() -> Waits {
    Waits::Unsettled { action: "pay".into(), done: false, asked: true }
}

fn half_in_doubt() -> Envelope {
    let mut envelope = failed(RefusalKind::ActionError, Certainty::InDoubt, "`pay` failed in `note`");
    if let Body::Error { error, .. } = &mut envelope.body {
        error.who_must_act = WhoMustAct::Person;
        error.interaction = Some(InteractionId::new("int_1"));
    }
    envelope
}

fn asked(message: &str) -> Envelope {
    let mut error = Trouble::refused("pay", &Refusal::of(RefusalKind::AwaitingPerson, message));
    error.interaction = Some(InteractionId::new("int_1"));
    Envelope::of(Body::Error { outcome: None, error: Box::new(error) })
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// What was looked at in a walk.
fn looked(value: Value) -> (Envelope, Moved) {
    let lead = hint(&view("ordered", 1), &names(false));
    let data = Data::Shown { lead, value };
    let envelope = Envelope::of(Body::Success { outcome: Outcome::Succeeded, data });
    (envelope, moved("walk", view("ordered", 1)))
}

/// Every answer: its name, its envelope, and what came of the move.
fn answers() -> Vec<(&'static str, Envelope, Moved)> {
    let no = refused;
    let paid = Moved { result: Some(raw(r#"{ "charge":"ch_1","amount":5.00 }"#)), ..moved("pay", view("paid", 2)) };
    let waiting = |waits: Waits| View { waits: Some(waits), next: Vec::new(), ..view("ordered", 1) };
    let again =
        View { waits: Some(Waits::Unsettled { action: "pay".into(), done: true, asked: false }), ..view("ordered", 1) };
    let mut within = view("created", 3);
    within.machine = MachineName::new("delivery");
    within.frames.push(Frame { machine: within.machine.clone(), ..within.frames[0].clone() });
    let doubt = "no answer from `shop` in 5 s; it may have happened, and is still being settled";
    let unsettled = || waiting(Waits::Unsettled { action: "pay".into(), done: false, asked: false });
    let given_up = |undone| {
        let left = vec![ToolName::new("charge_card")];
        View {
            over: true,
            ..waiting(Waits::GivenUp(GivenUp { undoing: 1, undone, doubtful: Vec::new(), left, more: 0 }))
        }
    };
    let drifted = |why: &str, resets| waiting(Waits::Drifted { why: why.into(), resets });
    let unclear = || waiting(Waits::Unclear { action: "pay".into() });
    let unknown = View { waits: Some(Waits::Unknown { action: "pay".into() }), ..view("ordered", 1) };
    let (state, at) = looked(state_body(&view("ordered", 1), &names(false)));
    let (picture, drawn) = looked(json!("stateDiagram-v2\n"));
    vec![
        ("looked_at_state", state, at),
        ("looked_at_picture", picture, drawn),
        ("taken", done(), moved("take_order", view("ordered", 1))),
        ("undone_since", done(), moved("pay", View { waits: Some(Waits::Undone { undone: 1 }), ..view("paid", 2) })),
        ("paid", done(), paid),
        ("ended", done(), moved("hand_over", view("fulfilled", 3))),
        ("within_another", done(), moved("take_order", within)),
        (
            "invalid_transition",
            no("pay", RefusalKind::InvalidTransition, "`pay` is not reachable from `created`; legal now: `take_order`"),
            moved("pay", view("created", 0)),
        ),
        (
            "unknown_action",
            no("pya", RefusalKind::UnknownAction, "`order` has no action `pya`"),
            moved("pya", view("ordered", 1)),
        ),
        ("validation_failed", no("pay", RefusalKind::ValidationFailed, ""), moved("pay", view("ordered", 1))),
        (
            "over",
            no("pay", RefusalKind::InvalidTransition, "`order` is over in `fulfilled`"),
            moved("pay", view("fulfilled", 3)),
        ),
        ("stale_state", no("pay", RefusalKind::StaleState, "1 move was made, not 0"), moved("pay", view("ordered", 1))),
        (
            "duplicate",
            no("pay", RefusalKind::Duplicate, "this key was used for another move"),
            moved("pay", view("paid", 2)),
        ),
        (
            "in_flight",
            no("pay", RefusalKind::InFlight, "`pay` is being made"),
            moved("pay", waiting(Waits::Open { action: "pay".into(), asked: false })),
        ),
        (
            "in_flight_done",
            no("drop", RefusalKind::InFlight, "`pay` was done, and nobody was told"),
            moved("drop", again),
        ),
        (
            "in_flight_unknown",
            no("drop", RefusalKind::InFlight, "`pay` may have happened, and nobody finds out any more"),
            moved("drop", unknown),
        ),
        (
            "retry_later",
            no("pay", RefusalKind::RetryLater, "`pay` can be taken again later"),
            moved("pay", waiting(Waits::Later { action: "pay".into(), not_before_ms: 1_800_000_000_000 })),
        ),
        (
            "awaiting_person",
            asked("a person is asked whether `pay` may be done: tell the user, and do not call again in this turn"),
            moved("pay", waiting(Waits::Open { action: "pay".into(), asked: true })),
        ),
        ("action_timeout", failed(RefusalKind::ActionTimeout, Certainty::InDoubt, doubt), moved("pay", unsettled())),
        ("half_done", half_in_doubt(), moved("pay", half(true, Some(asked_person())))),
        (
            "in_flight_asked",
            no("drop", RefusalKind::InFlight, "a person is asked"),
            moved("drop", half(true, Some(asked_person()))),
        ),
        ("half_done_over", done(), moved("hand_over", View { over: true, ..half(true, None) })),
        (
            "drifted_over",
            no("pay", RefusalKind::SchemaDrift, "it is declared otherwise by now"),
            moved("pay", view("fulfilled", 3)),
        ),
        (
            "action_error",
            failed(RefusalKind::ActionError, Certainty::NotProcessed, "`charge_card` reported an error"),
            moved("pay", view("ordered", 1)),
        ),
        (
            "unclear",
            failed(
                RefusalKind::ActionError,
                Certainty::Processed,
                "`pay` was done, and its machine cannot tell what follows from it: no such key: `id`; do not do it again: \
                 nothing else can be done in this walk until the machine is mended or the walk is reset, which undoes nothing",
            ),
            moved("pay", unclear()),
        ),
        (
            "in_flight_unclear",
            no("drop", RefusalKind::InFlight, "`pay` was done, and its machine cannot tell what follows from it"),
            moved("drop", unclear()),
        ),
        (
            "giving_up",
            failed(
                RefusalKind::ActionError,
                Certainty::NotProcessed,
                "`pay` failed: the shop does not allow this request; nothing was done, and the walk is given up: 1 being undone, \
                 1 cannot be undone (`charge_card`)",
            ),
            moved("pay", given_up(None)),
        ),
        (
            "given_up",
            no(
                "pay",
                RefusalKind::InvalidTransition,
                "the walk was given up: 1 undone, 1 cannot be undone (`charge_card`); reset it to begin again",
            ),
            moved("pay", given_up(Some(1))),
        ),
        (
            "drifted",
            no(
                "pay",
                RefusalKind::SchemaDrift,
                "the walk does not go on: the machine `order` is declared otherwise by now; reset it to begin again as the \
                 machine is declared now",
            ),
            moved("pay", drifted("the machine `order` is declared otherwise by now", true)),
        ),
        (
            "drifted_away",
            no(
                "pay",
                RefusalKind::SchemaDrift,
                "the walk does not go on: the machine `order` is not declared any more",
            ),
            moved("pay", drifted("the machine `order` is not declared any more", false)),
        ),
    ]
}

fn golden(name: &str, value: &Value) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/mcp/steps"));
    let pretty = serde_json::to_string_pretty(value).unwrap() + "\n";
    let path = folder.join(format!("{name}.json"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, pretty).unwrap();
    } else {
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), pretty, "{name}");
    }
}

#[test]
fn answers_of_moves_are_as_their_goldens_say() {
    let receipt = Receipt {
        trace: "ses_1".into(),
        sequence: Some(7),
        hash: Some("ab12".into()),
        checkpoint: None,
        unrecorded: None,
    };
    for (name, envelope, moved) in answers() {
        for (dialect, traits) in [("", NATIVE), ("theodosia_", FLAT)] {
            let names = names(false);
            let written = Written::of(&envelope, &moved, &names);
            let reply = reply::moved(&envelope, &moved, &names, &written, Some(&receipt), traits);
            golden(&format!("{dialect}{name}"), &serde_json::from_str(&reply).unwrap());
        }
    }
}

#[test]
fn tools_are_defined_as_their_goldens_say() {
    let machine = machine();
    let names = names(true);
    let mut tools: Vec<Value> = Vec::new();
    for tool in Tool::ALL {
        tools.push(serde_json::from_str(&definition(tool, names.own(tool).unwrap(), &[&machine])).unwrap());
    }
    for (name, action) in machine.actions() {
        let served = names.action(machine.name(), name.as_str()).unwrap();
        tools.push(
            serde_json::from_str(&action_tool(served, &machine, name.as_str(), action, action.input.as_ref())).unwrap(),
        );
    }
    let resources: Vec<Value> =
        What::ALL.iter().map(|what| serde_json::from_str(&resource(*what).1).unwrap()).collect();
    let templates: Vec<Value> =
        What::ALL.iter().map(|what| serde_json::from_str(&template(*what).1).unwrap()).collect();
    let read =
        json!({ "next": next_body(&view("ordered", 1), &names), "state": state_body(&view("ordered", 1), &names) });
    golden("tools", &json!({ "tools": tools, "resources": resources, "templates": templates, "read": read }));
}

#[test]
fn every_answer_says_what_may_be_done_now_and_with_what() {
    for (name, envelope, moved) in answers() {
        let native: Value = serde_json::from_str(filled(&envelope, &moved, &names(false)).get()).unwrap();
        let failed = native.get("error").is_some();
        let place = if failed || name.starts_with("looked") { &native } else { &native["data"] };
        assert_eq!(place["valid_next_actions"], json!(moved.view.legal()), "{name}");
        assert_eq!(place["session"], "ses_1", "{name}");
        assert_eq!(place["seq"], moved.view.seq, "{name}");
        let hint = place["next_hint"].as_str().unwrap();
        assert!(moved.view.next.iter().all(|next| hint.contains(&next.action)), "{name}: {hint}");
        for next in &moved.view.next {
            assert!(place["next_action_schemas"][&next.action].is_object(), "{name}");
        }
        assert_eq!(native.get("data").is_some(), !failed, "{name}");
        assert!(!native.to_string().contains("null"), "{name}: {native}");
    }
}

#[test]
fn every_answer_is_an_envelope() {
    let schema = crate::Schema::from_value(amends_core::envelope::schema::whole()).unwrap();
    for (name, envelope, moved) in answers() {
        let native: Value = serde_json::from_str(filled(&envelope, &moved, &names(false)).get()).unwrap();
        assert!(schema.check(&native).is_empty(), "{name}: {:?}", schema.check(&native));
    }
}

#[test]
fn where_a_walk_is_over_the_way_to_begin_again_is_named() {
    let over = view("fulfilled", 3);
    assert!(hint(&over, &names(false)).contains("call `reset` to begin again"));
    let envelope = refused("pay", RefusalKind::InvalidTransition, "`order` is over in `fulfilled`");
    let guided = guided(&envelope, &moved("pay", over), &names(false));
    let call = guided.error().unwrap().recovery.clone().unwrap().call.unwrap();
    assert_eq!((call.tool.as_str(), json!(call.args)), ("reset", json!({ "session": "ses_1" })));
}

#[test]
fn what_waits_for_a_person_is_said_to_be_a_persons_move() {
    for name in ["half_done", "in_flight_asked"] {
        let (_, envelope, moved) = answers().into_iter().find(|(known, ..)| *known == name).unwrap();
        let error = guided(&envelope, &moved, &names(false)).error().unwrap().clone();
        assert_eq!(error.who_must_act, WhoMustAct::Person, "{name}");
        let text = text(&envelope, &moved, &names(false), &hint(&moved.view, &names(false)));
        assert!(text.contains("a person is asked") && text.contains("`charge` was done"), "{text}");
        assert!(!text.contains("There is nothing to do about it now"), "{text}");
    }
}

#[test]
fn a_walk_that_is_over_begins_again_whatever_its_machine_is_by_now() {
    let (_, envelope, moved) = answers().into_iter().find(|(name, ..)| *name == "drifted_over").unwrap();
    let error = guided(&envelope, &moved, &names(false)).error().unwrap().clone();
    let call = error.recovery.and_then(|recovery| recovery.call).unwrap();
    assert_eq!((call.tool.as_str(), error.who_must_act), ("reset", WhoMustAct::Agent));
}

#[test]
fn a_look_at_a_walk_opens_with_where_it_is() {
    let lead = hint(&view("ordered", 1), &names(false));
    let (envelope, moved) = looked(next_body(&view("ordered", 1), &names(false)));
    let written = Written::of(&envelope, &moved, &names(false));
    let reply = reply::moved(&envelope, &moved, &names(false), &written, None, NATIVE);
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let text = reply["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&lead) && !text.contains("It was done"), "{text}");
    assert_eq!(reply["structuredContent"]["data"]["next_hint"], lead, "{reply}");
}

#[test]
fn nothing_invites_to_repeat_what_is_in_doubt() {
    let (_, envelope, moved) = answers().into_iter().find(|(name, ..)| *name == "action_timeout").unwrap();
    let text = text(&envelope, &moved, &names(false), &hint(&moved.view, &names(false)));
    assert!(text.contains("Do not call it again") && text.contains("Do not take it again"), "{text}");
    let recovery = guided(&envelope, &moved, &names(false)).error().unwrap().recovery.clone().unwrap();
    assert_eq!(recovery.call.map(|call| call.tool).as_deref(), Some("walk"), "to look is all there is to do");
    assert_eq!(recovery.template, None);
}

#[test]
fn what_time_does_not_settle_is_not_to_be_tried_again() {
    let busy = Refusal {
        code: amends_core::Code::ResourceBusy,
        retry_after_ms: Some(5_000),
        ..Refusal::of(RefusalKind::InFlight, "another is not over")
    };
    let envelope = Envelope::of(Body::Refused { error: Box::new(Trouble::refused("drop", &busy)) });
    let open = Waits::Open { action: "pay".into(), asked: false };
    for (waits, helps) in [
        (open, true),
        (Waits::Unsettled { action: "pay".into(), done: false, asked: false }, false),
        (Waits::Unknown { action: "pay".into() }, false),
        (Waits::Unclear { action: "pay".into() }, false),
    ] {
        let view = View { waits: Some(waits.clone()), next: Vec::new(), ..view("ordered", 1) };
        let told = guided(&envelope, &moved("drop", view), &names(false));
        let error = told.error().unwrap();
        assert_eq!((error.retryable, error.retry_after_ms.is_some()), (helps, helps), "{waits:?}");
    }
}

#[test]
fn a_template_names_the_tool_that_takes_the_action() {
    let envelope = refused("pay", RefusalKind::InvalidTransition, "no");
    let of = |names: &Names| {
        let guided = guided(&envelope, &moved("pay", view("created", 0)), names);
        guided.error().unwrap().recovery.clone().unwrap().template.unwrap()
    };
    let step = of(&names(false));
    assert_eq!((step.tool.as_str(), step.missing), ("step", vec!["inputs.item".to_owned()]));
    assert_eq!(json!(step.args), json!({ "action": "take_order", "session": "ses_1" }));
    let own = of(&names(true));
    assert_eq!((own.tool.as_str(), own.missing), ("take_order", vec!["item".to_owned()]));
    assert_eq!(json!(own.args), json!({ "session": "ses_1" }));
}
