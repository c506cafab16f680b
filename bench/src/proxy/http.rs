//! The bare proxy that listens over HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::child::Child;
use super::pool::Pool;
use crate::rpc;

/// Headers of MCP that pass.
const PASSED: [&str; 4] = ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"];

/// Whom the proxy forwards to.
#[derive(Debug)]
pub(super) enum Upstream {
    Endpoint { pool: Pool, host: HeaderValue, path: Uri },
    Child(Child),
}

impl Upstream {
    pub(super) fn at(to: &Uri) -> Self {
        let host = to.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        let path = to.path_and_query().map_or("/", |path| path.as_str()).parse().unwrap_or_default();
        Self::Endpoint { pool: Pool::new(to), host: host.unwrap_or_else(|| HeaderValue::from_static("")), path }
    }
}

/// What all connections share.
#[derive(Debug)]
struct Proxy {
    upstream: Upstream,
    next: AtomicU64,
}

#[tokio::main]
pub(super) async fn serve_child(address: SocketAddr, command: &[String]) -> Result<()> {
    listen(address, Upstream::Child(Child::start(command)?)).await
}

#[tokio::main]
pub(super) async fn serve(address: SocketAddr, upstream: Upstream) -> Result<()> {
    listen(address, upstream).await
}

async fn listen(address: SocketAddr, upstream: Upstream) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("the proxy listens on http://{};", listener.local_addr()?);
    let proxy = Arc::new(Proxy { upstream, next: AtomicU64::new(1) });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let proxy = Arc::clone(&proxy);
        let service = service_fn(move |request| handle(Arc::clone(&proxy), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn handle(proxy: Arc<Proxy>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match proxy.forward(request).await {
        Ok(Some(answer)) => (StatusCode::OK, answer),
        Ok(None) => (StatusCode::ACCEPTED, String::new()),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

impl Proxy {
    async fn forward(&self, request: Request<Incoming>) -> Result<Option<String>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request: rpc::Request<'_> = serde_json::from_slice(&body)?;
        let Some(id) = request.id else {
            self.tell(&parts, &body).await?;
            return Ok(None);
        };
        let own = self.next.fetch_add(1, Ordering::Relaxed);
        let line = request.renumbered(own);
        let answer = match &self.upstream {
            Upstream::Endpoint { pool, host, path } => pool.send(post(host, path, &parts, line)?).await?,
            Upstream::Child(child) => child.send(own, line).await?.into(),
        };
        let answer: rpc::Answer<'_> = serde_json::from_slice(&answer).context("an answer that is none")?;
        Ok(Some(answer.renumbered(id.get())))
    }

    async fn tell(&self, parts: &Parts, body: &[u8]) -> Result<()> {
        let line = String::from_utf8(body.to_vec())?;
        match &self.upstream {
            Upstream::Endpoint { pool, host, path } => pool.send(post(host, path, parts, line)?).await.map(drop),
            Upstream::Child(child) => {
                child.tell(line);
                Ok(())
            }
        }
    }
}

fn post(host: &HeaderValue, path: &Uri, parts: &Parts, body: String) -> Result<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.clone();
    let headers = request.headers_mut();
    headers.insert(HOST, host.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    for name in PASSED {
        if let Some(value) = parts.headers.get(name) {
            headers.insert(name, value.clone());
        }
    }
    Ok(request)
}
