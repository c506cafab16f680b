//! The next move, in a sentence and as a call.

use amends_core::envelope::{Body, Trouble};
use amends_core::id::{ActionName, MachineName};
use amends_core::recovery::{NextCall, Template};
use amends_core::{Envelope, Recovery, RefusalKind, SessionId, WhoMustAct};
use serde_json::{Map, Value};

use super::names::{Names, Tool};
use super::read::{SESSION, TEMPLATE_BYTES_MAX, extras};
use super::view::{Moved, Next, View, Waits};
use crate::Schema;

/// How many moves a sentence names.
const NAMED_MAX: usize = 8;

/// What to do now, in a sentence.
pub fn hint(view: &View, names: &Names) -> String {
    let (machine, state) = (&view.machine, &view.state);
    let tool = |tool| names.own(tool).unwrap_or_default();
    if view.is_nowhere() {
        let ways = ways(view, names);
        return format!(
            "No walk has begun, and there are several machines to begin with: name one. Each begins with one of {ways}."
        );
    }
    if view.over && !matches!(view.waits, Some(Waits::GivenUp(_))) {
        return format!(
            "The walk is over: `{machine}` ended in `{state}`. Nothing more can be done in it; call `{}` to begin again.",
            tool(Tool::Reset)
        );
    }
    let ways = ways(view, names);
    match &view.waits(names) {
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
        Some(Waits::GivenUp(given_up)) => {
            let words = given_up.words();
            let stays = if given_up.stays() > 0 { " Tell the user what stays; a person hears of it too." } else { "" };
            let then = match given_up.undone {
                Some(_) => format!("Call `{}` to begin again.", tool(Tool::Reset)),
                None => format!("Nothing can be done in it until that is over; look with `{}`.", tool(Tool::Walk)),
            };
            format!("The walk was given up: {words}.{stays} {then}")
        }
        Some(Waits::Drifted { why, resets: true }) => format!(
            "The walk does not go on: {why}. Call `{}` to begin again as `{}` is declared now, which undoes nothing.",
            tool(Tool::Reset),
            view.root
        ),
        Some(Waits::Drifted { why, resets: false }) => {
            format!("The walk does not go on: {why}. Tell the user, or begin another walk.")
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
    let called = names.called(&view.machine, &next.action);
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
    let mut guided = Envelope { valid_next_actions: Some(moved.view.offered(names)), ..envelope.clone() };
    if let Body::Refused { error } | Body::Error { error, .. } = &mut guided.body {
        guide(error, moved, names);
    }
    guided
}

fn guide(error: &mut Trouble, moved: &Moved, names: &Names) {
    let view = &moved.view;
    let next = next_of(error, view);
    if matches!(view.waits, Some(Waits::Drifted { resets: true, .. })) {
        // Who declares the machine made it another one; to begin again is for whoever walks it.
        error.who_must_act = WhoMustAct::Agent;
    }
    let recovery = error.recovery.get_or_insert_default();
    if recovery.call.is_some() || recovery.template.is_some() {
        return;
    }
    let call = |tool: Tool, args: Map<String, Value>| Some(NextCall { tool: names.own(tool)?.to_owned(), args });
    match next {
        Some(Way::Look) => recovery.call = call(Tool::Walk, looks(view)),
        Some(Way::Reset) => recovery.call = call(Tool::Reset, handle(view)),
        Some(Way::Step) => {
            recovery.template = template(moved, &recovery.fuzzy_matches, names);
            // Which of several tools to call is for the agent to say: it is shown them.
            if recovery.template.is_none() {
                recovery.call = call(Tool::Walk, looks(view));
            }
        }
        None => {}
    }
    for near in &mut recovery.fuzzy_matches {
        *near = names.called(&view.machine, near).to_owned();
    }
}

fn looks(view: &View) -> Map<String, Value> {
    let mut args = handle(view);
    args.insert("what".into(), Value::String("next".into()));
    args
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
        RefusalKind::UnknownName,
        RefusalKind::InvalidArgument,
        RefusalKind::TooLarge,
    ];
    if let Some(Waits::Drifted { resets, .. }) = &view.waits {
        return Some(if *resets { Way::Reset } else { Way::Look });
    }
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
        let tools = view.next.iter().any(|next| names.action(&view.machine, &next.action).is_some());
        if view.next.is_empty() || tools || view.is_nowhere() {
            return None;
        }
        return Some(Template { tool: names.own(Tool::Step)?.to_owned(), args, missing: vec!["action".to_owned()] });
    };
    if let Some(tool) = names.action(&view.machine, &next.action) {
        let (own, _) = extras(next.schema.as_ref());
        let args = args.into_iter().map(|(_, session)| (own.to_owned(), session)).collect();
        let missing = required(next).into_iter().map(str::to_owned).collect();
        return Some(Template { tool: tool.to_owned(), args, missing });
    }
    args.insert("action".into(), Value::String(next.action.clone()));
    let missing = required(next).into_iter().map(|name| format!("inputs.{name}")).collect();
    Some(Template { tool: names.own(Tool::Step)?.to_owned(), args, missing })
}

/// The way on after inputs that do not fit: the same action with those that do, and the names of the others. An input that was
/// meant and is left out would make another move of it, so that every one that was not understood is to be said again. So is one
/// that is private, since a refusal is recorded.
pub fn mended(
    schema: &Schema,
    inputs: &Value,
    private: &Map<String, Value>,
    session: &SessionId,
    (machine, action): (&MachineName, &ActionName),
    names: &Names,
) -> Option<Recovery> {
    let own = names.action(machine, action.as_str());
    let tool = own.or_else(|| names.own(Tool::Step))?.to_owned();
    let mut recovery = schema.recovery(&tool, inputs);
    let path = |name: &String| if own.is_some() { name.clone() } else { format!("inputs.{name}") };
    let whole = |inputs: Map<String, Value>| {
        let mut args = inputs;
        let mut handle = SESSION;
        if own.is_some() {
            handle = extras(Some(schema.source())).0;
        } else {
            args = Map::from_iter([("action".to_owned(), Value::String(action.to_string()))])
                .into_iter()
                .chain((!args.is_empty()).then(|| ("inputs".to_owned(), Value::Object(args))))
                .collect();
        }
        args.insert(handle.to_owned(), Value::String(session.to_string()));
        args
    };
    let large = |args: &Map<String, Value>| Value::Object(args.clone()).to_string().len() > TEMPLATE_BYTES_MAX;
    let (args, mut missing) = match (recovery.call.take(), recovery.template.take()) {
        (Some(call), _) if private.is_empty() && !large(&call.args) => {
            recovery.call = Some(NextCall { args: whole(call.args), ..call });
            return Some(recovery);
        }
        (Some(call), _) => (call.args, Vec::new()),
        (None, Some(template)) => (template.args, template.missing),
        (None, None) => (Map::new(), Vec::new()),
    };
    let known = schema.source().get("properties").and_then(Value::as_object);
    let known: Vec<&String> = known.into_iter().flat_map(|known| known.keys()).collect();
    let unsaid = |name: &&String| !args.contains_key(*name);
    missing.extend(recovery.fuzzy_matches.iter().filter(|name| known.contains(name)).filter(unsaid).cloned());
    if missing.is_empty() {
        missing = known.into_iter().filter(unsaid).cloned().collect();
    }
    let large = large(&args);
    let (again, args): (Map<_, _>, Map<_, _>) =
        args.into_iter().partition(|(name, value)| large || private.get(name) == Some(value));
    missing.extend(again.into_iter().map(|(name, _)| name));
    let mut paths: Vec<String> = Vec::new();
    for path in missing.iter().map(path) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    recovery.template = Some(Template { tool, args: whole(args), missing: paths });
    Some(recovery)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recovery(inputs: Value, tools: bool) -> Value {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": { "amount": { "type": "integer" }, "memo": { "type": "string" }, "fast": {} },
        });
        let schema = Schema::from_value(schema).unwrap();
        let (machine, action) = (MachineName::new("m"), ActionName::new("pay"));
        let own = if tools { vec![(machine.clone(), action.clone())] } else { Vec::new() };
        let names = Names::assign(&Tool::ALL, &own, |_| false);
        let private = Map::from_iter([("memo".to_owned(), json!("secret"))]);
        let private = if inputs["memo"] == "secret" { private } else { Map::new() };
        let mended = mended(&schema, &inputs, &private, &SessionId::new("ses_1"), (&machine, &action), &names);
        serde_json::to_value(mended.unwrap()).unwrap()
    }

    #[test]
    fn what_is_right_of_the_inputs_is_kept_and_what_is_not_is_to_be_said_again() {
        let wrong = json!({ "amount": "five", "memo": "for ann" });
        let args = json!({ "action": "pay", "inputs": { "memo": "for ann" }, "session": "ses_1" });
        let step = json!({ "tool": "step", "args": args, "missing": ["inputs.amount"] });
        assert_eq!(recovery(wrong.clone(), false), json!({ "template": step }));
        let own = json!({ "tool": "pay", "args": { "memo": "for ann", "session": "ses_1" }, "missing": ["amount"] });
        assert_eq!(recovery(wrong, true), json!({ "template": own }));
    }

    #[test]
    fn an_input_that_is_not_known_is_never_just_left_out() {
        let near = recovery(json!({ "ammount": 5 }), false);
        assert_eq!(near["call"]["args"]["inputs"], json!({ "amount": 5 }), "{near}");
        let both = recovery(json!({ "ammount": 5, "memo": 7 }), false);
        assert_eq!(both["template"]["missing"], json!(["inputs.memo", "inputs.amount"]), "{both}");
        let far = recovery(json!({ "quantity": 5, "memo": "x" }), false);
        assert_eq!(far["template"]["args"]["inputs"], json!({ "memo": "x" }), "{far}");
        assert_eq!(far["template"]["missing"], json!(["inputs.amount", "inputs.fast"]), "{far}");
        let huge = recovery(json!({ "amount": "five", "memo": "x".repeat(TEMPLATE_BYTES_MAX) }), true);
        assert_eq!(huge["template"]["args"], json!({ "session": "ses_1" }));
        assert_eq!(huge["template"]["missing"], json!(["amount", "memo"]));
        let private = recovery(json!({ "amount": "five", "memo": "secret" }), true);
        assert_eq!(private["template"]["missing"], json!(["amount", "memo"]), "it is recorded: {private}");
        assert!(!private.to_string().contains("secret"), "{private}");
    }
}
