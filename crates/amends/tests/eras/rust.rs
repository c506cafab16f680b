//! A server of the Rust SDK behind the gateway, for clients of either era.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::asking::by_command;
use crate::support::client::{Client, Sdk};
use crate::support::served::serve_tools;
use crate::support::{AMENDS, Place, eventually, root};

/// What it did, and what was stopped.
#[derive(Clone, Debug, Default)]
struct Desk {
    added: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = || json!({ "type": "object" }).as_object().cloned().expect("an object");
        let tools = ["add", "slow"].map(|name| Tool::new(name, "of the Rust SDK", schema()));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "slow" {
            context.ct.cancelled().await;
            self.stopped.fetch_add(1, Ordering::SeqCst);
            return Err(ErrorData::internal_error("it was stopped", None));
        }
        self.added.fetch_add(1, Ordering::SeqCst);
        let given = Value::Object(request.arguments.unwrap_or_default());
        let sum = given["a"].as_i64().unwrap_or_default() + given["b"].as_i64().unwrap_or_default();
        Ok(CallToolResult::structured(json!({ "sum": sum })).into())
    }
}

/// Serves on a port of this process; gives the command that leads there. It lives as long as the test's process.
fn start(desk: &Desk) -> Vec<String> {
    let (desk, (tell, told)) = (desk.clone(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address").port()).expect("the test waits");
            while let Ok((stream, _)) = listener.accept().await {
                let desk = desk.clone();
                tokio::spawn(async move {
                    if let Ok(running) = desk.serve(tokio::io::split(stream)).await {
                        let _ = running.waiting().await;
                    }
                });
            }
        });
    });
    let port = told.recv().expect("a port");
    let script = root().join("crates/amends/tests/eras/servers/bridge.py").display().to_string();
    vec!["python3".into(), script, port.to_string()]
}

/// One call that is answered, and one that is cancelled.
fn adds_and_stops(place: &Place, desk: &Desk, client: &mut Client, who: &str) {
    let before = (desk.added.load(Ordering::SeqCst), desk.stopped.load(Ordering::SeqCst));
    let answer = client.call("add", json!({ "a": 3, "b": 4, "who": who }));
    assert_eq!(answer["result"]["structuredContent"]["sum"], 7, "{who}: {answer}");
    assert_eq!(desk.added.load(Ordering::SeqCst), before.0 + 1, "{who}");
    let ended = place.events_named("call_ended").len();
    let slow = client.begin_call("slow", json!({ "who": who }));
    eventually("the call is on its way", || {
        let started = place.events_named("attempt_started");
        started.iter().filter(|event| event["tool"] == "slow").count() > before.1
    });
    assert_eq!(client.run(json!({ "op": "cancel", "call": slow }))["ok"], true, "{who}");
    eventually("the server stops", || desk.stopped.load(Ordering::SeqCst) == before.1 + 1);
    eventually("the call is over", || place.events_named("call_ended").len() == ended + 1);
}

const SLOW: &str = "[tools.slow]\neffect = \"read\"\ntimeout = \"60s\"\ndeadline = \"60s\"\n";

#[test]
fn clients_of_either_era_use_a_server_of_the_rust_sdk() {
    let (place, desk) = (Place::new(), Desk::default());
    let gateway = serve_tools(&place, &by_command(&start(&desk)), SLOW);
    for (sdk, era) in [(Sdk::Python, "legacy"), (Sdk::Python, "modern"), (Sdk::TypeScript, "legacy")] {
        let mut client = Client::http(sdk, Some(era), &gateway.mcp());
        adds_and_stops(&place, &desk, &mut client, &format!("{sdk:?} {era}"));
    }
    place.settled();
}

#[test]
fn clients_of_either_era_wrap_a_server_of_the_rust_sdk() {
    for era in ["legacy", "modern"] {
        let (place, desk) = (Place::new(), Desk::default());
        let (ledger, config) = (place.ledger(), place.write("wrap.toml", SLOW).display().to_string());
        let server = start(&desk);
        let mut words = vec![AMENDS, "wrap", "--ledger", &ledger, "--config", &config, "--"];
        words.extend(server.iter().map(String::as_str));
        let mut client = Client::stdio(Sdk::Python, Some(era), &words);
        adds_and_stops(&place, &desk, &mut client, era);
    }
}
