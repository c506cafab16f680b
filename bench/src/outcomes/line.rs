//! An agent's line to whoever answers it: MCP over HTTP, a session and a connection that is opened again when it broke.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::told::Reply;
use crate::rpc;

/// One agent's line.
#[derive(Debug)]
pub(crate) struct Line {
    address: String,
    headers: HeaderMap,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// How long the agent waits for an answer.
    patience: Duration,
    next: u64,
}

impl Line {
    /// Connects and greets.
    pub(crate) async fn open(address: &str, patience: Duration) -> Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(address)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert("mcp-protocol-version", HeaderValue::from_static(rpc::VERSION));
        let mut line = Self { address: address.to_owned(), headers, connection: None, patience, next: 1 };
        let params = json!({
            "protocolVersion": rpc::VERSION,
            "capabilities": {},
            "clientInfo": { "name": "amends-bench", "version": "0" },
        });
        let greeting = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (response, _) = line.post(&greeting).await?;
        ensure!(response.status().is_success(), "`{address}` answered a greeting with {}", response.status());
        if let Some(session) = response.headers().get("mcp-session-id") {
            line.headers.insert("mcp-session-id", session.clone());
        }
        line.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(line)
    }

    /// Calls a tool once.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value, meta: Option<Value>) -> Reply {
        let id = self.next;
        self.next += 1;
        let mut params = json!({ "name": tool, "arguments": arguments });
        if let Some(meta) = meta {
            params["_meta"] = meta;
        }
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        match timeout(self.patience, self.post(&request)).await {
            Ok(Ok((_, body))) => message(&body, id).map_or(Reply::Garbage, Reply::Message),
            Ok(Err(_)) | Err(_) => {
                self.connection = None;
                Reply::Nothing
            }
        }
    }

    async fn post(&mut self, message: &Value) -> Result<(Response<()>, Bytes)> {
        let mut connection = match self.connection.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => connect(&self.address).await?,
        };
        let mut request = Request::new(Full::from(message.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("/mcp");
        *request.headers_mut() = self.headers.clone();
        connection.ready().await?;
        let (head, body) = connection.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        let closing = head.headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
        if !closing && head.version != Version::HTTP_10 {
            self.connection = Some(connection);
        }
        Ok((Response::from_parts(head, ()), body))
    }
}

async fn connect(address: &str) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("no `{address}`"))?;
    stream.set_nodelay(true)?;
    let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

/// The answer to a request, alone or in a stream of events.
fn message(body: &[u8], id: u64) -> Option<Value> {
    if let Ok(message) = serde_json::from_slice::<Value>(body) {
        return message.is_object().then_some(message);
    }
    let events = std::str::from_utf8(body).ok()?.lines().filter_map(|line| line.strip_prefix("data:"));
    events.filter_map(|event| serde_json::from_str::<Value>(event).ok()).find(|message| message["id"] == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_in_a_stream_and_a_page_is_none() {
        let stream =
            b"event: message\r\ndata: {\"id\":1}\r\n\r\nevent: message\r\ndata: {\"id\":2,\"result\":{}}\r\n\r\n";
        assert_eq!(message(stream, 2), Some(json!({"id": 2, "result": {}})));
        assert_eq!(message(b"<html></html>", 2), None);
        assert_eq!(message(b"\"text\"", 2), None);
    }
}
