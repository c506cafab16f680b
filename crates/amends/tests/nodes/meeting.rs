//! What arrives at one node and concerns another.

use std::io::Read;
use std::time::Instant;

use serde_json::{Value, json};

use crate::postgres_server::Cluster;
use crate::support::http::{post, send};
use crate::support::{Gateway, eventually};
use crate::{Site, answer, faults};

const CHARGE: &str = r#"{"order":"ord_1","amount":5}"#;

#[test]
fn equal_calls_at_three_nodes_are_one_effect() {
    let site = Site::over(Cluster::shared().database());
    let script = faults("charge_card", "ord_1", &["late"], "late_ms = 1500");
    let nodes = [site.place.up_patient(&script), site.place.up_patient(&script), site.place.up_patient(&script)];
    let streams: Vec<_> = nodes.iter().map(|node| node.begin("charge_card", CHARGE)).collect();
    let answers: Vec<Value> = streams.into_iter().map(answer).collect();
    assert!(answers.iter().all(|answer| answer["status"] == "success"), "{answers:?}");
    assert!(answers.iter().all(|answer| answer["data"] == answers[0]["data"]), "{answers:?}");
    let replayed = answers.iter().filter(|answer| answer["replayed"] == true).count();
    assert_eq!(replayed, 2, "{answers:?}");
    assert_eq!((site.place.effects("charge_card"), site.place.requests("charge_card")), (1, 1));
    site.place.settled();
}

#[test]
fn a_persons_answer_at_one_node_wakes_the_call_at_another() {
    let site = Site::over(Cluster::shared().database());
    let config = "[tools.get_order]\neffect = \"read\"\n\
                  [tools.get_order.playbook.server_error_5xx]\ncompensation = \"escalate_to_human\"\nqueue = \"ops\"\n";
    let config = site.place.write("ask.toml", config).display().to_string();
    let script = faults("get_order", "ord_1", &["status_500"], "");
    let up = || site.place.up_with(&script, &["--config", &config]);
    let (waits, _other) = (up(), up());
    let call = waits.begin("get_order", r#"{"order":"ord_1"}"#);
    let queue = || {
        let (_, said) = site.place.amends(&["queue", "--json"]);
        serde_json::from_str::<Value>(&said).expect("JSON")["queue"].as_array().cloned().expect("a list")
    };
    eventually("a person is asked", || !queue().is_empty());
    let asked = queue()[0]["id"].as_str().expect("an id").to_owned();
    // The command is a node of its own.
    let reading = std::thread::spawn(move || (answer(call), Instant::now()));
    let began = Instant::now();
    let (code, said) = site.place.amends(&["answer", &asked, "approve"]);
    assert_eq!(code, 0, "{said}");
    let (answer, arrived) = reading.join().expect("an answer");
    assert_eq!(answer["status"], "success", "{answer}");
    eprintln!("answered after {} ms, the command's own start included", arrived.duration_since(began).as_millis());
    site.place.settled();
}

#[test]
fn a_session_is_forgotten_whichever_of_the_nodes_holds_it() {
    let site = Site::over(Cluster::shared().database());
    let nodes = [site.place.up(""), site.place.up("")];
    for round in 0..4 {
        let order = format!("ord_{round}");
        let (_, read) = nodes[round % 2].call("get_order", &format!(r#"{{"order":"{order}"}}"#));
        assert_eq!(read["status"], "success", "{read}");
        let mut call = String::new();
        eventually("the read is recorded", || {
            let events = site.place.events_named("call_received");
            let found = events.iter().find(|event| event["view"].as_str().is_some_and(|view| view.contains(&order)));
            call = found.and_then(|event| event["call"].as_str()).unwrap_or_default().to_owned();
            !call.is_empty()
        });
        eventually("nobody uses it", || {
            let (code, said) = site.place.amends(&["forget", &call, "--yes"]);
            assert!(code == 0 || said.contains("connected"), "{said}");
            code == 0
        });
    }
    site.place.settled();
}

#[test]
fn an_mcp_session_of_one_node_goes_on_at_another() {
    let site = Site::over(Cluster::shared().database());
    let (here, there) = (site.place.up(""), site.place.up(""));
    let id = greeted(&here);
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "charge_card", "arguments": { "order": "ord_1", "amount": 5 } },
    });
    let call = call.to_string();
    let (status, first) = post(&here.address, "/mcp", &[("mcp-session-id", &id)], call.as_bytes());
    assert_eq!((status, &first["result"]["structuredContent"]["order"]), (200, &json!("ord_1")), "{first}");
    let (status, listed) =
        post(&there.address, "/mcp", &[("mcp-session-id", &id)], br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert!(status == 200 && listed["result"]["tools"].is_array(), "{status} {listed}");
    let other = call.replace("ord_1", "ord_2");
    let (status, second) = post(&there.address, "/mcp", &[("mcp-session-id", &id)], other.as_bytes());
    assert_eq!((status, &second["result"]["structuredContent"]["order"]), (200, &json!("ord_2")), "{second}");

    let mut forged = id.clone();
    let last = if forged.pop() == Some('0') { '1' } else { '0' };
    forged.push(last);
    let (status, refused) = post(&there.address, "/mcp", &[("mcp-session-id", &forged)], other.as_bytes());
    assert_eq!(status, 404, "{refused}");
    assert_eq!(site.place.effects("charge_card"), 2);
    site.place.settled();
}

fn greeted(gateway: &Gateway) -> String {
    let greet =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    let mut stream = send(&gateway.address, "/mcp", &[], greet.to_string().as_bytes());
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a greeting");
    answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned()
}
