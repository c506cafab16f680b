//! `server-everything`, wrapped.

use serde_json::json;

use crate::servers::{CLIENTS, everything, has_heard, names, questions, settled, words, wrapped};
use crate::support::client::Client;
use crate::support::{Place, eventually};

#[test]
fn every_client_gets_from_a_wrapped_server_what_it_gets_from_the_server() {
    for (sdk, era) in CLIENTS {
        let place = Place::new();
        let mut direct = Client::stdio(sdk, era, &words(&everything()));
        let mut through = Client::stdio(sdk, era, &words(&wrapped(&place, &everything())));
        let info = json!({ "op": "info" });
        assert_eq!(settled(through.run(info.clone())), settled(direct.run(info)), "{sdk:?}");
        for (method, list) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
            assert_eq!(names(&mut through, method, list), names(&mut direct, method, list), "{sdk:?} {method}");
        }
        for question in questions("") {
            let (expected, found) = (direct.run(question.clone()), through.run(question.clone()));
            assert_eq!(expected["ok"], true, "{sdk:?} {question}: {expected}");
            if question["tool"] == "trigger-long-running-operation" {
                assert!(found["progress"].to_string().starts_with("[1,2,3"), "{sdk:?}: {found}");
            }
            assert_eq!(settled(found), settled(expected), "{sdk:?} {question}");
        }
        place.assert_verified();
    }
}

#[test]
fn every_client_hears_through_a_wrap_what_the_server_tells_by_itself() {
    for (sdk, era) in CLIENTS {
        let place = Place::new();
        let mut client = Client::stdio(sdk, era, &words(&wrapped(&place, &everything())));
        let uri = json!({ "uri": "demo://resource/dynamic/text/1" });
        let subscribed = client.run(json!({ "op": "ask", "method": "resources/subscribe", "params": uri }));
        assert_eq!(subscribed["ok"], true, "{sdk:?}: {subscribed}");
        for (tool, method) in [
            ("toggle-subscriber-updates", "notifications/resources/updated"),
            ("toggle-simulated-logging", "notifications/message"),
        ] {
            assert_eq!(client.call(tool, json!({}))["ok"], true, "{sdk:?} {tool}");
            eventually(&format!("{sdk:?} hears {method}"), || has_heard(&mut client, method));
        }
        // The server adds tools once it has been greeted, and says so.
        eventually("the tools change", || has_heard(&mut client, "notifications/tools/list_changed"));
    }
}
