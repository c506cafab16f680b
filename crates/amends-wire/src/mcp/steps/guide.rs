//! The next move, in a sentence and as a call.

use amends_core::envelope::{Body, Trouble};
use amends_core::recovery::{NextCall, Template};
use amends_core::{Envelope, RefusalKind, WhoMustAct};
use serde_json::{Map, Value};

use super::names::{Names, Tool};
use super::read::SESSION;
use super::retake::Retake;
use super::view::{Moved, Next, View, Waits};

/// How many moves a sentence names.
const NAMED_MAX: usize = 8;

/// What to do now, in a sentence, and what was done of what was not made.
pub fn hint(view: &View, names: &Names) -> String {
    let mut hint = next_move(view, names);
    for half in view.halves.iter().take(NAMED_MAX) {
        let (done, action) = (half.done.join("`, `"), names.called(&half.machine, half.action.as_str()));
        hint.push_str(&match !view.over && half.machine == view.machine {
            true => format!(
                " Of `{action}`, `{done}` was done, and is not done again where `{action}` is taken again with the same \
                 inputs; with others it would be."
            ),
            false => format!(" Of `{action}`, which was not made, `{done}` was done."),
        });
    }
    hint
}

fn next_move(view: &View, names: &Names) -> String {
    let (machine, state) = (&view.machine, &view.state);
    let tool = |tool| names.own(tool).unwrap_or_default();
    if view.is_nowhere() {
        let ways = ways(view, names);
        return format!(
            "No walk has begun, and there are several machines to begin with: name one. Each begins with one of {ways}."
        );
    }
    let undone = match &view.waits {
        Some(Waits::Undone { undone }) => format!(
            "Of what was done in this walk, {undone} was undone since: what its fields tell of that is not so any more. Tell the \
             user, or call `{}` to begin again. ",
            tool(Tool::Reset)
        ),
        _ => String::new(),
    };
    if view.over && !matches!(view.waits, Some(Waits::GivenUp(_))) {
        return format!(
            "{undone}The walk is over: `{machine}` ended in `{state}`. Nothing more can be done in it; call `{}` to begin again.",
            tool(Tool::Reset)
        );
    }
    let ways = ways(view, names);
    match &view.waits(names) {
        Some(Waits::Open { action, asked: true }) => format!(
            "A person is asked whether `{action}` may be done; nothing was done yet. Tell the user, and take `{action}` again \
             later with the same inputs, or call `{}` to give it up; nothing else can be done meanwhile.",
            tool(Tool::Cancel)
        ),
        Some(Waits::Open { action, asked: false }) => format!(
            "`{action}` is being made. Wait for its answer, or call `{}` to stop it; nothing else can be done meanwhile.",
            tool(Tool::Cancel)
        ),
        Some(Waits::Unsettled { action, done: false, asked: true }) => format!(
            "Whether `{action}` happened is not known, and a person is asked; nothing else can be done until they answer. Do not \
             take it again; tell the user, and look with `{}` later.",
            tool(Tool::Walk)
        ),
        Some(Waits::Unsettled { action, done: false, asked: false }) => format!(
            "Whether `{action}` happened is being found out; nothing else can be done until then. Do not take it again; \
             look with `{}`, and tell the user if it takes long.",
            tool(Tool::Walk)
        ),
        Some(Waits::Unsettled { action, done: true, .. }) => format!(
            "`{action}` was done, and nobody was told. Take `{action}` again with the same inputs: it is not done twice, \
             what it gave is applied."
        ),
        Some(Waits::Unknown { action }) => format!(
            "`{action}` may have happened, and nobody finds out any more: tell the user, who can settle it with `amends answer` where `amends queue` asks about it. \
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
        None | Some(Waits::Undone { .. }) if view.next.is_empty() => format!(
            "{undone}Nothing can be done from `{state}` of `{machine}` as it is. Tell the user, or call `{}` to begin again.",
            tool(Tool::Reset)
        ),
        None | Some(Waits::Undone { .. }) => format!("{undone}The state is `{state}`. Next: {ways}."),
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
    let mut next = next_of(error, view);
    // A tool that there is not may be an action's that is.
    let near = error.recovery.iter().flat_map(|recovery| &recovery.fuzzy_matches);
    let offered = view.offered(names);
    if error.kind == RefusalKind::UnknownName.as_str() && near.into_iter().any(|near| offered.contains(near)) {
        next = Some(Way::Step);
    }
    if matches!(view.waits, Some(Waits::Drifted { resets: true, .. })) {
        // Who declares the machine made it another one; to begin again is for whoever walks it.
        error.who_must_act = WhoMustAct::Agent;
    }
    if error.kind == RefusalKind::SchemaDrift.as_str() && view.begins_again() {
        error.who_must_act = WhoMustAct::Agent;
    }
    let asked = matches!(
        &view.waits,
        Some(Waits::Open { asked: true, .. } | Waits::Unsettled { done: false, asked: true, .. })
    );
    if error.kind == RefusalKind::InFlight.as_str() && asked {
        error.who_must_act = WhoMustAct::Person;
    }
    let stays = matches!(&view.waits, Some(Waits::Unsettled { .. } | Waits::Unknown { .. } | Waits::Unclear { .. }));
    let waits_in_vain = asked || stays;
    if error.kind == RefusalKind::InFlight.as_str() && waits_in_vain {
        // It is not time that settles it.
        (error.retryable, error.retry_after_ms) = (false, None);
    }
    let asked = error.clone();
    let recovery = error.recovery.get_or_insert_default();
    if recovery.call.is_some() || recovery.template.is_some() {
        return;
    }
    let call = |tool: Tool, args: Map<String, Value>| Some(NextCall { tool: names.own(tool)?.to_owned(), args });
    match next {
        Some(Way::Look) => recovery.call = call(Tool::Walk, looks(view)),
        Some(Way::Reset) => recovery.call = call(Tool::Reset, handle(view)),
        Some(Way::Step) => {
            recovery.template = template(&asked, moved, &recovery.fuzzy_matches, names);
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
        RefusalKind::MalformedName,
        RefusalKind::TooLarge,
    ];
    if let Some(Waits::Drifted { resets, .. }) = &view.waits {
        return Some(if *resets { Way::Reset } else { Way::Look });
    }
    if is(RefusalKind::SchemaDrift) && view.over {
        return Some(if view.begins_again() { Way::Reset } else { Way::Look });
    }
    if steps.into_iter().any(is) {
        let stuck = view.over || (view.next.is_empty() && matches!(view.waits, None | Some(Waits::Undone { .. })));
        return Some(if stuck { Way::Reset } else { Way::Step });
    }
    if is(RefusalKind::ActionError) {
        let again = error.certainty.nothing_happened()
            && (error.retryable || error.who_must_act == WhoMustAct::Agent)
            && !view.next.is_empty();
        return Some(if again { Way::Step } else { Way::Look });
    }
    // What was stopped and may have happened is found out; where that led is seen there.
    let doubtful = matches!(view.waits, Some(Waits::Unsettled { .. }));
    (doubtful || looks.into_iter().any(is)).then_some(Way::Look)
}

/// The argument that names a walk. One that has not begun has no name.
fn handle(view: &View) -> Map<String, Value> {
    let named = (!view.session.as_str().is_empty()).then(|| Value::String(view.session.to_string()));
    named.into_iter().map(|session| (SESSION.to_owned(), session)).collect()
}

/// The call of a legal action: of the one that was asked for, the nearest to it, or the only one, with what fits it of what was
/// given. It is never a whole call, since which action to take is for the agent to say.
fn template(error: &Trouble, moved: &Moved, nearest: &[String], names: &Names) -> Option<Template> {
    let view = &moved.view;
    let is = |next: &Next, name: &str| next.action == name || names.action(&view.machine, &next.action) == Some(name);
    let named = |name: &str| view.next.iter().find(|next| is(next, name));
    let meant = named(&moved.action).or_else(|| nearest.iter().find_map(|name| named(name)));
    let Some(next) = meant.or_else(|| view.next.first().filter(|_| view.next.len() == 1)) else {
        let tools = view.next.iter().any(|next| names.action(&view.machine, &next.action).is_some());
        if view.next.is_empty() || tools || view.is_nowhere() {
            return None;
        }
        let missing = vec!["action".to_owned()];
        return Some(Template { tool: names.own(Tool::Step)?.to_owned(), args: handle(view), missing });
    };
    let retake = Retake {
        session: &view.session,
        machine: &view.machine,
        action: &next.action,
        schema: next.schema.as_ref(),
        names,
    };
    let given = moved.given.as_ref();
    // What failed for what it was given is not given the same again.
    match error.kind == RefusalKind::ActionError.as_str() && !error.retryable {
        true if meant.is_some() => retake.otherwise(given),
        true => retake.fitting(None, false),
        false => retake.fitting(given, meant.is_some()),
    }
}
