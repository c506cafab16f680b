//! The next move, in a sentence and as a call.

use amends_core::envelope::{Body, Trouble};
use amends_core::recovery::{NextCall, Template};
use amends_core::{Envelope, RefusalKind, WhoMustAct};
use serde_json::{Map, Value};

use super::names::{Names, Tool};
use super::read::SESSION;
use super::view::{Moved, Next, View, Waits};

/// How many moves a sentence names.
const NAMED_MAX: usize = 8;

/// What to do now, in a sentence.
pub fn hint(view: &View, names: &Names) -> String {
    let (machine, state) = (&view.machine, &view.state);
    let tool = |tool| names.own(tool).unwrap_or_default();
    if view.over {
        return format!(
            "The walk is over: `{machine}` ended in `{state}`. Nothing more can be done in it; call `{}` to begin again.",
            tool(Tool::Reset)
        );
    }
    let ways = ways(view, names);
    match &view.waits {
        Some(Waits::Open { action }) => format!(
            "`{action}` is being made. Wait for its answer, or call `{}` to stop it; nothing else can be done meanwhile.",
            tool(Tool::Cancel)
        ),
        Some(Waits::Unsettled { action, done: false }) => format!(
            "Whether `{action}` happened is being found out; nothing else can be done until then. Do not take it again; \
             look with `{}`, and tell the user if it takes long.",
            tool(Tool::Walk)
        ),
        Some(Waits::Unsettled { action, done: true }) => format!(
            "`{action}` was done, and nobody was told. Take `{action}` again with the same inputs: it is not done twice, \
             what it gave is applied."
        ),
        Some(Waits::Unknown { action }) => format!(
            "`{action}` may have happened, and nobody finds out any more: tell the user, who can settle it with `amends answer`. \
             Or take `{action}` again with the same inputs, which does nothing twice; or call `{}` to begin again, which \
             undoes nothing.",
            tool(Tool::Reset)
        ),
        Some(Waits::Unclear { action }) => format!(
            "`{action}` was done, and its machine cannot tell what follows from it. Do not do it again; tell the user, who can \
             have the machine mended. Or call `{}` to begin again, which undoes nothing.",
            tool(Tool::Reset)
        ),
        Some(Waits::Later { action, .. }) if view.next.is_empty() => {
            format!(
                "`{action}` can be taken again later, not before `waits.not_before`; nothing else can be done from `{state}`."
            )
        }
        Some(Waits::Later { action, .. }) => {
            format!(
                "`{action}` can be taken again later, not before `waits.not_before`. Until then, from `{state}`: {ways}."
            )
        }
        None if view.next.is_empty() => format!(
            "Nothing can be done from `{state}` of `{machine}` as it is. Tell the user, or call `{}` to begin again.",
            tool(Tool::Reset)
        ),
        None => format!("The state is `{state}`. Next: {ways}."),
    }
}

fn ways(view: &View, names: &Names) -> String {
    let mut ways: Vec<String> = view.next.iter().take(NAMED_MAX).map(|next| way(view, next, names)).collect();
    if view.next.len() > NAMED_MAX {
        ways.push(format!("{} more", view.next.len() - NAMED_MAX));
    }
    ways.join(", or ")
}

fn way(view: &View, next: &Next, names: &Names) -> String {
    let called = names.action(&view.machine, &next.action).unwrap_or(&next.action);
    let needs: Vec<String> = required(next).into_iter().map(|name| format!("`{name}`")).collect();
    if needs.is_empty() { format!("`{called}`") } else { format!("`{called}` with {}", needs.join(", ")) }
}

/// The inputs without which an action is not taken.
fn required(next: &Next) -> Vec<&str> {
    let required = next.schema.as_ref().and_then(|schema| schema.get("required")).and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The envelope of a move with the names of what is legal now and, in a refusal or an error that does not have one, the next call.
pub fn guided(envelope: &Envelope, moved: &Moved, names: &Names) -> Envelope {
    let mut guided = Envelope { valid_next_actions: Some(moved.view.legal()), ..envelope.clone() };
    if let Body::Refused { error } | Body::Error { error, .. } = &mut guided.body {
        guide(error, moved, names);
    }
    guided
}

fn guide(error: &mut Trouble, moved: &Moved, names: &Names) {
    let view = &moved.view;
    let next = next_of(error, view);
    let recovery = error.recovery.get_or_insert_default();
    if recovery.call.is_some() || recovery.template.is_some() {
        return;
    }
    let call = |tool: Tool, args: Map<String, Value>| Some(NextCall { tool: names.own(tool)?.to_owned(), args });
    match next {
        Some(Way::Look) => {
            let mut args = handle(view);
            args.insert("what".into(), Value::String("next".into()));
            recovery.call = call(Tool::Walk, args);
        }
        Some(Way::Reset) => recovery.call = call(Tool::Reset, handle(view)),
        Some(Way::Step) => recovery.template = template(moved, &recovery.fuzzy_matches, names),
        None => {}
    }
}

/// What helps after a move that was not made.
enum Way {
    /// To see where the walk is: it waits, or changed.
    Look,
    /// To begin again.
    Reset,
    /// To take an action.
    Step,
}

/// What helps after that; nothing where a person has to act first. What may have happened, or did, is never offered again.
fn next_of(error: &Trouble, view: &View) -> Option<Way> {
    let is = |kind: RefusalKind| kind.as_str() == error.kind;
    let steps = [RefusalKind::InvalidTransition, RefusalKind::UnknownAction, RefusalKind::ValidationFailed];
    let looks = [
        RefusalKind::StaleState,
        RefusalKind::InFlight,
        RefusalKind::Duplicate,
        RefusalKind::RetryLater,
        RefusalKind::ActionTimeout,
    ];
    if steps.into_iter().any(is) {
        let stuck = view.over || (view.next.is_empty() && view.waits.is_none());
        return Some(if stuck { Way::Reset } else { Way::Step });
    }
    if is(RefusalKind::ActionError) {
        let again = error.certainty.nothing_happened()
            && (error.retryable || error.who_must_act == WhoMustAct::Agent)
            && !view.next.is_empty();
        return Some(if again { Way::Step } else { Way::Look });
    }
    looks.into_iter().any(is).then_some(Way::Look)
}

/// The argument that names a walk. One that has not begun has no name.
fn handle(view: &View) -> Map<String, Value> {
    let named = (!view.session.as_str().is_empty()).then(|| Value::String(view.session.to_string()));
    named.into_iter().map(|session| (SESSION.to_owned(), session)).collect()
}

/// The call of a legal action: of the one that was asked for, the nearest to it, or the only one. It is never a whole call, since
/// which action to take is for the agent to say.
fn template(moved: &Moved, nearest: &[String], names: &Names) -> Option<Template> {
    let view = &moved.view;
    let named = |name: &str| view.next.iter().find(|next| next.action == name);
    let only = || view.next.first().filter(|_| view.next.len() == 1);
    let next = named(&moved.action).or_else(|| nearest.iter().find_map(|name| named(name))).or_else(only);
    let mut args = handle(view);
    let Some(next) = next else {
        let missing = if view.next.is_empty() { return None } else { vec!["action".to_owned()] };
        return Some(Template { tool: names.own(Tool::Step)?.to_owned(), args, missing });
    };
    if let Some(tool) = names.action(&view.machine, &next.action) {
        let (own, _) = super::read::extras(next.schema.as_ref());
        let args = args.into_iter().map(|(_, session)| (own.to_owned(), session)).collect();
        let missing = required(next).into_iter().map(str::to_owned).collect();
        return Some(Template { tool: tool.to_owned(), args, missing });
    }
    args.insert("action".into(), Value::String(next.action.clone()));
    let missing = required(next).into_iter().map(|name| format!("inputs.{name}")).collect();
    Some(Template { tool: names.own(Tool::Step)?.to_owned(), args, missing })
}
