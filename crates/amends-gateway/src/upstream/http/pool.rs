//! Connections to one endpoint, kept for the next request.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::clock::Awake;
use crate::upstream::exchange::Fault;

/// How many connections are kept while nobody uses them.
const IDLE_MAX: usize = 64;

/// Connections to one endpoint. A request whose connection turns out to be closed before anything was written goes out
/// on another one; once a byte may have left, nothing is sent again.
#[derive(Debug)]
pub(super) struct Pool {
    address: String,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// A response on its way, with the connection it comes by.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) response: hyper::Response<Incoming>,
    pub(super) connection: SendRequest<Full<Bytes>>,
}

impl Pool {
    pub(super) fn new(uri: &Uri) -> Self {
        let host = uri.host().unwrap_or("invalid.invalid").trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(80);
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self { address, idle: Mutex::new(Vec::new()) }
    }

    pub(super) async fn send(&self, mut request: hyper::Request<Full<Bytes>>, send_by: Instant) -> Result<Sent, Fault> {
        let awake = Awake::now();
        // Ends: each turn uses up a kept connection, or opens a new one and returns.
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let fresh = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect(send_by).await?,
            };
            if connection.ready().await.is_err() {
                if fresh {
                    return Err(Fault::ConnectRefused);
                }
                continue;
            }
            if Instant::now() > send_by || !awake.still() {
                return Err(Fault::NotWritten);
            }
            match connection.try_send_request(request).await {
                Ok(response) => {
                    return Ok(Sent { response, connection });
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !fresh => request = unsent,
                    Some(_) => return Err(Fault::ConnectRefused),
                    None => return Err(Fault::Lost),
                },
            }
        }
    }

    /// Keeps a connection whose response was read to its end.
    pub(super) fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    async fn connect(&self, send_by: Instant) -> Result<SendRequest<Full<Bytes>>, Fault> {
        let wait = send_by.saturating_duration_since(Instant::now());
        let stream = tokio::time::timeout(wait, TcpStream::connect(&self.address))
            .await
            .map_err(|_| Fault::ConnectRefused)?
            .map_err(|_| Fault::ConnectRefused)?;
        // Without it every small request would wait for the one before it to be acknowledged.
        let _ = stream.set_nodelay(true);
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| Fault::ConnectRefused)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to an upstream ended");
            }
        });
        Ok(sender)
    }
}
