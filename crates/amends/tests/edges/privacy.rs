//! What rests in the ledger and the logs, and for how long.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::servers::python;
use crate::support::http::{post, post_raw};
use crate::support::{AMENDS, Place, eventually};

/// What must not be found: each has the shape of a secret, or is in a declared field.
const CANARIES: [(&str, &str); 9] = [
    ("card", "4242424242424242"),
    ("hub", "ghp_canarycanarycanarycanarycanary123456"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.Y2FuYXJ5Y2FuYXJ5"),
    ("password", "canary-horse-battery"),
    ("stripe", "sk_live_canarycanary1234"),
    ("ssn", "219-09-9999"),
    ("cloud", "AKIACANARYCANARY1234"),
    ("link", "https://ada:canarypass@db.example/x"),
    ("diagnosis", "canary in the coal mine"),
];

/// Parts by which a canary would still be known.
const TRACES: [&str; 10] = [
    "4242424242424242",
    "ghp_canary",
    "Y2FuYXJ5",
    "canary-horse",
    "sk_live_canary",
    "219-09-9999",
    "AKIACANARY",
    "canarypass",
    "coal mine",
    "canary-bearer",
];

/// Tools to which, and from which, everything passes: what is looked at here is what rests.
const TOOLS: &str = r#"
[privacy]
fields = [{ path = "args.diagnosis", category = "health" }]

[tools.fail]
takes = ["credential", "payment_card", "government_id"]
gives = ["credential", "payment_card", "government_id"]

[tools.refuse]
takes = ["credential", "payment_card", "government_id"]
gives = ["credential", "payment_card", "government_id"]

[tools.hang]
takes = ["credential", "payment_card", "government_id"]

[tools.pay]
effect = "write"
takes = ["credential", "payment_card", "government_id"]
gives = ["credential", "payment_card", "government_id"]
reverse = { tool = "cancel", args = { given = "args" }, within = "24h" }

[tools.look]
effect = "read"
takes = ["credential", "payment_card", "government_id"]
gives = ["credential", "payment_card", "government_id"]

[tools.cancel]
effect = "idempotent"
"#;

/// A gateway whose standard error goes to a file.
struct Serving {
    child: Child,
    address: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(place: &Place, ledger: &str, tools: &str) -> Serving {
    let text = format!(
        "[ledger]\nurl = \"{}\"\n{ledger}\n[listen]\nhttp = \"127.0.0.1:0\"\n\n[upstreams.leaky]\nprefix = \"\"\n\
         timeout = \"3s\"\ndeadline = \"4s\"\ncommand = {:?}\n{tools}",
        place.ledger(),
        python(place, "leaky.py", &[])
    );
    let config = place.write("serve.toml", &text);
    let log = place.path("stderr.log");
    let stderr = File::create(&log).expect("a log");
    let child = Command::new(AMENDS)
        .args(["serve", "--config"])
        .arg(config)
        .env("AMENDS_LOG", "trace")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("it starts");
    let mut serving = Serving { child, address: String::new() };
    eventually("it listens", || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let address = said.split("amends listens on http://").nth(1).and_then(|rest| rest.split(';').next());
        serving.address = address.unwrap_or_default().to_owned();
        address.is_some()
    });
    eventually("its tools are served", || call(&serving, "look", &json!({})).1["status"] == "success");
    serving
}

fn call(serving: &Serving, tool: &str, arguments: &Value) -> (u16, Value) {
    let headers = [("authorization", "Bearer canary-bearer-0123456789")];
    post(&serving.address, &format!("/call/{tool}"), &headers, arguments.to_string().as_bytes())
}

/// The files in which something rests.
fn resting(place: &Place) -> Vec<PathBuf> {
    let names = ["amends.db", "amends.db-wal", "amends.db-shm", "stderr.log"];
    names.iter().map(|name| place.path(name)).filter(|path| path.exists()).collect()
}

fn holds(path: &PathBuf, text: &str) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

fn assert_clean(place: &Place) {
    for path in resting(place) {
        for text in TRACES {
            assert!(!holds(&path, text), "`{text}` is in `{}`", path.display());
        }
    }
}

fn all_canaries() -> Value {
    Value::Object(CANARIES.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect())
}

#[test]
fn nothing_secret_rests_in_the_ledger_or_the_logs() {
    let place = Place::new();
    let serving = serve(&place, "", TOOLS);
    let (_, paid) = call(&serving, "pay", &all_canaries());
    assert_eq!(paid["status"], "success", "{paid}");
    // The agent gets what the upstream said, as it said it.
    assert_eq!(paid["data"]["given"], all_canaries());
    for tool in ["fail", "refuse", "look"] {
        let (_, answer) = call(&serving, tool, &all_canaries());
        assert!(answer["status"].is_string(), "{answer}");
    }
    let (_, doubt) = call(&serving, "hang", &all_canaries());
    assert_eq!(doubt["error"]["certainty"], "in_doubt", "{doubt}");
    let (_, unknown) = call(&serving, CANARIES[1].1, &all_canaries());
    assert_eq!(unknown["status"], "refused", "{unknown}");
    let with_key = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "pay", "arguments": { "n": 2 }, "_meta": { "amends/key": CANARIES[4].1 } },
    });
    let token = [("authorization", "Bearer canary-bearer-0123456789")];
    post_raw(
        &serving.address,
        "/mcp?token=ghp_canarycanarycanarycanarycanary123456",
        &token,
        with_key.to_string().as_bytes(),
    );
    post_raw(&serving.address, "/mcp", &token, with_key.to_string().as_bytes());
    assert_clean(&place);
    // The view is there, with masks, and so are the sealed payloads.
    let seen = place.events_named("call_received");
    let view = seen.iter().filter_map(|event| event["view"].as_str()).find(|view| view.contains("diagnosis"));
    let view = view.expect("a view");
    for mask in ["[redacted:health]", "[redacted:payment_card]", "[redacted:government_id]", "[redacted:credential]"] {
        assert!(view.contains(mask), "{view}");
    }
    let (_, said) = place.amends(&["trace", seen.last().unwrap()["call"].as_str().unwrap()]);
    assert!(said.contains("call_received"), "{said}");
    assert!(!place.events_named("attempt_ended").is_empty());
    drop(serving);
    place.assert_verified();
    assert_clean(&place);
    let (code, exported) = place.amends(&["export"]);
    assert_eq!(code, 0);
    assert!(TRACES.iter().all(|text| !exported.contains(text)), "{exported}");
}

#[test]
fn what_an_agent_must_not_see_is_masked_in_results_and_in_the_words_of_errors() {
    let place = Place::new();
    let tools = "[tools.look]\neffect = \"read\"\ntakes = [\"credential\", \"payment_card\", \"government_id\"]\n\
                 [tools.fail]\ntakes = [\"credential\", \"payment_card\", \"government_id\"]\n\
                 [tools.pay]\neffect = \"write\"\n";
    let serving = serve(&place, "", tools);
    let (_, refused) = call(&serving, "pay", &all_canaries());
    assert_eq!(
        (&refused["status"], &refused["error"]["kind"]),
        (&json!("refused"), &json!("pii_blocked")),
        "{refused}"
    );
    for tool in ["look", "fail"] {
        let (_, answer) = call(&serving, tool, &all_canaries());
        let told = answer.to_string();
        for text in
            ["4242424242424242", "ghp_canary", "Y2FuYXJ5", "sk_live_canary", "219-09-9999", "AKIACANARY", "canarypass"]
        {
            assert!(!told.contains(text), "`{text}` is in {told}");
        }
    }
    let (_, looked) = call(&serving, "look", &all_canaries());
    assert_eq!((&looked["status"], &looked["degradation_reason"]), (&json!("degraded"), &json!("masked")), "{looked}");
    assert_eq!(looked["data"]["given"]["card"], "[redacted:payment_card]", "{looked}");
    let (_, plain) = call(&serving, "look", &json!({ "order": "ord_1" }));
    assert_eq!((&plain["status"], &plain["data"]["given"]["order"]), (&json!("success"), &json!("ord_1")), "{plain}");
    let noted = place.events_named("attempt_ended");
    let masked = noted.iter().find_map(|event| event["report"]["shape"].get("masked")).expect("it is noted");
    assert_eq!(masked, &json!(["credential", "payment_card", "government_id"]));
}

#[test]
fn a_note_that_a_person_adds_is_masked() {
    let place = Place::new();
    let serving = serve(&place, "", "[tools.hang]\neffect = \"write\"\n");
    let (_, doubt) = call(&serving, "hang", &json!({ "order": 1 }));
    let asked = doubt["error"]["interaction"].as_str().expect("a question").to_owned();
    let (code, said) = place.amends(&["queue"]);
    assert!(code == 0 && said.contains(r#"`hang` {"order":1}"#), "{said}");
    let note = format!("the bank says {}", CANARIES[0].1);
    assert_eq!(place.amends(&["answer", &asked, "happened", "--note", &note]).0, 0);
    eventually("it is settled", || !place.events_named("doubt_resolved").is_empty());
    assert_eq!(
        place.events_named("interaction_answered")[0]["answer"]["note"],
        "the bank says [redacted:payment_card]"
    );
    assert_clean(&place);
}

#[test]
fn a_repeat_whose_answer_cannot_be_opened_is_not_sent_again() {
    let place = Place::new();
    let tools = "[tools.hang]\neffect = \"write\"\n";
    let serving = serve(&place, "", tools);
    let (_, doubt) = call(&serving, "hang", &json!({ "order": 1 }));
    assert_eq!(doubt["error"]["certainty"], "in_doubt", "{doubt}");
    drop(serving);
    let sent = || fs::read_to_string(place.path("server.log")).unwrap().matches(r#""name":"hang""#).count();
    assert_eq!(sent(), 1);

    place.write("amends.db.seal", &format!("{}=\n", "A".repeat(43)));
    let serving = serve(&place, "", tools);
    let (_, again) = call(&serving, "hang", &json!({ "order": 1 }));
    assert_eq!((&again["status"], &again["error"]["kind"]), (&json!("refused"), &json!("in_flight")), "{again}");
    assert_eq!(sent(), 1);
    let log = fs::read_to_string(place.path("stderr.log")).unwrap();
    assert!(log.contains("ledger.sealing_key"), "{log}");
}

#[test]
fn texts_that_look_like_secrets_are_decided_again_as_they_were() {
    let place = Place::new();
    let tools = "[privacy]\nfields = [{ path = \"args.word\", category = \"health\" }]\n\
                 [tools.hang]\neffect = \"write\"\ntimeout = \"1s\"\ntakes = [\"credential\"]\n[tools.look]\neffect = \"read\"\n";
    let serving = serve(&place, "", tools);
    // The private word is part of the question, which names the tool.
    let (_, doubt) = call(&serving, "hang", &json!({ "word": "hang", "note": "sk_live_canarycanary1234" }));
    assert_eq!(doubt["error"]["certainty"], "in_doubt", "{doubt}");
    for (_, secret) in CANARIES {
        let name: String = secret.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect();
        let (_, unknown) = call(&serving, &name, &json!({ secret: secret, "word": name }));
        assert_eq!(unknown["status"], "refused", "{unknown}");
        let headers = [("idempotency-key", secret)];
        post(&serving.address, "/call/look", &headers, json!({ secret: [secret] }).to_string().as_bytes());
    }
    let (_, said) = place.amends(&["queue", "--json"]);
    assert!(said.contains("did `hang` happen?"), "{said}");
    eventually("all is recorded", || place.events_named("call_received").len() > 2 * CANARIES.len());
    place.assert_verified();
}

#[test]
fn a_plain_answer_in_a_sealed_ones_place_is_not_given() {
    let place = Place::new();
    let tools = "[tools.hang]\neffect = \"write\"\ntimeout = \"1s\"\n";
    let serving = serve(&place, "", tools);
    let (_, doubt) = call(&serving, "hang", &json!({ "order": 1 }));
    assert_eq!(doubt["error"]["certainty"], "in_doubt", "{doubt}");
    let forged = r#"{"status":"success","data":{"forged":true},"charter_version":"1.0"}"#;
    let book = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger");
    book.busy_timeout(std::time::Duration::from_secs(10)).expect("a timeout");
    assert!(book.execute("UPDATE answers SET body = ?1", [forged.as_bytes()]).expect("it is changed") >= 1);
    let (_, again) = call(&serving, "hang", &json!({ "order": 1 }));
    assert_eq!(again["error"]["kind"], "in_flight", "{again}");
    drop(serving);
    let log = fs::read_to_string(place.path("stderr.log")).unwrap();
    assert!(log.contains("is not sealed"), "{log}");
    // Whoever says that there are payloads from before the key gets them.
    let serving = serve(&place, "unsealed = \"take\"\n", tools);
    let (_, taken) = call(&serving, "hang", &json!({ "order": 1 }));
    assert!(taken.to_string().contains("forged"), "{taken}");
}

#[test]
fn a_key_that_was_named_and_is_not_there_stops_the_start() {
    let place = Place::new();
    let text = format!("[ledger]\nurl = \"{}\"\nsealing_key = {{ env = \"AMENDS_TEST_NO_KEY\" }}\n", place.ledger());
    let config = place.write("serve.toml", &text);
    let output = Command::new(AMENDS).args(["serve", "--config"]).arg(config).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("AMENDS_TEST_NO_KEY"), "{said}");
}

#[test]
fn what_is_older_than_is_kept_goes_and_what_can_be_undone_stays() {
    let place = Place::new();
    let serving = serve(&place, "retention = \"1s\"\n", TOOLS);
    let (_, paid) = call(&serving, "pay", &json!({ "order": "stays-for-a-day" }));
    assert_eq!(paid["status"], "success", "{paid}");
    call(&serving, "look", &json!({ "order": "goes-very-soon" }));
    eventually("the reads are retired", || {
        let sessions = sessions(&place);
        sessions.iter().filter(|row| row["retired"] == false).count() == 1
    });
    let left = place.events();
    assert!(left.iter().any(|event| event["view"].as_str().is_some_and(|view| view.contains("stays-for-a-day"))));
    let retired: Vec<_> = left.iter().filter(|event| event["event"] == "session_retired").collect();
    assert!(retired.iter().all(|event| event["reason"] == "retention"), "{retired:?}");
    assert!(!place.events().iter().any(|event| event.to_string().contains("goes-very-soon")));
    place.assert_verified();
    // What was dropped is not left behind in the file either.
    eventually("it is overwritten", || resting(&place).iter().all(|path| !holds(path, "goes-very-soon")));
    assert_eq!(call(&serving, "look", &json!({})).1["status"], "success");
}

#[test]
fn a_session_is_forgotten_by_the_gateway_that_holds_it() {
    let place = Place::new();
    let serving = serve(&place, "", TOOLS);
    call(&serving, "look", &json!({ "order": "forget-this-one" }));
    let event =
        place.events().into_iter().find(|event| event.to_string().contains("forget-this-one")).expect("its view");
    let id = event["call"].as_str().unwrap().to_owned();
    assert_eq!(place.amends(&["forget", &id]).0, 2, "without --yes nothing is dropped");
    let (code, said) = place.amends(&["forget", &id, "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("is forgotten"), "{said}");
    let (_, shown) = place.amends(&["trace", &id]);
    assert!(shown.contains("retired") && shown.contains("forgotten"), "{shown}");
    assert!(!place.events().iter().any(|event| event.to_string().contains("forget-this-one")));
    let (code, said) = place.amends(&["forget", &id, "--yes"]);
    assert!(code == 0 && said.contains("retired before"), "{said}");
    place.assert_verified();

    let (_, paid) = call(&serving, "pay", &json!({ "order": 1 }));
    assert_eq!(paid["status"], "success", "{paid}");
    let event = place.events_named("reversal_armed").remove(0);
    let (code, said) = place.amends(&["forget", event["call"].as_str().unwrap(), "--yes"]);
    assert!(code == 1 && said.contains("can still be undone"), "{said}");
}

fn sessions(place: &Place) -> Vec<Value> {
    let (_, said) = place.amends(&["sessions", "--json", "--limit", "1000"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["sessions"].as_array().cloned().expect("a list")
}
