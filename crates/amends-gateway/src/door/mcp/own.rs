//! What the gateway says of itself where it is the server.

use amends_wire::mcp::{Era, era, tools};
use serde_json::{Value, json};

use crate::catalogue::Listing;
use crate::driver::REVERSE_TOOL;
use crate::gateway::Gateway;
use crate::upstream::Health;

/// The answer to `initialize`.
pub(super) fn initialize(gateway: &Gateway, asked: &str) -> String {
    json!({
        "protocolVersion": era::negotiated(asked),
        "capabilities": capabilities(gateway),
        "serverInfo": info(),
        "instructions": INSTRUCTIONS,
    })
    .to_string()
}

/// The answer to `server/discover`.
pub(super) fn discover(gateway: &Gateway) -> String {
    let result = json!({
        "supportedVersions": era::VERSIONS,
        "capabilities": capabilities(gateway),
        "instructions": INSTRUCTIONS,
        "_meta": { era::SERVER_INFO: info() },
    });
    era::stamped(&result.to_string(), "server/discover", Era::Modern)
}

/// The answer to `tools/list`: every tool of every upstream, in the order of the names.
pub(super) fn tools_list(gateway: &Gateway, era: Era) -> String {
    let listing = gateway.catalogue.now();
    let own = reverse_entry(&listing);
    let entries = listing.tools().map(|tool| tool.entry.as_str()).chain(own.as_deref());
    let list = tools::list(entries, None);
    era::stamped(&list, "tools/list", era)
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

/// Our own tools, and whatever else a single upstream offers, which is passed through.
fn capabilities(gateway: &Gateway) -> Value {
    let mut capabilities = json!({ "tools": {} });
    let mut upstreams = gateway.upstreams.values();
    if let (Some(only), None) = (upstreams.next(), upstreams.next())
        && let Health::Ready { greeting, .. } = &*only.health().borrow()
        && let Ok(greeting) = serde_json::from_str::<Value>(greeting)
        && let Some(offered) = greeting.get("capabilities").and_then(Value::as_object)
    {
        for name in ["prompts", "completions"] {
            if let Some(offer) = offered.get(name) {
                capabilities[name] = offer.clone();
            }
        }
        if offered.contains_key("resources") {
            capabilities["resources"] = json!({});
        }
    }
    capabilities
}
