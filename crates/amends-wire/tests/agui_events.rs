//! Golden events in `fixtures/wire/agui`. `UPDATE=1` writes them anew; the diff is read like code.

use std::path::PathBuf;

use amends_core::envelope::{Body, Data, Trouble};
use amends_core::interaction::{InteractionKind, Subject};
use amends_core::registry::{AgUi, Meaning};
use amends_core::{AttemptId, Code, Envelope, Interaction, Outcome as Ending, Refusal, RefusalKind, Timestamp};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use amends_wire::agui::event::{Event, Interrupt, Outcome, PROTOCOL_VERSION};
use amends_wire::agui::input::{Answer, Input};
use amends_wire::agui::plan::{Asked, Status, Waiting};
use amends_wire::agui::reply::{Goes, goes, of_person, of_upstream, result, said, to_upstream};
use amends_wire::mcp::reply::{envelope, forward};
use amends_wire::mcp::{ClientTraits, Dialect, Era, Question, Receipt};
use amends_wire::message::success;

const TRAITS: ClientTraits = ClientTraits { era: Era::Modern, validates_errors: false, dialect: Dialect::Amends };

fn receipt() -> Receipt {
    Receipt { trace: "ses_1".into(), sequence: Some(7), hash: Some("ab12".into()), checkpoint: None, unrecorded: None }
}

fn interaction() -> Interaction {
    Interaction {
        id: "int_1".into(),
        session: "ses_1".into(),
        call: "call_1".into(),
        tool: "pay".into(),
        principal: "ada".into(),
        queue: "ops".into(),
        kind: InteractionKind::Approve,
        subject: Subject::Call,
        question: "may `pay` be called for `ada`?".into(),
        view: Some(r#"{"amount":5}"#.into()),
        options: vec!["approve".into(), "approve_session".into(), "deny".into()],
        default: "deny".into(),
        opened: Timestamp::from_ms(0),
        due: Timestamp::from_ms(1),
        arrives_by: None,
        grounds: None,
        gives: None,
    }
}

fn done() -> Event {
    let of = AttemptId { call: "call_1".into(), n: 1 };
    let ours = Envelope::of(Body::Success { outcome: Ending::Succeeded, data: Data::Of(of) });
    let raw = r#"{"content":[{"type":"text","text":"sent"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}"#;
    let message = success("1", &forward(raw, &ours, Some(&receipt()), TRAITS));
    let told = serde_json::from_str(ours.to_json(Some(&RawValue::from_string("7".into()).unwrap())).get()).unwrap();
    result("c1", "m1".into(), &message, &told)
}

fn refused(kind: RefusalKind, words: &str) -> Envelope {
    Envelope::of(Body::Refused { error: Box::new(Trouble::refused("pay", &Refusal::of(kind, words))) })
}

fn told(envelope: &Envelope) -> Value {
    serde_json::from_str(envelope.to_json(None).get()).unwrap()
}

fn finished(outcome: Outcome) -> Event {
    Event::RunFinished { thread_id: "t".into(), run_id: "r".into(), outcome, result: None }
}

fn question() -> Question {
    let params =
        r#"{"message":"which size?","requestedSchema":{"type":"object","properties":{"size":{"type":"string"}}}}"#;
    Question { key: "input".into(), method: "elicitation/create".into(), params: Some(params.into()) }
}

/// Every golden: its name, and the events.
fn events() -> Vec<(&'static str, Vec<Event>)> {
    let body = r#"{"threadId":"t","runId":"r","messages":[],"forwardedProps":{"amends":{"calls":[{"tool":"pay","args":{"amount":5}}]}}}"#;
    let mut plan = Input::read(body).unwrap().wanted.unwrap();
    let snapshot = Event::StateSnapshot { snapshot: json!({ "amends": plan }) };
    let asked = vec![Asked { interrupt: "int_1".into(), key: None }];
    let delta = [Some(plan.mark(0, Status::Waiting)), plan.wait(Some(Waiting { asked, state: None }))];
    let delta = Event::StateDelta { delta: delta.into_iter().flatten().collect() };
    let goes_on = [Some(plan.mark(0, Status::Done)), plan.wait(None)];
    let goes_on = Event::StateDelta { delta: goes_on.into_iter().flatten().collect() };
    let no = refused(RefusalKind::InvalidArgument, "`amount` is missing");
    let no_message = success("1", &envelope(&no, None, Some(&receipt()), TRAITS, false));
    let call = || "c1".to_owned();
    let interrupts = |one: Interrupt| finished(Outcome::Interrupt { interrupts: vec![one] });
    vec![
        (
            "begins",
            vec![
                Event::RunStarted { thread_id: "t".into(), run_id: "r".into(), protocol_version: PROTOCOL_VERSION },
                snapshot,
                Event::StepStarted { step_name: "pay".into() },
                Event::ToolCallStart { tool_call_id: call(), tool_call_name: "pay".into() },
                Event::ToolCallArgs { tool_call_id: call(), delta: r#"{"amount":5}"#.into() },
                Event::ToolCallEnd { tool_call_id: call() },
                Event::StepFinished { step_name: "pay".into() },
            ],
        ),
        ("done", vec![done(), goes_on, finished(Outcome::Success)]),
        ("refused", vec![result("c1", "m1".into(), &no_message, &told(&no))]),
        ("fails", vec![Event::RunError { message: "no answer".into(), code: Code::NetworkTimeout.as_str() }]),
        ("cancelled", vec![finished(Outcome::Cancelled)]),
        ("asks_a_person", vec![delta, interrupts(of_person(&interaction(), "c1", "1970-01-01T00:00:00.001Z".into()))]),
        ("asks_the_user", vec![interrupts(of_upstream(&question(), "ask_c1_input".into(), "c1"))]),
    ]
}

#[test]
fn events_are_as_their_goldens_say() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/agui"));
    for (name, events) in events() {
        let text: String = events.iter().map(Event::framed).collect();
        let path = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            assert_eq!(frames(&std::fs::read_to_string(&path).unwrap_or_default()), frames(&text), "{name}");
        }
    }
}

/// What a stream says. The order of members is nobody's business.
fn frames(stream: &str) -> Vec<Value> {
    let read = |frame: &str| serde_json::from_str(frame.strip_prefix("data: ").unwrap_or("")).expect("a frame of JSON");
    stream.split_terminator("\n\n").map(read).collect()
}

#[test]
fn nothing_absent_is_written_as_null_and_a_frame_is_one_line() {
    for (name, events) in events() {
        for event in events {
            let framed = event.framed();
            assert!(!framed.contains("null"), "{name}: {framed}");
            assert_eq!(framed.matches('\n').count(), 2, "{name}: {framed}");
            assert!(framed.starts_with("data: {\"type\":\"") && framed.ends_with("}\n\n"), "{name}: {framed}");
        }
    }
}

#[test]
fn the_registry_says_how_a_run_goes_on() {
    assert_eq!(goes(&json!({ "status": "success", "data": 1 })), Goes::On);
    assert_eq!(goes(&told(&refused(RefusalKind::InvalidArgument, "no"))), Goes::Stops);
    assert_eq!(goes(&told(&refused(RefusalKind::PolicyBlocked, "no"))), Goes::Stops);
    assert_eq!(goes(&told(&refused(RefusalKind::AwaitingPerson, "wait"))), Goes::Asks(None));
    let code = |code: &str| json!({ "status": "error", "error": { "code": code, "kind": "x", "message": "m" } });
    assert_eq!(goes(&code("InputInvalid")), Goes::Stops);
    assert_eq!(goes(&code("ToolCancelled")), Goes::Cancelled);
    let fails = Goes::Fails { code: Code::NetworkTimeout, message: "m".into() };
    assert_eq!(goes(&code("NetworkTimeout")), fails);
    let mut doubt = code("ActionError");
    assert_eq!(goes(&doubt), Goes::Stops);
    doubt["error"]["certainty"] = "in_doubt".into();
    assert_eq!(goes(&doubt), Goes::Fails { code: Code::ActionError, message: "m".into() });
}

#[test]
fn a_run_fails_where_a_model_cannot_help() {
    let codes = Code::ALL.map(|code| (code.as_str(), code.ag_ui(), code.meaning()));
    let refusals = RefusalKind::ALL.map(|kind| (kind.as_str(), kind.ag_ui(), kind.meaning()));
    for (name, says, means) in codes.into_iter().chain(refusals) {
        let fits = match says {
            AgUi::HttpError => true,
            AgUi::ToolResult => matches!(means, Meaning::Correct | Meaning::Permanent),
            AgUi::RunError => means == Meaning::Infrastructure,
            AgUi::Interrupt => matches!(means, Meaning::Approval | Meaning::Input),
            AgUi::Cancelled => means == Meaning::Cancelled,
        };
        assert!(fits, "{name}: {says:?} for {means:?}");
    }
}

#[test]
fn an_answer_is_read_in_the_words_of_its_question() {
    let read =
        |cancelled, payload: Value| said(&interaction(), &Answer { interrupt: "int_1".into(), cancelled, payload });
    let one = |text: &str| Ok(Some((text.to_owned(), None)));
    assert_eq!(read(false, json!({ "approved": true })), one("approve"));
    assert_eq!(read(false, json!({ "approved": false })), one("deny"));
    assert_eq!(read(false, json!({ "choice": "approve_session" })), one("approve_session"));
    assert_eq!(read(true, Value::Null), one("deny"), "what nobody answers counts as the default");
    assert_eq!(read(false, Value::Null), Ok(None));
    assert_eq!(read(false, json!({})), Ok(None));
    for odd in [json!({ "choice": "happened" }), json!({ "choice": 7 }), json!("yes"), json!({ "editedArgs": {} })] {
        assert!(read(false, odd.clone()).is_err(), "{odd}");
    }
    let free = Interaction { kind: InteractionKind::Ask, options: Vec::new(), ..interaction() };
    let answer = Answer { interrupt: "int_1".into(), cancelled: false, payload: json!({ "answer": "blue" }) };
    assert_eq!(said(&free, &answer), one("blue"));
    assert_eq!(to_upstream(&answer), r#"{"action":"accept","content":{"answer":"blue"}}"#);
}
