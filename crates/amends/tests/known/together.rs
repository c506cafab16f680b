//! `server-everything` and `server-filesystem` behind one address.

use serde_json::json;

use crate::servers::{CLIENTS, both, everything, has_heard, names, questions, settled, words};
use crate::support::client::Client;
use crate::support::{Place, eventually};

fn folder(place: &Place) -> String {
    let folder = place.path("files");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("note.txt"), "für alle\n").expect("a file");
    folder.canonicalize().expect("a path").display().to_string()
}

#[test]
fn two_servers_are_served_together_to_every_client() {
    let place = Place::new();
    let folder = folder(&place);
    let gateway = both(&place, &folder);
    for (sdk, era) in CLIENTS {
        let mut direct = Client::stdio(sdk, era, &words(&everything()));
        let mut client = Client::http(sdk, era, &gateway.mcp());
        let tools = names(&mut client, "tools/list", "tools");
        for name in names(&mut direct, "tools/list", "tools") {
            assert!(tools.contains(&format!("everything__{name}")), "{sdk:?}: {name} is not in {tools:?}");
        }
        let prompts = names(&mut client, "prompts/list", "prompts");
        for name in names(&mut direct, "prompts/list", "prompts") {
            assert!(prompts.contains(&format!("everything__{name}")), "{sdk:?}: {name} is not in {prompts:?}");
        }
        for (plain, question) in questions("").into_iter().zip(questions("everything__")) {
            let (expected, found) = (direct.run(plain), client.run(question.clone()));
            assert_eq!(settled(found), settled(expected), "{sdk:?} {question}");
        }
        let path = format!("{folder}/note.txt");
        let read = client.call("files__read_text_file", json!({ "path": path }));
        assert_eq!(read["result"]["content"][0]["text"], "für alle\n", "{sdk:?}: {read}");
        let new = format!("{folder}/{sdk:?}.txt");
        let wrote = client.call("files__write_file", json!({ "path": new, "content": "once" }));
        assert_ne!(wrote["result"]["isError"], true, "{sdk:?}: {wrote}");
        assert_eq!(std::fs::read_to_string(new).expect("the file"), "once");
        let outside = client.call("files__read_text_file", json!({ "path": "/etc/hostname" }));
        assert_eq!(outside["result"]["isError"], true, "{sdk:?}: {outside}");
    }
    place.settled();
}

#[test]
fn what_a_server_tells_by_itself_reaches_the_clients_behind_one_address() {
    let place = Place::new();
    let gateway = both(&place, &folder(&place));
    let (sdk, era) = CLIENTS[1];
    let mut client = Client::http(sdk, era, &gateway.mcp());
    let uri = json!({ "uri": "demo://resource/dynamic/text/1" });
    let subscribed = client.run(json!({ "op": "ask", "method": "resources/subscribe", "params": uri }));
    assert_eq!(subscribed["ok"], true, "{subscribed}");
    assert_eq!(client.call("everything__toggle-subscriber-updates", json!({}))["ok"], true);
    eventually("an update is heard", || has_heard(&mut client, "notifications/resources/updated"));
}
