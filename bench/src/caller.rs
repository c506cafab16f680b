//! Who calls: an agent with a connection of its own, or one of several that share a pipe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

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
    Http { line: Line, headers: HeaderMap, stateless: bool },
    Stdio(Arc<Child>),
}

/// A connection, opened again where it was closed while nothing was on its way: some servers do so after a few idle seconds.
#[derive(Debug)]
pub(crate) struct Line {
    address: String,
    connection: SendRequest<Full<Bytes>>,
}

impl Target {
    /// Connects one caller, and greets where that is due.
    pub(crate) async fn connect(&self, tool: &str) -> Result<Caller> {
        match self {
            Self::Stdio(child) => Ok(Caller::Stdio(Arc::clone(child))),
            Self::Http { address, stateless } => {
                let mut line = Line { address: address.clone(), connection: dial(address).await? };
                let mut headers = HeaderMap::new();
                headers.insert(HOST, HeaderValue::from_str(address)?);
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
                let version = if *stateless { STATELESS } else { rpc::VERSION };
                headers.insert("mcp-protocol-version", HeaderValue::from_static(version));
                if *stateless {
                    headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
                    headers.insert("mcp-name", HeaderValue::from_str(tool)?);
                } else {
                    let (_, session) = line.post(&headers, greeting(0)).await?;
                    if let Some(session) = session {
                        headers.insert(HeaderName::from_static("mcp-session-id"), session);
                    }
                    // Some servers take nothing before this.
                    line.post(&headers, INITIALIZED.into()).await?;
                }
                Ok(Caller::Http { line, headers, stateless: *stateless })
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
    pub(crate) async fn send(&mut self, n: u64, request: String) -> Result<Bytes> {
        match self {
            Self::Http { line, headers, .. } => Ok(line.post(headers, request).await?.0),
            Self::Stdio(child) => Ok(child.send(n, request).await?.into()),
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

impl Line {
    async fn post(&mut self, headers: &HeaderMap, body: String) -> Result<(Bytes, Option<HeaderValue>)> {
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("/mcp");
        *request.headers_mut() = headers.clone();
        if self.connection.ready().await.is_err() {
            self.connection = dial(&self.address).await?;
        }
        let response = self.connection.send_request(request).await?;
        let session = response.headers().get("mcp-session-id").cloned();
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "status {status}: {}", String::from_utf8_lossy(&body));
        Ok((body, session))
    }
}

async fn dial(address: &str) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("no `{address}`"))?;
    stream.set_nodelay(true)?;
    let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    Ok(connection)
}
