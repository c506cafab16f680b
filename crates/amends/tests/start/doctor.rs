//! `amends doctor`: what it finds, and that it changes nothing.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::support::Place;
use crate::{listed, run, run_with, text};

fn findings(place: &Place, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = run(place, &[&["doctor", "--json"], arguments].concat());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), said["findings"].as_array().expect("findings").clone())
}

fn find<'a>(found: &'a [Value], about: &str, words: &str) -> &'a Value {
    let fits = |finding: &&Value| {
        finding["about"] == about && finding["words"].as_str().is_some_and(|said| said.contains(words))
    };
    found.iter().find(fits).unwrap_or_else(|| panic!("nothing about {about}: {words}: {found:#?}"))
}

/// A free port, which nobody has a moment later.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn configured(place: &Place, port: u16, upstream: &str) {
    place.write(
        "amends.toml",
        &format!("[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:{port}\"\n{upstream}\n", place.ledger()),
    );
}

/// Every file of a place, with its size and its time.
fn files(place: &Place) -> BTreeMap<String, (u64, Option<SystemTime>)> {
    let entries = std::fs::read_dir(place.path("")).expect("a folder").flatten();
    entries
        .filter_map(|entry| {
            // What the shop has beside its book may be gone by now.
            let data = entry.metadata().ok()?;
            Some((entry.file_name().to_string_lossy().into_owned(), (data.len(), data.modified().ok())))
        })
        .collect()
}

#[test]
fn a_machine_in_order_is_said_to_be_so_and_nothing_changes() {
    let place = Place::new();
    let mut gateway = place.up("");
    assert_eq!(gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#).0, 200);
    place.settled();
    gateway.kill();
    drop(gateway);
    let tools = json!([{ "name": "look", "inputSchema": { "type": "object" } }]);
    let command = listed(&place, "tools.json", &tools, &[]);
    configured(&place, free(), &format!("[upstreams.a]\ncommand = {command:?}"));
    let before = files(&place);
    let (code, found) = findings(&place, &[]);
    assert_eq!(code, Some(0), "{found:#?}");
    find(&found, "port", "is free");
    find(&found, "upstream a", "1 tools");
    find(&found, "ledger", "tables of version");
    find(&found, "ledger", "are whole");
    find(&found, "keys", "the sealing key is in");
    find(&found, "clock", "nothing that was recorded lies in the future");
    find(&found, "disk", "until something is on the disk");
    find(&found, "open files", "files");
    find(&found, "version", concat!("amends ", env!("CARGO_PKG_VERSION")));
    // The demo's shop may still be closing its book, and readers note themselves in the log's shared memory.
    let ours = |files: BTreeMap<String, _>| {
        let lasting = files.into_iter().filter(|(name, _)| !name.starts_with("book") && !name.ends_with("-shm"));
        lasting.collect::<Vec<_>>()
    };
    assert_eq!(ours(files(&place)), ours(before));
}

#[test]
fn trouble_is_found_with_what_to_do_about_it() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let command = listed(&place, "tools.json", &json!([]), &["--want", "NOT_SET_ANYWHERE"]);
    configured(&place, port, &format!("[upstreams.a]\ncommand = {command:?}\nenv_pass = [\"NOT_SET_ANYWHERE\"]"));
    let (code, found) = findings(&place, &[]);
    assert_eq!(code, Some(1), "{found:#?}");
    let port = find(&found, "port", "is in use");
    assert!(
        port["level"] == "bad" && port["advice"].as_str().is_some_and(|advice| advice.contains("listen.http")),
        "{port}"
    );
    assert_eq!(find(&found, "upstream a", "which is not set here")["level"], "warn");
    let upstream = find(&found, "upstream a", "it does not answer");
    assert!(
        upstream["words"].as_str().is_some_and(|words| words.contains("NOT_SET_ANYWHERE is not set")),
        "its last words are told: {upstream}"
    );
    find(&found, "ledger", "is made at the first start");
    assert!(!place.path("amends.db").exists());
    place.write("amends.toml", "[tools.a]\nefect = \"read\"\n");
    let (code, found) = findings(&place, &[]);
    assert_eq!(code, Some(1));
    find(&found, "configuration", "did you mean `effect`");
}

#[test]
fn a_ledger_that_was_touched_lost_its_key_or_is_open_to_all_is_bad() {
    let place = Place::new();
    let mut gateway = place.up("");
    assert_eq!(gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#).0, 200);
    place.settled();
    gateway.kill();
    configured(&place, free(), "");
    let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
    ledger.execute_batch("UPDATE events SET body = replace(body, 'charge_card', 'charge_czrd'); UPDATE sessions SET updated = updated + 864000000").expect("a touch");
    drop(ledger);
    std::fs::remove_file(place.path("amends.db.seal")).expect("the key was there");
    #[cfg(unix)]
    std::fs::set_permissions(place.path("amends.db"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("a mode");
    let (code, found) = findings(&place, &["--no-start"]);
    assert_eq!(code, Some(1), "{found:#?}");
    for (about, words) in [
        ("ledger", "faults in the newest sessions"),
        ("keys", "the sealing key is not in"),
        ("clock", "still to come"),
        ("ledger", "by others (mode 644)"),
    ] {
        assert_eq!(find(&found, about, words)["level"], "bad");
    }
    assert!(!place.path("amends.db.seal").exists(), "looking makes no key");
}

#[test]
fn a_running_gateway_and_the_clients_of_this_machine_are_seen() {
    let place = Place::new();
    let gateway = place.up("");
    let port: u16 = gateway.address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    configured(&place, port, "");
    std::fs::create_dir_all(place.path(".cursor")).expect("a folder");
    let client = json!({ "mcpServers": {
        "wrapped": { "command": "amends", "args": ["wrap", "--", "x"] },
        "door": { "url": format!("http://localhost:{port}/mcp") },
        "past": { "command": "npx", "args": ["x"] } } });
    place.write(".cursor/mcp.json", &client.to_string());
    place.write(".mcp.json", "{ nonsense");
    let (code, found) = findings(&place, &["--no-start"]);
    assert_eq!(code, Some(0), "{found:#?}");
    find(&found, "port", "an Amends gateway listens");
    let cursor = find(&found, "Cursor", "through us: `door`, `wrapped`; past us: `past`");
    assert_eq!(cursor["level"], "warn");
    assert_eq!(find(&found, "Claude Code", "cannot be read")["level"], "warn");
    let said = run_with(&place, &["doctor", "--no-start"], &[]);
    assert!(!text(&said.stdout).contains('\u{1b}'), "colour is for terminals");
    assert!(text(&said.stdout).contains("0 bad"), "{}", text(&said.stdout));
}
