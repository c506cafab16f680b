//! Connections to one endpoint, kept for the next request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::presence::Presence;
use super::tls::Tls;
use crate::clock::Awake;
use crate::upstream::exchange::Fault;

/// How many connections are kept while nobody uses them.
const IDLE_MAX: usize = 64;

/// How much time an endpoint needs for a connection, to be taken for away where none comes about.
const TIME_ENOUGH: Duration = Duration::from_secs(2);

/// Connections to one endpoint. A request whose connection turns out to be closed before anything was written goes out
/// on another one; once a byte may have left, nothing is sent again.
#[derive(Debug)]
pub(crate) struct Pool {
    address: String,
    tls: Option<Tls>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    presence: Presence,
}

/// A response on its way, with the connection it comes by.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) response: hyper::Response<Incoming>,
    pub(crate) connection: SendRequest<Full<Bytes>>,
}

/// Whether a byte of a request may have left us, for whoever stops it half-way.
#[derive(Debug, Default)]
pub(crate) struct Departure(AtomicBool);

impl Departure {
    /// What is known of a request that was stopped before its answer.
    pub(crate) fn stopped(&self) -> Fault {
        if self.is_past() { Fault::Lost } else { Fault::NotWritten }
    }

    /// Whether a byte may have left.
    pub(crate) fn is_past(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn is_now(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Pool {
    pub(crate) fn new(uri: &Uri, tls: Option<Tls>) -> Self {
        let host = uri.host().unwrap_or("invalid.invalid").trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self { address, tls, idle: Mutex::new(Vec::new()), presence: Presence::default() }
    }

    /// The same, which leads to that address.
    pub(crate) fn at(self, address: std::net::SocketAddr) -> Self {
        Self { address: address.to_string(), ..self }
    }

    pub(crate) async fn send(
        &self,
        mut request: hyper::Request<Full<Bytes>>,
        send_by: Instant,
        departure: &Departure,
    ) -> Result<Sent, Fault> {
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
            departure.is_now();
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
    pub(crate) fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    /// Where it leads.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whether anybody is there.
    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Looks whether anybody is there. A connection that is made for that is kept for the next request; one that is kept
    /// already says the same.
    pub(crate) async fn reach(&self, by: Instant) -> Result<(), Fault> {
        let kept = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|connection| !connection.is_closed());
            !idle.is_empty()
        };
        if kept {
            self.presence.here();
            return Ok(());
        }
        let connection = self.connect(by).await?;
        self.keep(connection);
        Ok(())
    }

    /// Connects, and notes whether anybody is there.
    async fn connect(&self, send_by: Instant) -> Result<SendRequest<Full<Bytes>>, Fault> {
        let had_time = send_by.saturating_duration_since(Instant::now()) >= TIME_ENOUGH;
        let connected = self.shake_hands(send_by).await;
        match &connected {
            Ok(_) => self.presence.here(),
            // One that was hardly given time is not to blame.
            Err(Fault::ConnectRefused) if !had_time && Instant::now() >= send_by => {}
            Err(fault) => self.presence.gone(&self.address, &fault.to_string()),
        }
        connected
    }

    async fn shake_hands(&self, send_by: Instant) -> Result<SendRequest<Full<Bytes>>, Fault> {
        let wait = send_by.saturating_duration_since(Instant::now());
        let stream = tokio::time::timeout(wait, TcpStream::connect(&self.address))
            .await
            .map_err(|_| Fault::ConnectRefused)?
            .map_err(|_| Fault::ConnectRefused)?;
        // Without it every small request would wait for the one before it to be acknowledged.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => converse(stream).await,
            Some(tls) => {
                let wait = send_by.saturating_duration_since(Instant::now());
                let shaken = tokio::time::timeout(wait, tls.connect(stream)).await;
                match shaken.map_err(|_| Fault::ConnectRefused)? {
                    Ok(stream) => converse(stream).await,
                    Err(reason) => Err(Fault::Handshake { reason }),
                }
            }
        }
    }
}

/// Begins to speak HTTP on a connection.
async fn converse<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, Fault>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| Fault::ConnectRefused)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to an upstream ended");
        }
    });
    Ok(sender)
}
