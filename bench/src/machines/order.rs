//! One session that orders coffee, again and again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::peer::{Handle, Peer, Server};
use crate::caller::{self, Caller, STATELESS};

/// The steps of an order, and where each leads.
const STEPS: [(&str, &str); 3] = [("take_order", "ordered"), ("pay", "paid"), ("fulfil", "fulfilled")];

/// One session on its way.
#[derive(Debug)]
pub(crate) struct Walker {
    caller: Caller,
    peer: Peer,
    handle: Handle,
    /// The handle it passes, once it has one.
    session: Option<String>,
    /// What its requests say of themselves.
    meta: String,
    next: usize,
}

impl Walker {
    /// Connects, and walks one order before it counts.
    pub(crate) async fn begin(server: &Server) -> Result<Self> {
        let caller = server.target.connect("step").await?;
        let handle = server.peer.handle(server.transport);
        let session = (handle == Handle::Chosen).then(|| format!("walker-{}", caller::number()));
        let meta = match handle {
            Handle::Given => format!(
                r#","_meta":{{"{PREFIX}protocolVersion":"{STATELESS}","{PREFIX}clientCapabilities":{{}}}}"#,
                PREFIX = "io.modelcontextprotocol/"
            ),
            Handle::Connection | Handle::Chosen => String::new(),
        };
        let mut walker = Self { caller, peer: server.peer, handle, session, meta, next: 0 };
        for _ in STEPS {
            walker.advance().await?;
        }
        Ok(walker)
    }

    /// Takes the next step and gives what it took. The last one leads to the next order.
    pub(crate) async fn advance(&mut self) -> Result<Duration> {
        let (action, leads_to) = STEPS[self.next];
        let n = caller::number();
        let request = self.request(n, action);
        let sent = Instant::now();
        let body = self.caller.send(n, request).await?;
        let took = sent.elapsed();
        self.arrived(n, &body, leads_to)?;
        self.next = (self.next + 1) % STEPS.len();
        Ok(took)
    }

    fn request(&self, n: u64, action: &str) -> String {
        let inputs = match action {
            "take_order" => format!(r#"{{"item":"latte","number":{n}}}"#),
            "pay" => format!(r#"{{"amount":{n}.5}}"#),
            _ => "{}".to_owned(),
        };
        let session = self.session.as_ref().map(|session| format!(r#","session":"{session}""#)).unwrap_or_default();
        let meta = &self.meta;
        let arguments = format!(r#"{{"action":"{action}","inputs":{inputs}{session}}}"#);
        let params = format!(r#"{{"name":"step","arguments":{arguments}{meta}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{params}}}"#)
    }

    /// Checks that the machine is where the call was to lead, and keeps the handle that it was given.
    fn arrived(&mut self, n: u64, body: &[u8], at: &str) -> Result<()> {
        let words = || String::from_utf8_lossy(body).into_owned();
        let said = said(body, n).with_context(|| format!("no answer: {}", words()))?;
        ensure!(self.peer.state(&said) == Some(at), "not at `{at}`: {}", words());
        if self.handle == Handle::Given && self.session.is_none() {
            self.session = Some(said.data.and_then(|data| data.session).context("no handle")?.to_owned());
        }
        Ok(())
    }
}

/// What a client needs of an answer. All else is passed over, so that little of the time that is measured is its own.
#[derive(Debug, Deserialize)]
pub(crate) struct Said<'a> {
    #[serde(borrow)]
    pub(crate) data: Option<Done<'a>>,
    #[serde(borrow)]
    pub(crate) state: Option<Stage<'a>>,
}

/// What Amends says of a step.
#[derive(Debug, Deserialize)]
pub(crate) struct Done<'a> {
    pub(crate) session: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) state: Option<Named<'a>>,
}

/// A state of Amends.
#[derive(Debug, Deserialize)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
}

/// A state of Theodosia.
#[derive(Debug, Deserialize)]
pub(crate) struct Stage<'a> {
    pub(crate) stage: Option<&'a str>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<Outcome<'a>>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow, rename = "structuredContent")]
    said: Option<Said<'a>>,
}

impl<'a> Answer<'a> {
    /// What it says, if it is the answer to that request.
    fn to(self, id: u64) -> Option<Said<'a>> {
        self.result.filter(|_| self.id == Some(id))?.said
    }
}

/// What the answer to a step says.
fn said(body: &[u8], id: u64) -> Option<Said<'_>> {
    if body.first() == Some(&b'{') {
        return serde_json::from_slice::<Answer<'_>>(body).ok()?.to(id);
    }
    events(body)?.find_map(|event| serde_json::from_str::<Answer<'_>>(event).ok()?.to(id))
}

/// The answer to a request, alone or in a stream of events.
pub(crate) fn message(body: &[u8], id: u64) -> Option<Value> {
    if body.first() == Some(&b'{') {
        return serde_json::from_slice(body).ok();
    }
    events(body)?.filter_map(|event| serde_json::from_str::<Value>(event).ok()).find(|message| message["id"] == id)
}

fn events(body: &[u8]) -> Option<impl Iterator<Item = &str>> {
    Some(std::str::from_utf8(body).ok()?.lines().filter_map(|line| line.strip_prefix("data:")))
}
