//! *Run*: something run through the AG-UI door, in the browser, with what is asked on the way.

use hyper::Response;
use maud::html;
use serde_json::{Value, json};

use super::super::body::Body;
use super::Asked;
use super::frame::Place;

pub(super) fn page(asked: &Asked<'_>) -> Response<Body> {
    let gateway = &asked.door.gateway;
    let listing = gateway.catalogue.now();
    let plan = match listing.machines().roots().first() {
        Some(machine) => {
            let config = gateway.config();
            let first = config.machines.get(machine).and_then(|machine| {
                let legal = machine.moves(&machine.begin());
                legal.first().map(|first| first.name.to_string())
            });
            json!({ "machine": machine, "moves": first.map(|action| json!({ "action": action, "inputs": {} })) })
        }
        None => json!({ "calls": [{ "tool": "", "args": {} }] }),
    };
    let plan = serde_json::to_string_pretty(&listed(plan)).unwrap_or_default();
    let needs_token = gateway.config().auth.is_asked_for();
    asked.frame(Place::Run, "Run").with(html! {
        p {
            "Calls tools, or moves through a machine, as an AG-UI client does at " code { "/agui" } ". What is done here is done: it is "
            "recorded, and asked about, as from any agent."
        }
        noscript { p.notice { "This page needs JavaScript." } }
        form #run {
            label for="plan" { "What to run: " code { "calls" } ", or a " code { "machine" } " and its " code { "moves" } }
            textarea #plan rows="12" spellcheck="false" { (plan) }
            @if needs_token {
                label for="token" { "The token of an agent, which is not kept" }
                input #token type="password" autocomplete="off";
            }
            p {
                button { "Run" }
                " "
                button #stop type="button" hidden { "Stop" }
            }
        }
        p.notice #how role="status" hidden {}
        section #asked aria-live="polite" aria-label="What is asked" {}
        section {
            h2 { "Events" }
            ol #events.path {}
        }
        section {
            h2 { "State" }
            pre #state { "{}" }
        }
        script src="/console/run.js" defer {}
    })
}

/// A plan whose moves are a list.
fn listed(mut plan: Value) -> Value {
    if let Some(moves) = plan.get_mut("moves") {
        *moves = match moves.take() {
            Value::Null => json!([]),
            one => json!([one]),
        };
    }
    plan
}
