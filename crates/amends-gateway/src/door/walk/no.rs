//! Our No to a call that does not say enough, or what there is not, with the same call in which that is to be said.

use amends_core::failure::bounded;
use amends_core::recovery::Template;
use amends_core::refusal::ArgumentFault;
use amends_core::{Recovery, Refusal, RefusalKind, SessionId};
use amends_wire::schema::PRESENT;
use serde_json::{Map, Value};

use crate::walks::Wish;

/// The refusal of a step that does not say with which machine to begin, with the call in which it does.
pub(super) fn to_be_named(
    mut refusal: Box<Refusal>,
    tool: &str,
    action: &str,
    gave: bool,
    roots: usize,
) -> Box<Refusal> {
    let args = Map::from_iter([("action".to_owned(), Value::String(action.to_owned()))]);
    // Which of the inputs are private is for the machine to say, so that none is said again here.
    // Where there is only one machine, the tool takes no name of one.
    let machine = (roots > 1).then_some("machine");
    let missing = machine.into_iter().chain(gave.then_some("inputs")).map(str::to_owned).collect();
    let template = Template { tool: tool.to_owned(), args, missing };
    refusal.recovery = Some(Recovery { template: Some(template), ..Recovery::default() });
    refusal
}

/// The refusal of an action that is taken only within a walk that has begun, by somebody who has none.
pub(super) fn to_be_placed(tool: &str, action: &str) -> Box<Refusal> {
    let words = format!("`{}` is taken within a walk that has come to it: name the walk", bounded(action));
    let mut refusal = unfit(words, "session", PRESENT, None, Vec::new());
    let template = Template { tool: tool.to_owned(), args: Map::new(), missing: vec!["session".to_owned()] };
    refusal.recovery = Some(Recovery { template: Some(template), ..Recovery::default() });
    refusal
}

/// The same call of a walk's tool, with one argument said otherwise.
pub(super) fn again_with(tool: &str, session: &SessionId, missing: &str) -> Recovery {
    let args = Map::from_iter([("session".to_owned(), Value::String(session.to_string()))]);
    let template = Template { tool: tool.to_owned(), args, missing: vec![missing.to_owned()] };
    Recovery { template: Some(template), ..Recovery::default() }
}

/// The same call of a walk's tool, with the walk it is to be of.
pub(super) fn of_a_walk(tool: &str, wish: &Wish) -> Recovery {
    let seq = match wish {
        Wish::Fork(seq) => seq.map(|seq| ("seq".to_owned(), Value::from(seq))),
        Wish::Step { .. } | Wish::Reset | Wish::Cancel => None,
    };
    let template =
        Template { tool: tool.to_owned(), args: seq.into_iter().collect(), missing: vec!["session".to_owned()] };
    Recovery { template: Some(template), ..Recovery::default() }
}

pub(super) fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}

pub(super) fn unfit(
    message: String,
    field: &str,
    expected: &str,
    got: Option<&str>,
    nearest: Vec<String>,
) -> Box<Refusal> {
    let mut refusal = Refusal::of(RefusalKind::ValidationFailed, message);
    let got = got.map(bounded);
    refusal.details = vec![ArgumentFault { field: field.to_owned(), expected: expected.to_owned(), got, nearest }];
    Box::new(refusal)
}
