//! Calls of what is no tool of ours and yet means a walk: of an action that has no tool any more, of a tool that only machines
//! call, and of an action's tool that is misspelt.

use amends_core::failure::bounded;
use amends_core::nearest::nearest;
use amends_core::{Refusal, RefusalKind, SessionId};
use amends_wire::mcp::ToolCall;
use amends_wire::mcp::steps::{EXPECT_SEQ, Given, Moved, SESSION, Tool, Wanted, read_action, session_of};
use serde_json::{Map, Value};

use super::{Asker, Came, call as step, instead};
use crate::catalogue::{Listing, names, schema};
use crate::driver::Listener;
use crate::walks;

/// What is to be done with a call of a tool that is none of ours.
pub(crate) enum Stray {
    /// A walk answers it.
    Came(Came),
    /// It goes where all others go. A refusal of it says what could be done in this walk.
    Passes(Listener, Option<Box<Moved>>),
}

/// Finds out whether a call that is of none of our tools means a walk.
pub(crate) async fn stray(asker: &Asker<'_>, call: &ToolCall<'_>, listener: Listener) -> Stray {
    let listing = asker.gateway.catalogue.now();
    let (machines, name) = (listing.machines(), call.name());
    let enclosed = machines.encloses(name);
    if listing.find(name).is_some() && !enclosed {
        return Stray::Passes(listener, None);
    }
    let named = session_of(call.arguments()).or_else(|| call.meta().ok().and_then(|meta| meta.session.clone()));
    if machines.is_empty() && named.is_none() {
        return Stray::Passes(listener, None);
    }
    let meant = named.clone().map(SessionId::new).or_else(|| asker.own.and_then(|own| own.meant(asker.gateway)));
    if let Some(meant) = &meant
        && let Some(wanted) = kept(asker, &listing, call, meant).await
    {
        return Stray::Came(step(asker, call, wanted, listener).await);
    }
    let config = asker.gateway.config();
    let near = nearest(name, machines.listed());
    // An action that is taken by the tool for all of them, or a tool that only machines call and whose name was nearly said.
    let acts = || config.machines.all().any(|machine| machine.action(name).is_some());
    let takes = machines.names().own(Tool::Step).filter(|_| listing.find(name).is_none() && acts());
    let meant = match enclosed {
        true => Some(name.to_owned()),
        false => machines.nearly(name).filter(|_| takes.is_none()),
    };
    let refusal = match (takes, &meant) {
        (Some(step), _) => Some(no_tool(name, step)),
        (None, Some(meant)) => machines.refusal(meant, &config.machines).map(|refusal| misspelt(refusal, name, meant)),
        (None, None) => None,
    };
    // Where actions are tools, a name that is near to none is an action that there is not. So it is for whoever walks.
    let walks = || named.is_some() || asker.own.is_some_and(|own| own.last().is_some());
    let tools = || machines.listed().any(|listed| machines.names().find_action(listed).is_some());
    if refusal.is_none() && near.is_empty() && !walks() && !tools() {
        return Stray::Passes(listener, None);
    }
    let any = machines.listed().next().unwrap_or_default();
    let Some(mut moved) = instead(asker.gateway, asker.principal, asker.own, any, named.as_deref()).await else {
        return Stray::Passes(listener, None);
    };
    moved.given = Some(given(call));
    let Some(mut refusal) = refusal else {
        moved.action = name.to_owned();
        return Stray::Passes(listener, Some(moved));
    };
    if takes.is_some() {
        moved.action = name.to_owned();
        refusal = elsewhere(refusal, &moved);
    } else if let Some(action) = meant.and_then(|tool| machines.encloser(&tool)) {
        moved.action = action.to_string();
        let begun = !moved.view.session.as_str().is_empty();
        // What the walk offers is the way on; its beginning is known without it.
        if begun || !moved.view.legal().contains(&moved.action) {
            refusal.recovery = None;
        }
        refusal = elsewhere(refusal, &moved);
    }
    Stray::Came(asker.refused(name, Box::new(refusal), Some(moved)))
}

/// The action of a walk that goes by what was declared before, by the name its tool had then.
async fn kept(
    asker: &Asker<'_>,
    listing: &Listing,
    call: &ToolCall<'_>,
    meant: &SessionId,
) -> Option<Result<Wanted, Box<Refusal>>> {
    let seen = walks::look_at(asker.gateway, asker.principal, meant).await.ok()?;
    let taken = |name: &str| listing.find(name).is_some() && !listing.machines().encloses(name);
    let then = names(&seen.machines, taken);
    let (machine, action) = then.find_action(call.name())?;
    let (_, declared) = seen.machines.get(machine)?.action(action.as_str())?;
    let schema = schema(declared, |tool| listing.find(tool.as_str()).cloned());
    let wanted = read_action(call.name(), machine.as_str(), action.as_str(), schema.as_ref(), call.arguments());
    Some(wanted.map(|wanted| match wanted {
        // It is taken in that walk: there may be no such machine to begin with.
        Wanted::Step { action, inputs, session, expect_seq, .. } => {
            let session = session.or_else(|| Some(meant.to_string()));
            Wanted::Step { machine: None, action, inputs, session, expect_seq }
        }
        other => other,
    }))
}

/// What the agent gave, but for what is ours.
fn given(call: &ToolCall<'_>) -> Given {
    let given: Map<String, Value> =
        call.arguments().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let theirs = |name: &str| name != SESSION && name != EXPECT_SEQ;
    let inputs = given.into_iter().filter(|(name, _)| theirs(name)).collect();
    Given { inputs, withheld: Vec::new() }
}

/// The refusal of a call of an action as if it were a tool: it is taken by the tool for all of them.
fn no_tool(name: &str, step: &str) -> Refusal {
    let words =
        format!("there is no tool `{name}`; the action of that name is taken with `{step}`", name = bounded(name));
    Refusal::of(RefusalKind::InvalidTransition, words)
}

/// The refusal of a tool that only machines call, also where its name was not quite said.
fn misspelt(mut refusal: Refusal, name: &str, meant: &str) -> Refusal {
    if meant != name {
        refusal.message = format!("there is no tool `{}`, did you mean `{meant}`? {}", bounded(name), refusal.message);
    }
    refusal
}

/// The refusal of a tool that only an action calls, which says whether that action can be taken now.
fn elsewhere(mut refusal: Refusal, moved: &Moved) -> Refusal {
    let view = &moved.view;
    if !view.is_nowhere() && !view.legal().contains(&moved.action) {
        refusal.message.push_str(&format!("; `{}` cannot be taken from `{}`", moved.action, view.state));
    }
    refusal
}
