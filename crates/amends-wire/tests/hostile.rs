//! Nothing that arrives can make us panic: random bytes, and valid messages that were bitten into.

use amends_core::Contract;
use amends_wire::a2a::{Incoming, Version, agent, old, reply as tasks};
use amends_wire::mcp::classify::{self, Signal};
use amends_wire::mcp::{Era, ToolCall, ToolList, reply, steps, tools};
use amends_wire::{Message, Object, Problem, Scanner, Schema, Splice};
use serde_json::Value;
use serde_json::value::RawValue;

/// A small generator of chance (xorshift), so that a failing seed can be run again.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % below.max(1)
    }
}

const SEEDS: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"step","arguments":{"action":"pay","inputs":"{\"amount\":5}","session":"ses_1","expect_seq":3}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"n":1.0,"s":"\u00e4\"x"},"_meta":{"progressToken":3,"amends/key":"k"}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"{\"status\":409,\"code\":\"in_flight\"}"}],"isError":true}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no","data":{"status":429,"retry_after":2}}}"#,
    r##"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/y"}},"$defs":{"y":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}}]}"##,
    r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"charter_version":"1.0","error":{"code":"RateLimited","certainty":"in_doubt"}},"isError":true}"#,
    r#"{"resultType":"input_required","inputRequests":{},"_meta":{}}"#,
    r#"{"type":"object","required":["a"],"properties":{"a":{"pattern":"^(a+)+$"},"b":{"enum":[1,"x",null]}},"additionalProperties":false}"#,
    r#"[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1e999}}]"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{"data":{"tool":"pay","args":{"n":1}}},{"raw":"AA==","mediaType":"image/png"},{"file":{"file_with_uri":"u","mime_type":"a/b"}}]},"configuration":{"blocking":true,"push_notification":{"url":"http://h","authentication":{"schemes":["Bearer"]}}}}"#,
    r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_CANCELED","message":{"messageId":"m","parts":[{"data":{"url":"https://h"}},{"url":"https://h/a","filename":"a"}]}}},"configs":[{"taskId":"t","id":"p","url":"http://h","authentication":{"scheme":"Bearer"}}]}"#,
    r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]},"data":{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/json","text":"{}"}},{"type":"resource_link","uri":"u","name":"n"}]}}"#,
];

fn mutated(chance: &mut Chance) -> Vec<u8> {
    let mut bytes = SEEDS[chance.next(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..=chance.next(6) {
        let at = chance.next(bytes.len());
        match chance.next(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, b"{}[]\",:\\0n\x00\xff"[chance.next(12)]),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => bytes[at] = chance.next(256) as u8,
            4 => {
                let other = SEEDS[chance.next(SEEDS.len())].as_bytes();
                let from = chance.next(other.len());
                let piece = other[from..(from + chance.next(40)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.splice(at..at, b"[".repeat(chance.next(300))).for_each(drop),
        }
    }
    bytes
}

/// The arguments of a machine's tools are read, or every fault of them is named.
fn step(call: &ToolCall<'_>) {
    let faults = |refusal: amends_core::Refusal| {
        assert!(!refusal.details.is_empty() && refusal.message.len() < 8192, "{refusal:?}");
    };
    for tool in steps::Tool::ALL {
        let _ = steps::read(tool, tool.as_str(), call.arguments()).map_err(|refusal| faults(*refusal));
    }
    let _ = steps::read_action("pay", "order", "pay", None, call.arguments()).map_err(|refusal| faults(*refusal));
    let _ = (steps::session_of(call.arguments()), steps::action_of(call.arguments()));
}

/// What agents and their clients say is read, or refused.
fn a2a(text: &str) {
    for params in [old::sent(text), old::registered(text)].into_iter().flatten() {
        assert!(serde_json::from_str::<Value>(&params).is_ok(), "{params}");
    }
    let _ = (old::told(text), agent::Agent::read(text));
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let _ = agent::Said::read(&value);
        let _ = agent::Task::read(&value).map(|task| (task.result(), task.asks_elsewhere()));
    }
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else { return };
    for version in [Version::V1, Version::V03] {
        for (_, parts) in tasks::artifacts(raw).into_iter().chain(tasks::given(raw)) {
            for part in parts {
                let written = part.json(version);
                assert!(serde_json::from_str::<&RawValue>(&written).is_ok(), "{written}");
            }
        }
        if let Ok(incoming) = Incoming::read(raw, version) {
            let _ = (incoming.wanted(), incoming.strange(&[]), incoming.content(&Value::Null));
        }
    }
}

fn exercise(bytes: &[u8], chance: &mut Chance) {
    let mut scanner = Scanner::new(64);
    for chunk in bytes.chunks(1 + chance.next(40)) {
        let _ = scanner.feed(chunk);
    }
    let scanned = scanner.finish();
    let text = String::from_utf8_lossy(bytes);
    let contract = Contract::undeclared(1, 1, 1);
    match Message::parse(&text) {
        Ok(Message::Request { id, params, method }) => {
            assert_eq!(scanned.id.as_ref().map(|id| id.get()), Some(id.get()), "{text}");
            let _ = Era::detect(&method, params);
            if let Ok(call) = ToolCall::parse(params) {
                let _ = call.meta();
                let sent = call.outgoing(&Default::default());
                assert!(Object::parse(&sent).is_some(), "{sent}");
                step(&call);
            }
        }
        Ok(Message::Success { result, .. }) => drop(classify::result(result.get(), &contract, None, &[])),
        Ok(Message::Failure { error, .. }) => {
            drop(classify::rpc_error(error.code, &error.message, error.data, &contract, &[]));
        }
        Ok(Message::Notification { .. }) | Err(_) => {}
    }
    let _ = classify::result(&text, &contract, None, &[]);
    let _ = classify::structured(&text);
    a2a(&text);
    let _ = steps::Address::parse(&text);
    for given in [
        Signal::Unreadable { text_start: &text },
        Signal::HttpStatus { status: 409, retry_after: Some(&text), content_type: Some(&text), body: &text },
    ] {
        let _ = classify::signal(given, &contract, &[], 0);
    }
    if let Some(list) = ToolList::parse(&text) {
        for tool in list.tools {
            let _ = tools::rename(&tool.raw, &text);
            let _ = tool.input_schema.map(|schema| Schema::compile(&schema));
        }
    }
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        let _ = Problem::read(&value);
        if let Ok(schema) = Schema::from_value(value.clone()) {
            let _ = schema.check(&value);
            let _ = schema.recovery("t", &value);
        }
    }
    if let Ok(raw) = serde_json::from_str::<&RawValue>(&text) {
        let envelope = amends_core::Envelope::of(amends_core::envelope::Body::Empty {
            outcome: amends_core::Outcome::Succeeded,
            data: None,
        });
        let traits = reply::ClientTraits::of(Era::Modern, None);
        let sent = reply::forward(raw.get(), &envelope, None, traits);
        assert!(serde_json::from_str::<&RawValue>(&sent).is_ok(), "{sent}");
        let mut splice = Splice::new(raw.get());
        if splice.set_member(raw.get(), "id", "0").is_ok() && splice.remove_member(raw.get(), "name").is_ok() {
            let done = splice.finish();
            assert!(Object::parse(&done).is_some_and(|object| object.get("name").is_none()), "{done}");
        }
    }
}

#[test]
fn bitten_messages_never_make_us_panic() {
    let mut chance = Chance(0x5eed_cafe);
    for _ in 0..20_000 {
        let bytes = mutated(&mut chance);
        exercise(&bytes, &mut chance);
    }
}

#[test]
fn random_bytes_never_make_us_panic() {
    let mut chance = Chance(0xbad_5eed);
    for _ in 0..5_000 {
        let bytes: Vec<u8> = (0..chance.next(200)).map(|_| chance.next(256) as u8).collect();
        exercise(&bytes, &mut chance);
    }
}

#[test]
fn everything_a_real_client_or_server_sent_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire/mcp/captures");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().contains("stdio") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let Some(bytes) = line["bytes"].as_str() else {
                continue;
            };
            for text in bytes.lines().filter(|text| !text.trim().is_empty()) {
                Message::parse(text).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display()));
                read += 1;
            }
        }
    }
    assert!(read > 50, "only {read} messages");
}
