//! The HTTP doors: MCP at `/mcp`, A2A at `/a2a`, AG-UI at `/agui`, plain calls at `/call/{tool}`, the console at `/` and its API
//! at `/api`.

mod a2a;
mod access;
mod agui;
mod api;
mod body;
mod callback;
mod checks;
mod connection;
mod console;
mod entry;
mod farewell;
mod guard;
mod health;
mod message;
mod numbers;
mod plain;
mod sessions;
mod stream;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::gateway::Gateway;
use crate::identity::{self, Caller, shown};
use crate::telemetry::Named;
use body::Body;
use connection::Connection;
use farewell::Farewell;
use sessions::Sessions;

/// How long a client may take for its headers, and so how long a connection may idle between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// How many connections may be open at once.
const CONNECTIONS_MAX: usize = 10_000;

/// What all connections of a door share.
#[derive(Debug)]
struct Door {
    gateway: Arc<Gateway>,
    sessions: Sessions,
    port: u16,
    /// Whom agents have called back.
    pushes: a2a::Pushes,
    over: a2a::Over,
}

/// Serves until the process ends.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    if let Ok(address) = listener.local_addr() {
        // The first that listens is where browsers are led back to.
        let _ = gateway.listening.set(address);
    }
    let (sessions, pushes, over) = (Sessions::default(), a2a::Pushes::default(), a2a::Over::default());
    let door = Arc::new(Door { gateway, sessions, port, pushes, over });
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let door = door.clone();
        tokio::spawn(async move {
            let connection = Arc::new(Connection::from(peer));
            let handled = connection.clone();
            let service = service_fn(move |request| handle(door.clone(), handled.clone(), request));
            let ended = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(Farewell::new(stream, connection.clone())), service)
                .await;
            connection.ended(ended.is_ok());
            drop(permit);
        });
    }
}

async fn handle(
    door: Arc<Door>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    // Behind a proxy that shares its connections, the next request may be another agent's and proves nothing.
    let shared = ["via", "forwarded", "x-forwarded-for"].iter().any(|name| request.headers().contains_key(*name));
    connection.used_again(connection.is_same_sender(request.headers()) && !shared);
    if let Some(response) = guard::check(&door, &request).or_else(|| entry::check(&door, &request)) {
        return Ok(response);
    }
    let named = door.gateway.telemetry.as_ref().and_then(|_| Named::by(request.headers()));
    // A connection that rests has no room for an answer.
    let routed = Box::pin(route(&door, &connection, request));
    Ok(match named {
        Some(named) => named.scope(routed).await,
        None => routed.await,
    })
}

async fn route(door: &Arc<Door>, connection: &Arc<Connection>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match (request.method(), path.as_str()) {
        (method, "/mcp") => match entry::caller(door, &request).await {
            Err(denied) => denied,
            Ok(Caller { principal: who, scopes, .. }) => match *method {
                Method::POST => {
                    let posted = message::post(door, connection, &who, request);
                    shown::with(scopes.into(), posted).await
                }
                Method::DELETE => sessions::delete(door, &who, &request),
                Method::GET => stream::open(door, &who, &request),
                _ => stream::not_allowed(),
            },
        },
        // MCP is not to be given the room of all that others may ask for.
        _ => Box::pin(elsewhere(door, connection, request, &path)).await,
    }
}

/// All that is not MCP.
async fn elsewhere(
    door: &Arc<Door>,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
    path: &str,
) -> Response<Body> {
    match (request.method(), path) {
        (&Method::POST, path) if path.starts_with("/call/") => {
            let tool = path.strip_prefix("/call/").unwrap_or_default().to_owned();
            match entry::caller(door, &request).await {
                Ok(Caller { principal: who, scopes, .. }) => {
                    let called = plain::call(door, connection, &who, &tool, request);
                    shown::with(scopes.into(), called).await
                }
                Err(denied) => denied,
            }
        }
        (&Method::GET, amends_wire::a2a::card::PATH) if door.gateway.config().a2a.enabled => a2a::card(door, &request),
        (_, path) if a2a::is_here(path) && door.gateway.config().a2a.enabled => {
            match entry::caller(door, &request).await {
                Ok(Caller { principal: who, scopes, .. }) => {
                    let handled = a2a::handle(door, connection, &who, request);
                    shown::with(scopes.into(), handled).await
                }
                Err(denied) => denied,
            }
        }
        (method, path @ ("/agui" | "/agui/stop")) => match entry::caller(door, &request).await {
            Err(denied) => denied,
            Ok(_) if *method != Method::POST => agui::not_allowed(),
            Ok(Caller { principal: who, scopes, .. }) if path == "/agui" => {
                let run = agui::run(door, connection, &who, request);
                shown::with(scopes.into(), run).await
            }
            Ok(Caller { principal: who, .. }) => agui::stop(door, connection, &who, request).await,
        },
        (&Method::POST, "/callback/interaction") => callback::answer(door, request).await,
        (&Method::GET, "/callback/sign-in") => {
            console::signed_in(door, request.uri().query().unwrap_or_default()).await
        }
        (&Method::GET, path) if path.starts_with(identity::METADATA_PATH) => entry::metadata(door, path),
        (&Method::GET, "/health") => health::report(door),
        (&Method::GET, "/healthz") => plain_text(StatusCode::OK, "ok"),
        (&Method::GET, "/metrics") => numbers::report(door, connection, &request).await,
        (_, path) if !door.gateway.config().console.enabled => not_here(path),
        (_, "/api") => api::handle(door, request).await,
        (_, path) if path.starts_with("/api/") => api::handle(door, request).await,
        _ => console::handle(door, request).await,
    }
}

fn not_here(path: &str) -> Response<Body> {
    match path {
        "/" => plain_text(StatusCode::OK, "amends runs here; MCP is at /mcp"),
        _ => plain_text(StatusCode::NOT_FOUND, "there is nothing here; MCP is at /mcp"),
    }
}

fn plain_text(status: StatusCode, text: &str) -> Response<Body> {
    respond(status, "text/plain; charset=utf-8", text.to_owned())
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    respond(status, "application/json", text)
}

fn respond(status: StatusCode, content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How large what a function promises is, which is what a task takes that waits for it.
    fn promised<A, B, C, F: Future>(_: fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_takes_little_room() {
        let bytes = promised(handle);
        assert!(bytes <= 1 << 10, "{bytes} bytes for each connection");
    }
}
