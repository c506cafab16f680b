//! Who calls: an agent with a connection of its own, or one of several that share a pipe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};

use crate::line::Line;
use crate::proxy::child::Child;
use crate::rpc;

/// The newest version, whose requests stand alone.
pub(crate) const STATELESS: &str = "2026-07-28";

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// No two calls of a run have the same number, so that none is another's repeat.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Where a variant is called.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// At an address such as `127.0.0.1:7070`, under `/mcp`.
    Http { address: String, stateless: bool },
    /// Through the pipes of a child.
    Stdio(Arc<Child>),
}

/// One caller, connected.
#[derive(Debug)]
pub(crate) enum Caller {
    Http { line: Line, stateless: bool },
    Stdio(Arc<Child>),
}

impl Target {
    /// Connects one caller, and greets where that is due.
    pub(crate) async fn connect(&self, tool: &str) -> Result<Caller> {
        match self {
            Self::Stdio(child) => Ok(Caller::Stdio(Arc::clone(child))),
            Self::Http { address, stateless } => {
                let mut line = Line::open(address).await?;
                line.wear("content-type", "application/json");
                line.wear("accept", "application/json, text/event-stream");
                line.wear("mcp-protocol-version", if *stateless { STATELESS } else { rpc::VERSION });
                if *stateless {
                    line.wear("mcp-method", "tools/call");
                    line.wear("mcp-name", tool);
                } else {
                    if let Some(session) = line.post(&greeting(0)).await?.session {
                        line.wear("mcp-session-id", &session);
                    }
                    // Some servers take nothing before this.
                    line.post(INITIALIZED).await?;
                }
                Ok(Caller::Http { line, stateless: *stateless })
            }
        }
    }
}

impl Caller {
    /// Calls a tool once and checks that its own arguments came back.
    pub(crate) async fn call(&mut self, tool: &str) -> Result<()> {
        let n = number();
        let stateless = matches!(self, Self::Http { stateless: true, .. });
        let body = self.send(n, request(n, tool, stateless)).await?;
        let echoed = format!(r#""n":{n},"#);
        let whole = body.windows(echoed.len()).any(|part| part == echoed.as_bytes());
        ensure!(whole, "`{tool}` was answered with {}", String::from_utf8_lossy(&body));
        Ok(())
    }

    /// Sends a request under that number and gives what came back: over HTTP the whole body, which may be a stream of events.
    pub(crate) async fn send(&mut self, n: u64, request: String) -> Result<Vec<u8>> {
        match self {
            Self::Http { line, .. } => Ok(line.post(&request).await?.body),
            Self::Stdio(child) => child.send(n, request).await,
        }
    }
}

/// A number that no other request of this run has.
pub(crate) fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Greets the process behind a pipe, once for all its callers.
pub(crate) async fn greet(child: &Child) -> Result<()> {
    let n = number();
    child.send(n, greeting(n)).await?;
    child.tell(INITIALIZED.into());
    Ok(())
}

fn greeting(n: u64) -> String {
    let version = rpc::VERSION;
    let params = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"amends-bench","version":"0"}}}}"#
    );
    format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"initialize","params":{params}}}"#)
}

fn request(n: u64, tool: &str, stateless: bool) -> String {
    let meta = if stateless {
        format!(
            concat!(
                r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","#,
                r#""io.modelcontextprotocol/clientCapabilities":{{}},"#,
                r#""io.modelcontextprotocol/clientInfo":{{"name":"amends-bench","version":"0"}}}}"#
            ),
            STATELESS
        )
    } else {
        String::new()
    };
    let text = "order 1234: two boxes of paper clips to 12 High Street";
    let params = format!(r#"{{"name":"{tool}","arguments":{{"n":{n},"text":"{text}"}}{meta}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{params}}}"#)
}
