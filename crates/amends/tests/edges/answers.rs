//! Answers that are empty, cut, failed in part or stale are told from whole ones.

use serde_json::{Value, json};

use crate::support::http::post;
use crate::support::{Gateway, Place};

const SHOP: &str = r#"
[upstreams.shop]
command = ["amends"]
prefix = ""

[tools.get_order]
effect = "read"

[tools.get_order.answer]
rows = "args.order == 'ord_none' ? [] : [result.id]"
truncated = "args.order == 'ord_cut'"
errors = "args.order == 'ord_broken' ? [{'item': 'line 2', 'status': 404}] : []"
stale = "args.order == 'ord_old'"
confidence = "result.no_such_field"
provenance = "['orders']"
follow_up = ["get_refund"]
"#;

fn up(place: &Place) -> Gateway {
    let config = place.write("shaped.toml", SHOP).display().to_string();
    place.up_with("", &["--config", &config])
}

fn mcp(gateway: &Gateway, order: &str) -> Value {
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "get_order", "arguments": { "order": order } },
    });
    post(&gateway.address, "/mcp", &[], request.to_string().as_bytes()).1["result"].take()
}

#[test]
fn the_status_says_what_an_answer_looks_like_on_both_doors() {
    let place = Place::new();
    let gateway = up(&place);
    for (order, status) in [
        ("ord_1", "success"),
        ("ord_none", "empty"),
        ("ord_cut", "partial"),
        ("ord_broken", "partial"),
        ("ord_old", "degraded"),
    ] {
        let (code, envelope) = gateway.call("get_order", &json!({ "order": order }).to_string());
        assert_eq!((code, &envelope["status"]), (200, &json!(status)), "{envelope}");
        assert_eq!((&envelope["outcome"], envelope["data"].is_object()), (&json!("succeeded"), true), "{envelope}");
        assert_eq!(envelope["follow_up_hints"], json!(["get_refund"]));
        assert_eq!(envelope["provenance"], json!([{ "source": "orders" }]));
        assert!(envelope.get("confidence").is_none(), "an expression without an answer says nothing");
        // What is forwarded stays a success of the upstream's own making; only what stands beside it says more.
        let result = mcp(&gateway, order);
        assert!(result["isError"] != json!(true) && result["structuredContent"].get("status") != Some(&json!(status)));
        let beside = &result["_meta"]["amends/envelope"];
        assert_eq!((&beside["status"], beside.get("data")), (&json!(status), None), "{result}");
    }
}

#[test]
fn a_partial_answer_lists_what_failed_and_says_that_it_was_cut() {
    let place = Place::new();
    let gateway = up(&place);
    let broken = gateway.call("get_order", r#"{"order":"ord_broken"}"#).1;
    let error = &broken["errors"][0];
    assert_eq!((&error["item"], &error["code"]), (&json!("line 2"), &json!("NotFound")), "{broken}");
    assert!(broken.get("truncated").is_none() && broken.get("error").is_none());
    let cut = gateway.call("get_order", r#"{"order":"ord_cut"}"#).1;
    assert_eq!((&cut["errors"], &cut["truncated"]), (&json!([]), &json!(true)));
    let old = gateway.call("get_order", r#"{"order":"ord_old"}"#).1;
    assert_eq!(old["degradation_reason"], "stale_answer");
}

/// What a refused call is answered over MCP, with that in its `_meta`.
fn refused(gateway: &Gateway, meta: &Value) -> Value {
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "get_order", "arguments": { "ordr": "ord_1" }, "_meta": meta },
    });
    post(&gateway.address, "/mcp", &[], request.to_string().as_bytes()).1["result"].take()
}

#[test]
fn our_own_answers_are_given_in_the_dialect_that_the_config_or_the_call_names() {
    let place = Place::new();
    let config = format!("[listen]\ndialect = \"schemabrain\"\n{SHOP}");
    let config = place.write("spoken.toml", &config).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let said = refused(&gateway, &json!({}));
    let native = said["_meta"]["amends/envelope"].clone();
    assert_eq!((&native["status"], &native["error"]["kind"]), (&json!("refused"), &json!("invalid_argument")));
    let body = text_or_structured(&said);
    assert_eq!(body["error"]["recovery"]["suggested_tool"], "get_order", "{said}");
    assert_eq!(body["error"]["recovery"]["suggested_args"], json!({ "order": "ord_1" }));
    assert!(body["data"].is_null() && body.get("data").is_some(), "what is absent is null: {body}");
    let flat = text_or_structured(&refused(&gateway, &json!({ "amends/dialect": "theodosia" })));
    assert_eq!((&flat["error"], &flat["requested"]), (&json!("validation_failed"), &json!("get_order")));
    let ours = text_or_structured(&refused(&gateway, &json!({ "amends/dialect": "amends" })));
    assert_eq!(ours["error"]["recovery"]["call"]["tool"], "get_order");
    let unknown = refused(&gateway, &json!({ "amends/dialect": "latin" }));
    assert_eq!(unknown["_meta"]["amends/envelope"]["error"]["kind"], "invalid_argument", "{unknown}");
    let forwarded = mcp(&gateway, "ord_1");
    assert_eq!(forwarded["_meta"]["amends/envelope"]["status"], "success", "{forwarded}");
    assert!(forwarded["structuredContent"].get("charter_version").is_none(), "an upstream's answer is its own");
}

/// The envelope of an answer: its structured content, or the second text for clients that validate.
fn text_or_structured(result: &Value) -> Value {
    match result.get("structuredContent") {
        Some(structured) => structured.clone(),
        None => serde_json::from_str(result["content"][1]["text"].as_str().expect("a text")).expect("JSON"),
    }
}
