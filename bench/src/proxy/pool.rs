//! Connections to one endpoint, kept for the next request, as the gateway keeps them.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Connections to one endpoint.
#[derive(Debug)]
pub(super) struct Pool {
    address: String,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Pool {
    pub(super) fn new(to: &Uri) -> Self {
        let address = to.authority().map(|authority| authority.to_string()).unwrap_or_default();
        Self { address, idle: Mutex::default() }
    }

    /// Sends a request and reads its whole response.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Bytes> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        let body = response.into_body().collect().await?.to_bytes();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(body)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(&self.address).await.with_context(|| format!("no `{}`", self.address))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
