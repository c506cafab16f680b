//! What the gateway says of itself where it is the server.

use std::borrow::Cow;

use amends_wire::mcp::lists::Kind;
use amends_wire::mcp::steps::Tool;
use amends_wire::mcp::{Era, era, tasks};
use serde_json::{Value, json};

use crate::catalogue::Listing;
use crate::driver::REVERSE_TOOL;
use crate::gateway::Gateway;
use crate::router;
use crate::router::page::{self, BadCursor};

/// The answer to `initialize`.
pub(super) fn initialize(gateway: &Gateway, asked: &str) -> String {
    json!({
        "protocolVersion": era::negotiated(asked),
        "capabilities": capabilities(gateway, Era::Legacy),
        "serverInfo": info(),
        "instructions": instructions(gateway),
    })
    .to_string()
}

/// The answer to `server/discover`.
pub(super) fn discover(gateway: &Gateway) -> String {
    let result = json!({
        "supportedVersions": era::VERSIONS,
        "capabilities": capabilities(gateway, Era::Modern),
        "instructions": instructions(gateway),
        "_meta": { era::SERVER_INFO: info() },
    });
    era::stamped(&result.to_string(), "server/discover", Era::Modern)
}

/// A page of a list: what every upstream has, and what we have ourselves.
pub(super) fn list(gateway: &Gateway, kind: Kind, cursor: Option<&str>, era: Era) -> Result<String, BadCursor> {
    let listing = gateway.catalogue.now();
    let own = reverse_entry(&listing).filter(|_| kind == Kind::Tools).map(|entry| (REVERSE_TOOL, Cow::Owned(entry)));
    let page = page::page(kind, listing.entries(kind).chain(own), cursor, &gateway.secret)?;
    Ok(era::stamped(&page, kind.method(), era))
}

/// Our own tool that redeems tokens, where some tool gives any out.
pub(super) fn reverse_entry(listing: &Listing) -> Option<String> {
    let reversible = listing.tools().any(|tool| tool.rules.contract.reverse.is_some());
    let entry = json!({
        "name": REVERSE_TOOL,
        "title": "Undo a call",
        "description": "Undoes an earlier call with the token that its answer gave. A token works once, until its time \
                        is over. Whether it worked is said like any other call's outcome.",
        "inputSchema": {
            "type": "object",
            "properties": { "token": { "type": "string", "description": "The token, `rev_…`, from the answer." } },
            "required": ["token"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true },
    });
    (reversible && listing.find(REVERSE_TOOL).is_none()).then(|| entry.to_string())
}

const INSTRUCTIONS: &str = "Every failed call says what happened, whether anything changed, and the next move. \
    Read `error.certainty`, `error.safe_to_repeat` and `error.recovery` before calling again.";

fn info() -> Value {
    json!({ "name": "amends", "version": env!("CARGO_PKG_VERSION") })
}

/// What we can do. Of an upstream that is alone, and whose names are as they are, that is all it says it can.
fn capabilities(gateway: &Gateway, era: Era) -> Value {
    let mut all = router::capabilities::capabilities(gateway.upstreams().values().map(|upstream| &**upstream));
    if let Some(greeting) = router::alone(gateway).and_then(|only| only.news.greeting())
        && let Some(offered) = greeting.get("capabilities").and_then(Value::as_object)
    {
        for (name, offer) in offered {
            if all.get(name).is_none() {
                all[name] = offer.clone();
            }
        }
    }
    if !gateway.catalogue.now().machines().is_empty() {
        all["resources"] = json!({ "listChanged": true, "subscribe": true });
    }
    if gateway.catalogue.now().tools().any(|tool| tool.rules.contract.approval.is_some()) {
        // A call that waits for a person can be a task of ours.
        match era {
            Era::Legacy if all.get("tasks").is_none() => {
                all["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
            }
            Era::Modern if all["extensions"].get(tasks::EXTENSION).is_none() => {
                all["extensions"][tasks::EXTENSION] = json!({});
            }
            Era::Legacy | Era::Modern => {}
        }
    }
    all
}

fn instructions(gateway: &Gateway) -> String {
    let upstreams = gateway.upstreams();
    let listing = gateway.catalogue.now();
    let mut ours = INSTRUCTIONS.to_owned();
    if !listing.machines().is_empty() {
        let step = listing.machines().names().own(Tool::Step);
        let step = step.filter(|step| listing.machines().listed().any(|listed| listed == *step));
        let step = step.map(|step| format!(" with `{step}`")).unwrap_or_default();
        ours.push_str(&format!(
            " Some work goes in a declared order: take its actions{step}, and go by `valid_next_actions` in every answer."
        ));
    }
    router::capabilities::instructions(&ours, upstreams.values().map(|upstream| &**upstream))
}
