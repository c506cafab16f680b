//! The door.

use serde_json::json;

use crate::peer::{Client, call, python, root, rpc};
use crate::support::served::serve_tools;
use crate::support::{Place, eventually, http};

/// The headers of a request.
type Headers = &'static [(&'static str, &'static str)];

#[test]
fn a_call_is_a_task_that_ends_with_the_envelope() {
    let place = Place::new();
    let gateway = place.up("");
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let mut client = Client::of(&gateway.address, &json!({ "binding": binding }));
        let order = format!("ord_{}", binding.len());
        let task = client.call(&format!("m-{binding}"), "charge_card", json!({ "order": order, "amount": 5 }));
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        let envelope = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!((envelope["status"].as_str(), envelope["outcome"].as_str()), (Some("success"), Some("succeeded")));
        assert_eq!(place.effects_on("charge_card", &order), 1);
        let again = client.ask("get", json!({ "id": task["id"] }));
        assert_eq!(again, task, "what is asked for later is the same");
    }
    let none = rpc(&gateway.address, "1.0", "GetTask", json!({ "id": "ses_nobody" }));
    assert_eq!(none["error"]["code"], -32001, "{none}");
    assert_eq!(none["error"]["data"][0]["reason"], "TASK_NOT_FOUND");
}

#[test]
fn a_message_that_comes_twice_is_one_call_and_another_is_another() {
    let place = Place::new();
    let mut gateway = place.up("");
    let args = json!({ "order": "ord_1", "amount": 5 });
    let mut client = Client::of(&gateway.address, &json!({}));
    let first = client.call("m1", "charge_card", args.clone());
    let again = client.call("m1", "charge_card", args.clone());
    assert_eq!(again["status"]["state"], "TASK_STATE_COMPLETED", "{again}");
    assert_eq!(again["artifacts"][0]["parts"][0]["data"]["data"], first["artifacts"][0]["parts"][0]["data"]["data"]);
    assert_eq!(again["artifacts"][0]["parts"][0]["data"]["replayed"], true, "{again}");
    assert_eq!(place.effects("charge_card"), 1);
    client.call("m2", "charge_card", args);
    assert_eq!(place.effects("charge_card"), 2);
    let read = client.call("m3", "get_order", json!({ "order": "ord_1" }));
    assert_eq!(read["status"]["state"], "TASK_STATE_COMPLETED", "{read}");
    gateway.kill();
    let gateway = place.up("");
    let mut client = Client::of(&gateway.address, &json!({}));
    for task in [first, read] {
        let after = client.ask("get", json!({ "id": task["id"] }));
        assert_eq!(after, task, "a task outlives the process that began it");
    }
    let listed = client.ask("list", json!({ "pageSize": 2, "includeArtifacts": false }));
    assert_eq!(
        (listed["tasks"].as_array().map(Vec::len), listed["totalSize"].as_u64()),
        (Some(2), Some(4)),
        "{listed}"
    );
}

#[test]
fn a_stream_begins_with_the_task_and_ends_with_its_end() {
    let place = Place::new();
    let gateway = place.up("");
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let mut client = Client::of(&gateway.address, &json!({ "binding": binding, "streaming": true }));
        let order = format!("ord_{}", binding.len());
        let events =
            client.ask("send", call(&format!("m-{binding}"), "charge_card", json!({ "order": order, "amount": 5 })));
        let events = events.as_array().expect("events");
        assert!(events[0]["task"]["id"].is_string(), "{events:?}");
        let last = &events[events.len() - 1];
        let state = last["statusUpdate"]["status"]["state"].as_str().or(last["task"]["status"]["state"].as_str());
        assert_eq!(state, Some("TASK_STATE_COMPLETED"), "{events:?}");
        let given = events.iter().any(|event| event["artifactUpdate"]["artifact"]["parts"].is_array())
            || events[0]["task"]["artifacts"].is_array();
        assert!(given, "{events:?}");
        let over = client.ask("subscribe", json!({ "id": events[0]["task"]["id"] }));
        assert_eq!(over["failed"], "UnsupportedOperationError", "{over}");
    }
}

#[test]
fn what_cannot_be_done_is_rejected_with_the_next_move() {
    let place = Place::new();
    let text = "[[a2a.text]]\nwhen = \"text.startsWith('order ')\"\ntool = \"get_order\"\nargs = { order = \"message.metadata.order\" }\n";
    let config = place.write("a2a.toml", text).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::of(&gateway.address, &json!({}));
    let wrong = client.call("m1", "charge_card", json!({ "order": 7 }));
    assert_eq!(wrong["status"]["state"], "TASK_STATE_REJECTED", "{wrong}");
    let parts = &wrong["status"]["message"]["parts"];
    assert_eq!(parts[1]["data"]["error"]["code"], "InputInvalid", "{wrong}");
    let unknown = client.call("m2", "charge_cart", json!({}));
    assert_eq!(unknown["status"]["message"]["parts"][1]["data"]["error"]["kind"], "unknown_name", "{unknown}");
    let words = |id: &str, text: &str| json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }], "metadata": { "order": "ord_1" } } });
    let rejected = client.ask("send", words("m3", "hello"))[0]["task"].clone();
    assert_eq!(rejected["status"]["state"], "TASK_STATE_REJECTED", "{rejected}");
    let said = rejected["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("data part") && said.contains("charge_card"), "{said}");
    let routed = client.ask("send", words("m4", "order ord_1"))[0]["task"].clone();
    assert_eq!(routed["status"]["state"], "TASK_STATE_COMPLETED", "{routed}");
    let over = json!({ "message": { "messageId": "m5", "taskId": rejected["id"], "role": "ROLE_USER", "parts": [{ "text": "x" }] } });
    assert_eq!(client.ask("send", over)["failed"], "UnsupportedOperationError");
}

#[test]
fn bad_requests_are_answered_in_the_protocol() {
    let place = Place::new();
    let gateway = place.up("");
    let address = &gateway.address;
    let code = |body: &str, headers: &[(&str, &str)]| {
        let (status, answer) = http::post(address, "/a2a", headers, body.as_bytes());
        (
            status,
            answer["error"]["code"].as_i64(),
            answer["error"]["data"][0]["metadata"]["amendsCode"].as_str().map(str::to_owned),
        )
    };
    let send = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","parts":[{"text":"x"}]}}}"#;
    let cases: [(&str, Headers, i64); 10] = [
        ("{", &[], -32700),
        ("[]", &[], -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, &[], -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"Sing"}"#, &[], -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage"}"#, &[], -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"parts":[]}}}"#, &[], -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#, &[], -32602),
        (send, &[("content-type", "text/plain")], -32005),
        (send, &[("a2a-version", "99.0")], -32009),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"x","url":"http://h"}}"#,
            &[],
            -32003,
        ),
    ];
    for (body, headers, expected) in cases {
        let (status, number, ours) = code(body, headers);
        assert_eq!((status, number), (200, Some(expected)), "{body} {headers:?}");
        assert!(ours.is_some(), "{body}");
    }
    let huge =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{{"x":"{}"}}}}"#, "x".repeat(5 << 20));
    assert_eq!(code(&huge, &[]).1, Some(-32600));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(code(&deep, &[]).1, Some(-32600));
    assert_eq!(http::post(address, "/a2a", &[], &[b'"', 0xff, b'"']).1["error"]["code"], -32600);
    let (status, answer) = http::post(address, "/a2a/v1/message:send", &[("content-type", "text/plain")], b"x");
    assert_eq!((status, answer["error"]["details"][0]["reason"].as_str()), (400, Some("CONTENT_TYPE_NOT_SUPPORTED")));
    let (status, _) = http::post(address, "/a2a/v1/nowhere", &[], b"{}");
    assert_eq!(status, 404);
}

#[test]
fn a_client_of_the_older_version_is_answered_in_its_words() {
    let place = Place::new();
    let gateway = place.up("");
    let message = json!({ "message": {
        "kind": "message", "messageId": "m1", "role": "user",
        "parts": [{ "kind": "data", "data": { "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 } } }],
    }});
    let answer = rpc(&gateway.address, "", "message/send", message);
    let task = &answer["result"];
    assert_eq!(
        (task["kind"].as_str(), task["status"]["state"].as_str()),
        (Some("task"), Some("completed")),
        "{answer}"
    );
    let part = &task["artifacts"][0]["parts"][0];
    assert_eq!((part["kind"].as_str(), part["data"]["status"].as_str()), (Some("data"), Some("success")));
    let got = rpc(&gateway.address, "0.3", "tasks/get", json!({ "id": task["id"] }));
    assert_eq!(got["result"]["status"]["state"], "completed");
    let newer = rpc(&gateway.address, "1.0", "message/send", json!({}));
    assert_eq!(newer["error"]["code"], -32601, "each version has its own names");
}

#[test]
fn the_sdk_for_the_older_version_is_answered_over_both_of_its_bindings() {
    let place = Place::new();
    let text = "[a2a]\npush = [\"http://127.0.0.1\"]\n[tools.charge_card]\neffect = \"write\"\napproval = \"own\"\n[queues.own]\nrequester = true\n";
    let config = place.write("old.toml", text).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut command = python(root().join("crates/amends/tests/a2a/old.py"));
    let ran = command.arg(format!("http://{}", gateway.address)).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said} {}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.lines().collect::<Vec<_>>(), ["jsonrpc holds", "rest holds"]);
    assert_eq!(place.effects("charge_card"), 2, "one for each binding");
}

#[test]
fn an_approved_task_runs_by_itself_also_after_a_restart() {
    for dies in [false, true] {
        let place = Place::new();
        let text = "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n";
        let config = place.write("approval.toml", text).display().to_string();
        let mut gateway = place.up_with("", &["--config", &config]);
        let mut client = Client::of(&gateway.address, &json!({}));
        let task = client.call("m1", "charge_card", json!({ "order": "ord_1", "amount": 5 }));
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
        let question = &task["status"]["message"]["parts"][1]["data"];
        let interaction = question["interaction"].as_str().expect("a question").to_owned();
        assert_eq!(question["queue"], "finance");
        let own = json!({ "message": {
            "messageId": "m2", "taskId": task["id"], "role": "ROLE_USER", "parts": [{ "data": { "choice": "approve" } }],
        }});
        assert_eq!(client.ask("send", own)["failed"], "UnsupportedOperationError", "whoever called may not say yes");
        if dies {
            gateway.kill();
            gateway = place.up_with("", &["--config", &config]);
            client = Client::of(&gateway.address, &json!({}));
        }
        assert_eq!(place.effects("charge_card"), 0);
        let (code, said) = place.amends(&["answer", &interaction, "approve", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        let mut after = json!(null);
        eventually("the task is done", || {
            after = client.ask("get", json!({ "id": task["id"] }));
            after["status"]["state"] == "TASK_STATE_COMPLETED"
        });
        assert_eq!(after["artifacts"][0]["parts"][0]["data"]["status"], "success", "{after}");
        assert_eq!(place.effects("charge_card"), 1);
    }
}

#[test]
fn a_cancel_goes_down_to_the_tool_and_is_only_said_where_nothing_was_done() {
    // A write that has left may have happened: a person is asked, once it had its time to answer.
    for (effect, state) in [("read", "TASK_STATE_CANCELED"), ("write", "TASK_STATE_INPUT_REQUIRED")] {
        let place = Place::new();
        let (script, book) = (root().join("crates/amends/tests/a2a/sleeper.py"), place.path("sleeper.txt"));
        let script = script.canonicalize().expect("a server");
        let upstream = format!(
            "command = [\"python3\", \"{}\", \"{}\"]\ntimeout = \"6s\"\ndeadline = \"30s\"",
            script.display(),
            book.display()
        );
        let gateway = serve_tools(&place, &upstream, &format!("[tools.sleep]\neffect = \"{effect}\"\n"));
        let noted = |what: &str| {
            let book = std::fs::read_to_string(&book).unwrap_or_default();
            book.lines().filter(|line| *line == what).count()
        };
        let mut client = Client::of(&gateway.address, &json!({ "polling": true }));
        let task = client.ask("send", call("m1", "sleep", json!({ "seconds": 30 })))[0]["task"].clone();
        eventually("the tool works", || noted("began") == 1);
        let stopped = client.ask("cancel", json!({ "id": task["id"] }));
        assert_eq!(stopped["id"], task["id"], "{stopped}");
        let mut after = stopped;
        eventually("it is settled", || {
            after = client.ask("get", json!({ "id": task["id"] }));
            after["status"]["state"] == state
        });
        eventually("the tool was told", || noted("cancelled") == 1);
        assert_eq!((noted("began"), noted("did")), (1, 0), "{effect}: {after}");
        let again = client.ask("get", json!({ "id": task["id"] }));
        assert_eq!(again["status"]["state"], state, "what was said stays: {again}");
    }
}

#[test]
fn whoever_called_may_answer_where_the_queue_says_so() {
    let place = Place::new();
    let text = "[tools.charge_card]\neffect = \"write\"\napproval = \"own\"\n[queues.own]\nrequester = true\n";
    let config = place.write("approval.toml", text).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::of(&gateway.address, &json!({}));
    for (id, choice, state) in [("a", "approve", "TASK_STATE_COMPLETED"), ("b", "deny", "TASK_STATE_REJECTED")] {
        let task = client.call(id, "charge_card", json!({ "order": format!("ord_{id}"), "amount": 5 }));
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
        let answer = json!({ "message": {
            "messageId": format!("{id}-2"), "taskId": task["id"], "contextId": task["contextId"],
            "role": "ROLE_USER", "parts": [{ "data": { "choice": choice } }],
        }});
        let after = client.ask("send", answer)[0]["task"].clone();
        assert_eq!(after["status"]["state"], state, "{after}");
    }
    assert_eq!(place.effects("charge_card"), 1);
}

#[test]
fn changes_are_posted_where_the_operator_allows_it() {
    let receiver = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://127.0.0.1:{}/hook", receiver.local_addr().expect("its address").port());
    let place = Place::new();
    let text =
        "[a2a]\npush = [\"http://127.0.0.1:\"]\n[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n";
    let config = place.write("push.toml", text).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::of(&gateway.address, &json!({}));
    let mut message = call("m1", "charge_card", json!({ "order": "ord_1", "amount": 5 }));
    message["configuration"] = json!({ "taskPushNotificationConfig": { "url": url, "token": "tok" } });
    let task = client.ask("send", message)[0]["task"].clone();
    let elsewhere = client.ask("push", json!({ "taskId": task["id"], "url": "http://10.0.0.1/x" }));
    assert_eq!(elsewhere["failed"], "PushNotificationNotSupportedError", "{elsewhere}");
    let interaction =
        task["status"]["message"]["parts"][1]["data"]["interaction"].as_str().expect("a question").to_owned();
    place.amends(&["answer", &interaction, "approve", "--by", "ada"]);
    let mut posted = Vec::new();
    while !posted.iter().any(|text: &String| text.contains("TASK_STATE_COMPLETED")) {
        let (mut stream, _) = receiver.accept().expect("a connection");
        posted.push(posted_on(&mut stream));
    }
    assert!(posted.iter().all(|text| text.to_lowercase().contains("x-a2a-notification-token: tok")), "{posted:?}");
    assert!(posted[0].contains("\"task\":"), "{posted:?}");
}

/// Reads one request and answers it.
fn posted_on(stream: &mut std::net::TcpStream) -> String {
    use std::io::{Read as _, Write as _};
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let read = stream.read(&mut bytes).expect("a request");
        seen.extend_from_slice(&bytes[..read]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        let length = text
            .to_lowercase()
            .split("content-length:")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if read == 0 || length.is_some_and(|length| body.is_some_and(|body| body >= length)) {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").expect("an answer");
            return text;
        }
    }
}

#[test]
fn the_card_names_what_is_served_and_its_signature_holds() {
    let place = Place::new();
    let gateway = place.up("");
    let checked = python(root().join("crates/amends/tests/a2a/card.py"))
        .arg(format!("http://{}", gateway.address))
        .arg(place.path("amends.db.sign.pub"))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{said} {}", String::from_utf8_lossy(&checked.stderr));
    let card: serde_json::Value = serde_json::from_str(&said).expect("a card");
    let skills = card["skills"].as_array().expect("skills");
    assert!(skills.iter().any(|skill| skill["id"] == "charge_card"), "{card}");
    assert_eq!(card["supportedInterfaces"][0]["url"], format!("http://{}/a2a", gateway.address));
}
