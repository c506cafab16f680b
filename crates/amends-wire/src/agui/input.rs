//! What a client sends to have something run, read and found well formed.

use std::collections::BTreeSet;

use amends_core::failure::bounded;
use amends_core::refusal::ArgumentFault;
use amends_core::{Refusal, RefusalKind};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::plan::{ID_CHARS_MAX, MEMBER, Plan, STEPS_MAX, Status, Step};

/// How many interrupts one run may answer.
const ANSWERS_MAX: usize = 64;

/// What a client wants run.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The conversation.
    pub thread: String,
    /// The run.
    pub run: String,
    /// What the client carries, as an object.
    pub state: Map<String, Value>,
    /// What it carries of an earlier run of ours.
    pub carried: Option<Plan>,
    /// What it wants run now.
    pub wanted: Option<Plan>,
    /// What it answers.
    pub answers: Vec<Answer>,
}

/// An answer to an interrupt.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The interrupt.
    pub interrupt: String,
    /// Whether it was put away rather than answered.
    pub cancelled: bool,
    /// What was answered.
    pub payload: Value,
}

/// The fields that we look at. Messages, tools and context are the client's business with its model.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    thread_id: String,
    run_id: String,
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(default)]
    state: Option<Value>,
    #[serde(default, borrow)]
    forwarded_props: Option<&'a RawValue>,
    #[serde(default)]
    resume: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    interrupt_id: String,
    status: EntryStatus,
    #[serde(default)]
    payload: Value,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum EntryStatus {
    Resolved,
    Cancelled,
}

#[derive(Deserialize)]
struct Forwarded<'a> {
    #[serde(default, borrow)]
    amends: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted<'a> {
    #[serde(default, borrow)]
    calls: Option<Vec<CallWish<'a>>>,
    #[serde(default)]
    machine: Option<String>,
    #[serde(default, borrow)]
    moves: Option<Vec<MoveWish<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallWish<'a> {
    tool: String,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveWish<'a> {
    action: String,
    #[serde(default, borrow)]
    inputs: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    expect_seq: Option<u64>,
}

impl Input {
    /// Reads the body of a request.
    ///
    /// ```
    /// use amends_wire::agui::input::Input;
    ///
    /// let body = r#"{"threadId":"t","runId":"r","messages":[],
    ///     "forwardedProps":{"amends":{"calls":[{"tool":"get_order","args":{"id":"o-1"}}]}}}"#;
    /// let input = Input::read(body).unwrap();
    /// assert_eq!(input.wanted.unwrap().steps[0].name, "get_order");
    /// assert_eq!(Input::read(r#"{"threadId":"t"}"#).unwrap_err().kind.as_str(), "invalid_argument");
    /// ```
    pub fn read(body: &str) -> Result<Self, Box<Refusal>> {
        let fields: Fields<'_> = serde_json::from_str(body).map_err(|error| bad("", "a run input of AG-UI", &error))?;
        if !fields.messages.get().starts_with('[') {
            return Err(unfit("messages", "an array", Some(fields.messages.get())));
        }
        for (name, id) in [("threadId", &fields.thread_id), ("runId", &fields.run_id)] {
            is_id(name, id)?;
        }
        let mut state = match fields.state {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(state)) => state,
            Some(other) => return Err(unfit("state", "an object", Some(&other.to_string()))),
        };
        let carried = state.remove(MEMBER).filter(|carried| !carried.is_null()).map(carried).transpose()?;
        let wanted = match fields.forwarded_props.filter(|props| props.get() != "null") {
            Some(props) => wanted(props.get(), &fields.run_id)?,
            None => None,
        };
        let answers = answers(fields.resume.unwrap_or_default())?;
        Ok(Self { thread: fields.thread_id, run: fields.run_id, state, carried, wanted, answers })
    }
}

/// What a client carries of an earlier run.
fn carried(value: Value) -> Result<Plan, Box<Refusal>> {
    let plan: Plan =
        serde_json::from_value(value).map_err(|error| bad("state.amends", "it as it was given", &error))?;
    bound(&plan.steps)?;
    for (n, step) in plan.steps.iter().enumerate() {
        if RawValue::from_string(step.args.clone()).is_err() {
            return Err(unfit(
                &format!("state.amends.steps.{n}.args"),
                "JSON in a text, as it was given",
                Some(&step.args),
            ));
        }
    }
    if plan.waiting.as_ref().is_some_and(|waiting| waiting.asked.len() > ANSWERS_MAX) {
        return Err(unfit("state.amends.waiting", "it as it was given", None));
    }
    Ok(plan)
}

/// What a client wants run now; nothing where it says nothing.
fn wanted(props: &str, run: &str) -> Result<Option<Plan>, Box<Refusal>> {
    const WHERE: &str = "forwardedProps.amends";
    let forwarded: Forwarded<'_> =
        serde_json::from_str(props).map_err(|error| bad("forwardedProps", "an object", &error))?;
    let Some(amends) = forwarded.amends.filter(|amends| amends.get() != "null") else { return Ok(None) };
    let expected = "`calls`, or `machine` and `moves`";
    let wanted: Wanted<'_> = serde_json::from_str(amends.get()).map_err(|error| bad(WHERE, expected, &error))?;
    let minted = |n: usize| format!("{run}-{}", n + 1);
    let step = |n: usize, name: String, args: Option<&RawValue>, id: Option<String>, expect_seq| Step {
        keyed: id.is_some(),
        id: id.unwrap_or_else(|| minted(n)),
        name,
        args: args.map_or("{}", RawValue::get).to_owned(),
        expect_seq,
        status: Status::Pending,
    };
    let (machine, steps): (_, Vec<Step>) = match (wanted.calls, wanted.machine, wanted.moves) {
        (Some(calls), None, None) => {
            let calls = calls.into_iter().enumerate();
            (None, calls.map(|(n, call)| step(n, call.tool, call.args, call.id, None)).collect())
        }
        (None, Some(machine), moves) => {
            is_id("forwardedProps.amends.machine", &machine)?;
            let moves = moves.unwrap_or_default().into_iter().enumerate();
            let step = |(n, it): (usize, MoveWish<'_>)| step(n, it.action, it.inputs, it.id, it.expect_seq);
            (Some(machine), moves.map(step).collect())
        }
        _ => return Err(unfit(WHERE, expected, Some(amends.get()))),
    };
    if machine.is_none() && steps.is_empty() {
        return Err(unfit("forwardedProps.amends.calls", "at least one call", None));
    }
    bound(&steps)?;
    Ok(Some(Plan { machine, steps, waiting: None, walk: None }))
}

fn bound(steps: &[Step]) -> Result<(), Box<Refusal>> {
    if steps.len() > STEPS_MAX {
        let words = format!("a run has at most {STEPS_MAX} steps");
        return Err(Box::new(Refusal::of(RefusalKind::TooLarge, words)));
    }
    let mut seen = BTreeSet::new();
    for step in steps {
        is_id("the id of a step", &step.id)?;
        if step.name.is_empty() {
            return Err(unfit("the name of a step", "a tool or an action", Some("")));
        }
        if !seen.insert(&step.id) {
            return Err(unfit("the id of a step", "an id of its own for each step", Some(&step.id)));
        }
    }
    Ok(())
}

fn answers(entries: Vec<Entry>) -> Result<Vec<Answer>, Box<Refusal>> {
    if entries.len() > ANSWERS_MAX {
        let words = format!("a run answers at most {ANSWERS_MAX} interrupts");
        return Err(Box::new(Refusal::of(RefusalKind::TooLarge, words)));
    }
    let mut seen = BTreeSet::new();
    let mut answers = Vec::new();
    for entry in entries {
        is_id("resume.interruptId", &entry.interrupt_id)?;
        if !seen.insert(entry.interrupt_id.clone()) {
            return Err(unfit("resume.interruptId", "each interrupt once", Some(&entry.interrupt_id)));
        }
        let cancelled = entry.status == EntryStatus::Cancelled;
        answers.push(Answer { interrupt: entry.interrupt_id, cancelled, payload: entry.payload });
    }
    Ok(answers)
}

fn is_id(name: &str, id: &str) -> Result<(), Box<Refusal>> {
    if id.is_empty() || id.chars().count() > ID_CHARS_MAX || id.chars().any(char::is_control) {
        return Err(unfit(
            name,
            &format!("1 to {ID_CHARS_MAX} characters, none of them a control character"),
            Some(id),
        ));
    }
    Ok(())
}

fn bad(field: &str, expected: &str, error: &serde_json::Error) -> Box<Refusal> {
    let place = if field.is_empty() { "the body" } else { field };
    let mut refusal = unfit(field, expected, None);
    refusal.message = format!("`{place}` cannot be read: {}", bounded(&error.to_string()));
    refusal
}

/// The refusal of a field.
pub fn unfit(field: &str, expected: &str, got: Option<&str>) -> Box<Refusal> {
    let message = format!("`{field}` does not fit: expected {expected}");
    let fault = ArgumentFault {
        field: field.to_owned(),
        expected: expected.to_owned(),
        got: got.map(bounded),
        nearest: Vec::new(),
    };
    Box::new(Refusal { details: vec![fault], ..Refusal::of(RefusalKind::InvalidArgument, message) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(forwarded: &str, more: &str) -> String {
        format!(r#"{{"threadId":"t","runId":"r","messages":[],"forwardedProps":{forwarded}{more}}}"#)
    }

    #[test]
    fn a_plan_of_calls_is_read_with_its_arguments_as_they_were_written() {
        let text = input(r#"{"amends":{"calls":[{"tool":"a","args":{"n":1.0}},{"tool":"b","id":"mine"}]},"x":1}"#, "");
        let plan = Input::read(&text).unwrap().wanted.unwrap();
        let steps: Vec<_> = plan.steps.iter().map(|step| (step.id.as_str(), step.args.as_str(), step.keyed)).collect();
        assert_eq!(steps, [("r-1", r#"{"n":1.0}"#, false), ("mine", "{}", true)]);
        assert_eq!(plan.machine, None);
    }

    #[test]
    fn a_plan_survives_its_way_through_a_client() {
        let text = input(
            r#"{"amends":{"machine":"order","moves":[{"action":"pay","inputs":{"n":12345678901234567890}}]}}"#,
            "",
        );
        let mut plan = Input::read(&text).unwrap().wanted.unwrap();
        let _ = plan.mark(0, Status::Waiting);
        let asked = vec![Asked { interrupt: "int_1".into(), key: None, schema: None }];
        let _ = plan.wait(Some(Waiting { asked, state: None }));
        let state = serde_json::json!({ "own": 1, "amends": plan });
        let again = Input::read(&input("null", &format!(r#","state":{state}"#))).unwrap();
        assert_eq!(again.carried, Some(plan));
        assert_eq!(again.state, Map::from_iter([("own".to_owned(), 1.into())]));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_field() {
        let many = vec![r#"{"tool":"a"}"#; STEPS_MAX + 1].join(",");
        let long = "x".repeat(ID_CHARS_MAX + 1);
        for (body, word) in [
            ("", "the body"),
            ("[]", "the body"),
            (r#"{"threadId":"t","runId":"r"}"#, "messages"),
            (r#"{"threadId":"t","runId":"r","messages":{}}"#, "messages"),
            (r#"{"threadId":"","runId":"r","messages":[]}"#, "threadId"),
            (r#"{"threadId":7,"runId":"r","messages":[]}"#, "invalid type"),
            (&format!(r#"{{"threadId":"{long}","runId":"r","messages":[]}}"#), "threadId"),
            (&input("7", ""), "forwardedProps"),
            (&input(r#"{"amends":{}}"#, ""), "forwardedProps.amends"),
            (&input(r#"{"amends":{"calls":[]}}"#, ""), "at least one"),
            (&input(r#"{"amends":{"calls":[{"tool":"a"}],"machine":"m"}}"#, ""), "forwardedProps.amends"),
            (&input(r#"{"amends":{"moves":[{"action":"a"}]}}"#, ""), "forwardedProps.amends"),
            (&input(r#"{"amends":{"calls":[{"tool":"a","arguments":{}}]}}"#, ""), "unknown field"),
            (&input(r#"{"amends":{"calls":[{"tool":"a","id":"1"},{"tool":"a","id":"1"}]}}"#, ""), "each step"),
            (&input(&format!(r#"{{"amends":{{"calls":[{many}]}}}}"#), ""), "at most"),
            (&input("{}", r#","state":"odd""#), "state"),
            (&input("{}", r#","state":{"amends":{"steps":"odd"}}"#), "state.amends"),
            (&input("{}", r#","resume":[{"interruptId":"i","status":"odd"}]"#), "the body"),
            (
                &input(
                    "{}",
                    r#","resume":[{"interruptId":"i","status":"resolved"},{"interruptId":"i","status":"resolved"}]"#,
                ),
                "once",
            ),
        ] {
            let refusal = Input::read(body).unwrap_err();
            assert!(refusal.message.contains(word), "{body}: {}", refusal.message);
        }
    }

    use super::super::plan::{Asked, Waiting};
}
