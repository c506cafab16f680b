//! Rust functions as an upstream: they run in this process, and are judged like anybody else.

mod function;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use amends_wire::mcp::call::DEADLINE;
use amends_wire::mcp::{Era, ToolCall, era};
use amends_wire::message::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
use amends_wire::object::Object;
use futures_util::FutureExt;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;

pub use function::{Errand, Failed, Function, Stopped};

use super::Health;
use super::exchange::{Exchange, ExchangeEnd, Fault, Reply, Request, RpcFault};
use crate::mint;

/// The header in which a function is given the key of its effect.
pub const KEY_HEADER: &str = "idempotency-key";

/// What tells the functions of a program from other upstreams, in the name of a claim. They are the same after a restart.
pub const IDENTITY: &str = "functions";

/// For how long a list of functions may be kept: it never changes.
const LIST_MS: u64 = 60 * 60 * 1000;

/// Functions by their names.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    by_name: Arc<BTreeMap<String, Function>>,
    /// What they are made of, where that is all there is to them.
    mark: Option<Arc<str>>,
}

/// Two are equal where they are the same ones, or made of the same.
impl PartialEq for Functions {
    fn eq(&self, other: &Self) -> bool {
        let alike = self.mark.is_some() && self.mark == other.mark;
        alike || Arc::ptr_eq(&self.by_name, &other.by_name)
    }
}

impl Functions {
    /// The same, made of that: others that are made of the same are no others.
    pub(crate) fn marked(self, mark: &str) -> Self {
        Self { mark: Some(mark.into()), ..self }
    }
}

impl Eq for Functions {}

impl FromIterator<Function> for Functions {
    /// The later of two with the same name counts.
    fn from_iter<I: IntoIterator<Item = Function>>(functions: I) -> Self {
        let by_name = functions.into_iter().map(|function| (function.name().to_owned(), function)).collect();
        Self { by_name: Arc::new(by_name), mark: None }
    }
}

/// Functions that are called.
#[derive(Debug)]
pub struct Host {
    functions: Functions,
    next: AtomicU64,
    health: watch::Sender<Health>,
}

impl Host {
    /// Functions that are ready to be called.
    pub fn start(functions: Functions) -> Self {
        let greeting = json!({
            "protocolVersion": era::LEGACY,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "functions", "version": env!("CARGO_PKG_VERSION") },
        });
        // What they know of earlier keys is gone with the process.
        let run = (mint::seed() >> 1) + 1;
        let ready = Health::Ready { run, era: Era::Legacy, greeting: greeting.to_string().into() };
        Self { functions, next: AtomicU64::new(1), health: watch::Sender::new(ready) }
    }

    /// A number for a request.
    pub fn ticket(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How they are: ready, as long as there is this process.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Calls one.
    pub fn send(&self, request: Request) -> Exchange {
        let (exchange, end) = Exchange::channel();
        match request.method.as_str() {
            "tools/list" => {
                let tools: Vec<_> = self.functions.by_name.values().map(Function::entry).collect();
                answer(end, Reply::Result(json!({ "tools": tools, "ttlMs": LIST_MS }).to_string().into()));
            }
            "tools/call" => match self.named(&request) {
                Ok((function, arguments, errand, stop)) if Instant::now() < request.send_by => {
                    tokio::spawn(ran(function, arguments, errand, stop, end));
                }
                Ok(_) => answer(end, Reply::Fault(Fault::NotWritten)),
                Err(reply) => answer(end, reply),
            },
            method => answer(end, failure(METHOD_NOT_FOUND, format!("functions have no `{method}`"))),
        }
        exchange
    }

    /// The function that a request is for, and what it is told.
    fn named(&self, request: &Request) -> Result<(Function, Value, Errand, watch::Sender<bool>), Reply> {
        let params = request.params.as_deref().unwrap_or("{}");
        let raw = serde_json::from_str::<&RawValue>(params).ok();
        let Some(call) = raw.and_then(|raw| ToolCall::parse(Some(raw)).ok()) else {
            return Err(failure(INVALID_PARAMS, "the call cannot be read".to_owned()));
        };
        let Some(function) = self.functions.by_name.get(call.name()) else {
            return Err(failure(INVALID_PARAMS, format!("there is no function `{}`", call.name())));
        };
        let arguments = serde_json::from_str(call.arguments().map_or("{}", RawValue::get));
        let arguments = arguments.map_err(|error| failure(INVALID_PARAMS, error.to_string()))?;
        let left_ms = call
            .raw_meta()
            .and_then(|meta| Object::parse(meta.get()))
            .and_then(|meta| meta.get(DEADLINE))
            .and_then(|left| left.get().parse().ok());
        let key = request.headers.iter().find(|(name, _)| name == KEY_HEADER).map(|(_, key)| key.clone());
        let (stop, stopped) = watch::channel(false);
        let errand = Errand { key, left: left_ms.map(Duration::from_millis), stopped: Stopped::new(stopped) };
        Ok((function.clone(), arguments, errand, stop))
    }
}

/// Runs a function to its end. One that should stop is told so; only when nobody waits any more is it dropped.
async fn ran(function: Function, arguments: Value, errand: Errand, stop: watch::Sender<bool>, end: ExchangeEnd) {
    let ExchangeEnd { mut reply, mut abort } = end;
    let work = AssertUnwindSafe(async { function.run(arguments, errand).await }).catch_unwind();
    tokio::pin!(work);
    let mut told = false;
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            asked = &mut abort, if !told => {
                told = true;
                if asked.is_ok() {
                    stop.send_replace(true);
                }
            }
            () = reply.closed() => return,
        }
    };
    let told = match ended {
        Ok(Ok(value)) => Reply::Result(success(&value).into()),
        Ok(Err(failed)) => Reply::Result(failed.result().into()),
        Err(panic) => failure(INTERNAL_ERROR, format!("`{}` panicked: {}", function.name(), words(&*panic))),
    };
    // Nobody waits for it any more where this fails.
    let _ = reply.send(told);
}

/// What a panic said, where it said something.
fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// A result as MCP has it: a structured content is an object there.
fn success(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if value.is_object() {
        result["structuredContent"] = value.clone();
    }
    result.to_string()
}

fn answer(end: ExchangeEnd, reply: Reply) {
    // Nobody waits for it any more where this fails.
    let _ = end.reply.send(reply);
}

fn failure(code: i64, message: String) -> Reply {
    Reply::Error(RpcFault { code, message, data: None })
}
