//! Every answer of the API against its description, and what is answered to whoever asks for nonsense.

use serde_json::{Value, json};

use crate::served::{History, TOKEN, ask, ask_raw, ask_with, serve, serve_history};
use crate::support::{Gateway, Place, eventually, root};

fn described() -> Value {
    let path = root().join("crates/amends-gateway/src/door/http/api/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("it is there")).expect("JSON")
}

/// The schema of what that operation answers with that status.
fn schema(described: &Value, method: &str, path: &str, status: u16) -> Option<Value> {
    let mut answer = &described["paths"][path][method.to_lowercase()]["responses"][status.to_string()];
    if let Some(name) = answer["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        answer = &described["components"]["responses"][name];
    }
    let content = answer["content"].as_object()?;
    let mut schema = content.get("application/json").or(content.get("application/problem+json"))?["schema"].clone();
    schema["components"] = described["components"].clone();
    Some(schema)
}

/// Asks, and holds the answer against its description.
fn fits(gateway: &Gateway, method: &str, route: &str, path: &str, body: Option<Value>, wanted: u16) -> Value {
    let (status, said) = ask(gateway, method, path, body);
    assert_eq!(status, wanted, "{method} {path}: {said}");
    let described = described();
    let schema = schema(&described, method, route, status).unwrap_or_else(|| panic!("{method} {route} {status}"));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> =
        validator.iter_errors(&said).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{method} {path}: {faults:?} in {said}");
    said
}

#[test]
fn every_route_answers_as_it_is_described() {
    let place = Place::new();
    let (gateway, History { question, walk, call, session }) = serve_history(&place);
    let get = |route: &str, path: &str| fits(&gateway, "GET", route, path, None, 200);
    get("/api/openapi.json", "/api/openapi.json");
    assert_eq!(get("/api/me", "/api/me")["role"], "operator");
    let sessions = get("/api/sessions", "/api/sessions?limit=2");
    let next = sessions["next"].as_str().expect("more than two sessions");
    let more = get("/api/sessions", &format!("/api/sessions?limit=2&after={next}"));
    assert_ne!(more["items"][0]["session"], sessions["items"][0]["session"], "{more}");
    let walks = get("/api/sessions", "/api/sessions?machine=refund");
    assert_eq!(walks["items"].as_array().map(Vec::len), Some(1), "{walks}");
    let trace = get("/api/sessions/{session}", &format!("/api/sessions/{session}?from=2&limit=3"));
    assert_eq!((trace["events"][0]["seq"].as_u64(), trace["events"].as_array().map(Vec::len)), (Some(2), Some(3)));
    let links = get("/api/sessions/{session}/links", &format!("/api/sessions/{session}/links"));
    assert!(links["links"][0]["body"].as_str().is_some_and(|body| body.contains("session_opened")), "{links}");
    assert_eq!(
        get("/api/sessions/{session}/walk", &format!("/api/sessions/{walk}/walk"))["state"]["state"]["name"],
        "known"
    );
    let calls = get("/api/calls", "/api/calls?limit=1");
    let next = calls["next"].as_str().expect("more than one call");
    let more = get("/api/calls", &format!("/api/calls?limit=1&after={next}"));
    assert_ne!(more["items"][0]["call"], calls["items"][0]["call"]);
    let seen = get("/api/calls/{call}", &format!("/api/calls/{call}"));
    assert_eq!(seen["agent"][0]["envelope"]["outcome"], "unresolved", "{seen}");
    assert_eq!(seen["certainty"], "in_doubt");
    assert_eq!(get("/api/interactions", "/api/interactions")["items"][0]["id"], question.as_str());
    let asked = get("/api/interactions/{interaction}", &format!("/api/interactions/{question}"));
    assert_eq!(asked["risk"], json!({ "effect": "write", "reversible": false }), "{asked}");
    assert_eq!(get("/api/upstreams", "/api/upstreams")["items"][0]["state"], "ready");
    assert!(get("/api/tools", "/api/tools")["items"].as_array().is_some_and(|tools| tools.len() > 4));
    assert_eq!(get("/api/tools/{tool}", "/api/tools/issue_refund")["contract"]["effect"], "keyed");
    get("/api/playbook", "/api/playbook");
    get("/api/machines", "/api/machines");
    get("/api/unclassified", "/api/unclassified");
    assert!(get("/api/checkpoints", "/api/checkpoints")["items"].as_array().is_some_and(|found| !found.is_empty()));
    for path in ["/api/machines/refund/graph.svg".to_owned(), format!("/api/sessions/{walk}/graph.svg")] {
        let shown = [("authorization", &*format!("Bearer {TOKEN}"))];
        let (status, head, svg) = ask_with(&gateway, "GET", &path, &shown, None);
        assert!(status == 200 && head.contains("image/svg+xml") && svg.starts_with(b"<svg"), "{path}: {head}");
    }

    let post = |route: &str, path: &str, body: Value, wanted| fits(&gateway, "POST", route, path, Some(body), wanted);
    let rules = "[tools.charge_card.playbook.rate_limited]\ncompensation = \"surface\"\n";
    assert!(post("/api/whatif", "/api/whatif", json!({ "playbook": rules }), 200)["sessions"].as_u64() > Some(0));
    assert_eq!(post("/api/verify", "/api/verify", json!({}), 200)["consistent"], true);
    let proposal = json!({ "upstream": "shop", "when": "result.code == 'x'", "failure": "RateLimited" });
    let proposed = post("/api/unclassified/proposals", "/api/unclassified/proposals", proposal, 201);
    let file = proposed["file"].as_str().expect("a file");
    assert_eq!(std::fs::read_to_string(file).expect("it was written"), proposed["text"].as_str().expect("a text"));
    let (route, path) = ("/api/interactions/{interaction}/answer", format!("/api/interactions/{question}/answer"));
    assert_eq!(post(route, &path, json!({ "choice": "perhaps" }), 400)["field"], "choice");
    assert_eq!(post(route, &path, json!({ "choice": "happened", "note": "seen" }), 200)["fate"], "taken");
    assert_eq!(post(route, &path, json!({ "choice": "did_not_happen" }), 409)["fate"], "late");
    assert_eq!(place.events_named("doubt_resolved").len(), 1);
    place.settled();
}

#[test]
fn nonsense_is_answered_with_what_is_wrong_with_it() {
    let place = Place::new();
    let (gateway, History { question, session, .. }) = serve_history(&place);
    let unknown = [
        ("/api/sessions/{session}", "/api/sessions/ses_nothing"),
        ("/api/sessions/{session}/links", "/api/sessions/%00/links"),
        ("/api/sessions/{session}/walk", &*format!("/api/sessions/{session}/walk")),
        ("/api/calls/{call}", "/api/calls/call_nothing"),
        ("/api/interactions/{interaction}", "/api/interactions/int_nothing"),
        ("/api/tools/{tool}", "/api/tools/nothing"),
        ("/api/machines/{machine}/graph.svg", "/api/machines/nothing/graph.svg"),
    ];
    for (route, path) in unknown {
        assert_eq!(fits(&gateway, "GET", route, path, None, 404)["code"], "not_found", "{path}");
    }
    for (path, field) in [
        ("/api/sessions?limit=many", "limit"),
        ("/api/sessions?limit=0", "limit"),
        ("/api/sessions?limit=100000", "limit"),
        ("/api/sessions?limit=-1", "limit"),
        ("/api/sessions?open=perhaps", "open"),
        ("/api/sessions?after=ses_nothing", "after"),
        ("/api/sessions?limt=3", "limt"),
        ("/api/sessions?search=%ff", "search"),
        ("/api/sessions?door=a&door=b", "door"),
        ("/api/calls?state=gone", "state"),
        ("/api/calls?after=call_nothing", "after"),
        ("/api/interactions?all=1", "all"),
        ("/api/checkpoints?limit=1e3", "limit"),
        ("/api/tools?x=1", "x"),
    ] {
        let route = path.split('?').next().unwrap_or_default();
        assert_eq!(fits(&gateway, "GET", route, path, None, 400)["field"], field, "{path}");
    }
    let answer = format!("/api/interactions/{question}/answer");
    for (body, field) in [
        (json!({}), "choice"),
        (json!({ "choice": 5 }), "choice"),
        (json!({ "choice": "happened", "note": ["x"] }), "note"),
        (json!({ "choice": "happened", "by": "somebody else" }), "by"),
        (json!({ "choice": "x".repeat(5000) }), "choice"),
        (json!([]), "body"),
    ] {
        let said = fits(&gateway, "POST", "/api/interactions/{interaction}/answer", &answer, Some(body.clone()), 400);
        assert_eq!(said["field"], field, "{body}");
    }
    for (path, body, field) in [
        ("/api/whatif", json!({ "playbook": "[ledger]\nurl = \"memory:\"" }), "playbook"),
        ("/api/whatif", json!({ "playbook": "[retry]\n", "since": "soon" }), "since"),
        ("/api/whatif", json!({ "playbook": "[retry]\n", "since": "9000d" }), "since"),
        (
            "/api/unclassified/proposals",
            json!({ "upstream": "no", "when": "true", "failure": "RateLimited" }),
            "upstream",
        ),
        ("/api/unclassified/proposals", json!({ "upstream": "shop", "when": "((", "failure": "RateLimited" }), "when"),
        (
            "/api/unclassified/proposals",
            json!({ "upstream": "shop", "when": "true", "failure": "RatLimited" }),
            "failure",
        ),
        ("/api/verify", json!({ "deep": true }), "deep"),
    ] {
        assert_eq!(fits(&gateway, "POST", path, path, Some(body.clone()), 400)["field"], field, "{path} {body}");
    }
    assert!(!place.path("proposals").exists(), "nothing was written");

    let token = format!("Bearer {TOKEN}");
    let shown = [("authorization", token.as_str())];
    for (method, path, allow) in
        [("DELETE", "/api/sessions", "GET"), ("PUT", "/api/checkpoints", "GET, POST"), ("GET", "/api/verify", "POST")]
    {
        let (status, head, said) = ask_with(&gateway, method, path, &shown, None);
        assert_eq!(status, 405, "{method} {path}");
        assert!(head.contains(&format!("allow: {allow}")) && head.contains("application/problem+json"), "{head}");
        let said: Value = serde_json::from_slice(&said).expect("JSON");
        assert_eq!(said["code"], "method_not_allowed");
    }
    let as_text = [shown[0], ("content-type", "text/plain")];
    assert_eq!(ask_with(&gateway, "POST", "/api/whatif", &as_text, Some(json!({ "playbook": "" }))).0, 415);
    let large = json!({ "playbook": "x".repeat(300_000) });
    assert_eq!(ask_with(&gateway, "POST", "/api/whatif", &shown, Some(large)).0, 413);
    assert_eq!(ask_with(&gateway, "GET", "/api/nothing", &shown, None).0, 404);
    assert_eq!(ask(&gateway, "GET", "/api/me", None).0, 200, "it is still there");
    place.settled();
}

#[test]
fn nobody_gets_in_without_a_token_and_no_page_makes_a_browser_act() {
    let place = Place::new();
    let gateway = serve(&place, &place.ledger());
    for shown in [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic dG9r"), Some(TOKEN)] {
        let headers: Vec<(&str, &str)> = shown.map(|shown| ("authorization", shown)).into_iter().collect();
        for path in ["/api/me", "/api/sessions", "/api/live", "/api/openapi.json", "/", "/sessions", "/queue"] {
            let (status, head, _) = ask_with(&gateway, "GET", path, &headers, None);
            assert_eq!(status, 401, "{shown:?} {path}");
            assert!(head.contains("www-authenticate: Bearer"), "{head}");
        }
    }
    let in_query = format!("/api/me?token={TOKEN}");
    assert_eq!(ask_with(&gateway, "GET", &in_query, &[], None).0, 401, "a token in an address is no token");
    assert_eq!(ask_with(&gateway, "GET", &format!("/?token={TOKEN}"), &[], None).0, 401);
    let forged = [("cookie", "amends_console=7b7d.0000")];
    assert_eq!(ask_with(&gateway, "GET", "/", &forged, None).0, 401);

    // Signed in with the form, a browser holds a session; what it is made to send by another page is not done.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let (status, head, _) = ask_raw(&gateway, "POST", "/sign-in", &form, &format!("token={TOKEN}"));
    assert_eq!(status, 303, "{head}");
    assert!(head.contains("HttpOnly; SameSite=Strict"), "{head}");
    let cookie =
        head.split("set-cookie: ").nth(1).and_then(|rest| rest.split(';').next()).expect("a cookie").to_owned();
    let with = |more: &[(&'static str, &str)]| {
        let mut headers = vec![("cookie", cookie.as_str())];
        headers.extend(more);
        ask_with(&gateway, "POST", "/api/verify", &headers, Some(json!({})))
    };
    let (_, _, me) = ask_with(&gateway, "GET", "/api/me", &[("cookie", &cookie)], None);
    let me: Value = serde_json::from_slice(&me).expect("JSON");
    let page = me["page"].as_str().expect("what pages show").to_owned();
    assert_eq!(with(&[]).0, 403);
    assert_eq!(with(&[("x-amends-page", "guessed")]).0, 403);
    assert_eq!(
        with(&[("x-amends-page", &page), ("origin", "http://127.0.0.1:1")]).0,
        403,
        "another port is another page"
    );
    assert_eq!(with(&[("x-amends-page", &page), ("origin", "https://evil.example")]).0, 403);
    let own = format!("http://{}", gateway.address);
    assert_eq!(with(&[("x-amends-page", &page), ("origin", &own)]).0, 200);
}

#[test]
fn what_is_recorded_is_told_as_it_is_and_goes_on_where_somebody_was() {
    use std::io::{BufRead, BufReader, Write};
    let place = Place::new();
    let gateway = serve(&place, &place.ledger());
    let open = |last: Option<&str>| {
        let mut stream = std::net::TcpStream::connect(&gateway.address).expect("a connection");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /api/live HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n{last}\r\n",
            gateway.address
        );
        stream.write_all(head.as_bytes()).expect("the request is sent");
        BufReader::new(stream)
    };
    // The next event: its id, its name, its data.
    let next = |stream: &mut BufReader<std::net::TcpStream>| {
        let (mut id, mut name) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).expect("a line") > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(found) = line.strip_prefix("id: ") {
                id = found.to_owned();
            } else if let Some(found) = line.strip_prefix("event: ") {
                name = found.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).expect("JSON");
                return (id, name, data);
            }
        }
    };
    let mut stream = open(None);
    assert_eq!(next(&mut stream).1, "here");
    gateway.call("get_order", r#"{"order":"ord_1"}"#);
    let (first, name, fact) = next(&mut stream);
    assert_eq!((name.as_str(), &fact["event"]), ("fact", &json!("session_opened")), "{fact}");
    let (_, _, second) = next(&mut stream);
    assert_eq!(second["event"], "call_received", "{second}");
    drop(stream);
    let mut again = open(Some(&first));
    assert_eq!(next(&mut again).1, "here");
    assert_eq!(next(&mut again).2, second, "it goes on after what was seen last");
    let mut other = open(Some("another.7"));
    assert_eq!(next(&mut other).1, "lost");
    eventually("it is recorded", || place.open_calls() == 0);
}
