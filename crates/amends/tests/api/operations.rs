//! Calls of an API's operations: what is sent, how often, and what the agent hears.

use serde_json::{Value, json};

use crate::server::Api;
use crate::support::client::{Client, Sdk};
use crate::support::{Gateway, Place, eventually};
use crate::{before, get};

const KEYED: &str = "[tools.refund]\neffect = \"keyed\"\nkey = { header = \"Idempotency-Key\", window = \"24h\" }\n";

fn charge(gateway: &Gateway, order: &str) -> (u16, Value) {
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    gateway.call("charge", &format!(r#"{{"order":"{order}","amount":5.50}}"#))
}

#[test]
fn operations_are_listed_and_called_through_mcp_like_any_tool() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", "");
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    // The strictest reader of schemas, and one of the other era.
    for (sdk, era) in [(Sdk::TypeScriptV1, None), (Sdk::Python, Some("modern"))] {
        let mut client = Client::http(sdk, era, &gateway.mcp());
        let listed = client.run(json!({ "op": "list" }));
        let text = listed.to_string();
        for name in ["getOrder", "replaceOrder", "deleteOrder", "charge", "refund"] {
            assert!(text.contains(&format!("\"{name}\"")), "{sdk:?}: {text}");
        }
        let read = client.call("getOrder", json!({ "order": "a b", "fields": ["x", "y"] }));
        assert_eq!(read["result"]["structuredContent"]["order"], "a%20b", "{sdk:?}: {read}");
        assert_eq!(read["result"]["_meta"]["amends/http"]["etag"], "\"v0\"", "{read}");
        let bad = client.call("charge", json!({ "order": "ord", "amount": 0 }));
        assert_eq!(bad["result"]["isError"], true, "{sdk:?}: {bad}");
    }
    let read = api.seen("GET", "a%20b");
    assert_eq!(read[0].target, "/v1/orders/a%20b?fields=x&fields=y");
    assert_eq!(api.effects("ord"), 0, "a wrong amount is refused before anything is sent");
    place.settled();
}

#[test]
fn parts_and_paths_are_written_as_the_document_wants_them() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", "");
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    let listed = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp()).run(json!({ "op": "list" }));
    assert!(listed.to_string().contains("\"scan\""), "{listed}");
    let (status, done) =
        gateway.call("scan", r#"{"order":"ord","page":2,"file":"iVBO/w==","note":"a\r\n--b","about":{"n":1.0}}"#);
    assert_eq!(status, 200, "{done}");
    let seen = api.seen("POST", ".ord/scans;page=2");
    let media = seen[0].header("content-type").expect("a type");
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap_or_else(|| panic!("{media}"));
    let parts: Vec<&str> = seen[0].body.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{}", seen[0].body);
    assert!(
        parts[1].contains("filename=\"file\"\r\ncontent-type: image/png\r\n\r\n\u{fffd}PN\u{fffd}"),
        "{}",
        parts[1]
    );
    assert!(parts[2].ends_with("name=\"note\"\r\n\r\na\r\n--b\r\n"), "{}", parts[2]);
    assert!(parts[3].ends_with("content-type: application/json\r\n\r\n{\"n\":1.0}\r\n"), "{}", parts[3]);
    let before = api.requests();
    let (_, refused) = gateway.call("scan", r#"{"order":"ord","page":2,"file":"?"}"#);
    assert_ne!(refused["status"], "success", "{refused}");
    let (_, refused) = gateway.call("scan", r#"{"order":".","page":2,"file":""}"#);
    assert_ne!(refused["status"], "success", "{refused}");
    assert_eq!(api.requests(), before, "nothing of it was sent");
    place.settled();
}

#[test]
fn the_trace_of_a_plain_call_goes_on_in_the_headers() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", "");
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("traceparent", parent), ("tracestate", "vendor=1"), ("baggage", "who=ann")];
    gateway.call_with("charge", &headers, r#"{"order":"traced","amount":5}"#);
    let seen = api.seen("POST", "traced");
    for (name, value) in headers {
        assert_eq!(seen[0].header(name), Some(value));
    }
    assert_eq!(api.seen("GET", "ord")[0].header("traceparent"), None, "none is made up");
}

#[test]
fn a_write_without_an_answer_is_in_doubt_and_never_sent_again() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", "");
    for (order, code) in [("hang", "NetworkTimeout"), ("reset", "ConnectionLost"), ("cut", "ConnectionLost")] {
        let (_, failed) = charge(&gateway, order);
        let error = &failed["error"];
        assert_eq!((&error["code"], &error["certainty"]), (&json!(code), &json!("in_doubt")), "{order}: {failed}");
        assert_eq!(error["safe_to_repeat"], false, "{failed}");
        assert_eq!((api.seen("POST", order).len(), api.effects(order)), (1, 1), "{order}");
    }
    assert_eq!(api.seen("POST", "hang")[0].body, r#"{"order":"hang","amount":5.50}"#, "as the agent wrote it");
    place.settled();
}

#[test]
fn a_keyed_write_is_sent_again_with_the_same_key_and_done_once() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", KEYED);
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    for order in ["hang_once", "reset_once", "503_once"] {
        let (status, done) = gateway.call("refund", &format!(r#"{{"order":"{order}","amount":5}}"#));
        assert_eq!((status, &done["outcome"]), (200, &json!("succeeded_after_compensation")), "{order}: {done}");
        let seen = api.seen("POST", order);
        let keys: Vec<_> = seen.iter().map(|seen| seen.header("idempotency-key").expect("a key")).collect();
        assert!(keys.len() == 2 && keys[0] == keys[1], "{order}: {keys:?}");
        assert_eq!(api.effects(order), 1, "{order}");
    }
    place.settled();
}

#[test]
fn a_method_says_what_may_be_sent_again_where_nobody_declared_it() {
    let (place, api) = (Place::new(), Api::start());
    // A section that says nothing of the effect leaves it to the method.
    let gateway = before(&place, &api, "", "[tools.deleteOrder]\nsettles_within = \"5s\"\n");
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    let calls = [
        ("GET", "getOrder", r#"{"order":"503_once"}"#, "503_once"),
        ("PUT", "replaceOrder", r#"{"order":"reset_once","item":"tea"}"#, "reset_once"),
        ("DELETE", "deleteOrder", r#"{"order":"hang_once"}"#, "hang_once"),
    ];
    for (method, tool, arguments, order) in calls {
        let (status, done) = gateway.call(tool, arguments);
        assert_eq!((status, &done["outcome"]), (200, &json!("succeeded_after_compensation")), "{tool}: {done}");
        assert_eq!(api.seen(method, order).len(), 2, "{tool}");
    }
    assert_eq!(api.seen("PUT", "reset_once")[0].body, r#"{"item":"tea"}"#);
    place.settled();
}

#[test]
fn a_status_is_judged_with_its_headers_and_its_problem() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", "");
    for (order, code, certainty, wait) in [
        ("404", "NotFound", "not_processed", None),
        ("409", "ActionError", "in_doubt", None),
        ("409_done", "AlreadyProcessed", "processed", None),
        ("422", "InputInvalid", "not_processed", None),
        ("429", "RateLimited", "in_doubt", Some(7000)),
        ("429_limits", "RateLimited", "in_doubt", Some(9000)),
        ("503", "Provider5xx", "in_doubt", None),
        ("307", "MissingCapability", "not_processed", None),
    ] {
        let (_, failed) = charge(&gateway, order);
        let error = &failed["error"];
        assert_eq!((&error["code"], &error["certainty"]), (&json!(code), &json!(certainty)), "{order}: {failed}");
        if let Some(wait) = wait {
            assert_eq!(error["retry_after_ms"], wait, "{order}: {failed}");
        }
        assert_eq!(api.seen("POST", order).len(), 1, "{order}: sent once, and no redirect is followed");
        assert_eq!(api.effects(order), 0, "{order}");
    }
    let (_, failed) = charge(&gateway, "422");
    assert!(failed.to_string().contains("Bad amount: too much"), "{failed}");
    place.settled();
}

#[test]
fn a_status_whose_word_is_taken_lets_a_plain_write_be_sent_again() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "rejects_before_effect = [503]", "");
    let (_, failed) = charge(&gateway, "503");
    assert_eq!(failed["error"]["certainty"], "not_processed", "{failed}");
    assert_eq!(api.seen("POST", "503").len(), 3, "{failed}");
    assert_eq!(api.effects("503"), 0);
    place.settled();
}

#[test]
fn an_answer_that_cannot_be_used_says_that_it_was_done() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", "");
    for order in ["huge", "broken", "none"] {
        let (_, failed) = charge(&gateway, order);
        let error = &failed["error"];
        assert_eq!((&error["code"], &error["certainty"]), (&json!("OutputMalformed"), &json!("processed")), "{failed}");
        assert_eq!((api.seen("POST", order).len(), api.effects(order)), (1, 1), "{order}");
    }
    // Nothing is declared of what this one gives, so nothing is wrong with nothing.
    assert_eq!(gateway.call("deleteOrder", r#"{"order":"none"}"#).0, 200);
    place.settled();
}

#[test]
fn a_write_goes_with_the_tag_of_what_it_is_based_on() {
    let (place, api) = (Place::new(), Api::start());
    let tools = "[tools.getOrder]\neffect = \"read\"\n\n[tools.replaceOrder]\neffect = \"idempotent\"\nif_match = true\n\
                 evidence = [{ tool = \"getOrder\", args = { order = \"args.order\" } }]\n\n\
                 [tools.deleteOrder]\nif_match = true\nevidence = [{ tool = \"getOrder\", args = { order = \"'untagged'\" } }]\n";
    let gateway = before(&place, &api, "", tools);
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    api.change();
    let (status, done) = gateway.call("replaceOrder", r#"{"order":"ord","item":"tea"}"#);
    assert_eq!(status, 200, "{done}");
    assert_eq!(api.seen("PUT", "ord")[0].header("if-match"), Some("\"v1\""));
    // Somebody else changes it between the read and the write.
    let (_, stale) = gateway.call("replaceOrder", r#"{"order":"changing","item":"tea"}"#);
    assert_eq!(stale["error"]["code"], "EvidenceStale", "{stale}");
    assert_eq!((api.seen("PUT", "changing").len(), api.effects("changing")), (1, 0), "{stale}");
    let (_, unread) = gateway.call("deleteOrder", r#"{"order":"ord"}"#);
    assert_eq!(unread["error"]["code"], "MissingCapability", "{unread}");
    assert_eq!(api.seen("DELETE", "ord").len(), 0, "nothing is sent that nobody could compare");
    place.settled();
}

#[test]
fn an_api_that_is_not_there_is_told_as_unsent_and_found_when_it_comes() {
    let place = Place::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    place.write("shop.yaml", crate::DOCUMENT);
    let upstream = format!(
        "[upstreams.shop]\nopenapi = \"shop.yaml\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nprefix = \"\"\ndeadline = \"2s\"\n"
    );
    let gateway = crate::serve(&place, &upstream, &[]);
    let mut failed = Value::Null;
    eventually("its tools are served before it is there", || {
        failed = gateway.call("charge", r#"{"order":"ord","amount":5}"#).1;
        failed["error"]["kind"] != "index_not_ready"
    });
    assert_eq!(failed["error"]["certainty"], "not_sent", "{failed}");
    let state = || get(&gateway, "/health")["upstreams"]["shop"]["state"].clone();
    assert_eq!(state(), "down");
    let api = Api::start_at(port);
    eventually("that is seen though nobody calls it", || state() == "ready");
    eventually("it is found", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    assert_eq!(api.effects("ord"), 0, "what was not sent is not done later");
    place.settled();
}

#[test]
fn hostile_arguments_go_where_they_belong_or_nowhere() {
    let (place, api) = (Place::new(), Api::start());
    let gateway = before(&place, &api, "", KEYED);
    eventually("the tools are served", || gateway.call("getOrder", r#"{"order":"ord"}"#).0 == 200);
    let before = api.requests();
    for (tool, arguments) in [
        ("getOrder", r#"{"order":".."}"#),
        ("getOrder", r#"{"order":""}"#),
        ("getOrder", r#"{"order":null}"#),
        ("getOrder", r#"{"order":["a"]}"#),
        ("getOrder", r#"{"order":"a","orderr":"b"}"#),
        ("getOrder", r"{}"),
        ("charge", r#"{"order":"ord","amount":"5"}"#),
        ("refund", "{\"order\":\"ord\",\"amount\":5,\"Idempotency-Key\":\"a\\r\\nx: y\"}"),
        ("nothing", r"{}"),
    ] {
        let (status, refused) = gateway.call(tool, arguments);
        assert!((400..500).contains(&status), "{tool} {arguments}: {status} {refused}");
    }
    assert_eq!(api.requests(), before, "nothing of it was sent");
    let (status, read) = gateway.call("getOrder", r#"{"order":"../charges?x=1#y","fields":["a&b=c"]}"#);
    assert_eq!(status, 200, "{read}");
    let target = "/v1/orders/..%2Fcharges%3Fx%3D1%23y?fields=a%26b%3Dc";
    assert_eq!(api.seen("GET", "..%2Fcharges%3Fx%3D1%23y")[0].target, target);
    place.settled();
}
