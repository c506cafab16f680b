//! The console at `/`: what goes on, what is asked, what happened and what governs it, as pages that work without scripts.

mod account;
mod calls;
mod chart;
mod files;
mod frame;
mod issuer;
mod ledger;
mod machines;
mod now;
mod playbook;
mod queue;
mod runs;
mod sessions;
mod sign_in;

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response, StatusCode};

use super::access::{self, SignedIn};
use super::api::bounded;
use super::api::fields::{Fields, decoded};
use super::api::problem::Problem;
use super::body::Body;
use super::{Door, plain_text};
use crate::identity::Role;
pub(super) use account::signed_in;
use frame::{Frame, Place};

/// A page that is asked for by somebody who is signed in.
struct Asked<'a> {
    door: &'a Arc<Door>,
    signed_in: &'a SignedIn,
}

impl<'a> Asked<'a> {
    fn frame(&'a self, place: Place, title: &'a str) -> Frame<'a> {
        Frame { signed_in: self.signed_in, place, title, status: StatusCode::OK, notice: None }
    }
}

/// Answers a request for a page.
pub(super) async fn handle(door: &Arc<Door>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if let Some(name) = path.strip_prefix("/console/") {
        return files::file(name, request.method());
    }
    let Some(parts) = path.split('/').skip(1).map(|part| decoded(part, false)).collect::<Option<Vec<String>>>() else {
        return plain_text(StatusCode::NOT_FOUND, "there is nothing here; MCP is at /mcp");
    };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if !is_known(&parts) {
        return plain_text(StatusCode::NOT_FOUND, "there is nothing here; MCP is at /mcp");
    }
    if let Some(response) = sign_in::entering(door, &request) {
        return response;
    }
    let (head, body) = request.into_parts();
    match &parts[..] {
        ["sign-in", "issuer"] => return issuer::leave(door, &head.method, &head.headers).await,
        ["sign-in", "back"] => return issuer::come_back(door, &head).await,
        _ => {}
    }
    if parts == ["sign-in"] {
        return sign_in::handle(door, &head.method, &head.headers, body).await;
    }
    let signed_in = match access::who(door, &head.headers).await {
        Ok(signed_in) => signed_in,
        Err(problem) => return sign_in::page(door, &problem),
    };
    let asked = Asked { door, signed_in: &signed_in };
    let answered = match head.method {
        Method::GET | Method::HEAD => get(&asked, &parts, head.uri.query().unwrap_or_default()).await,
        Method::POST => post(&asked, &parts, &head.headers, body).await,
        _ => Err(Problem::method("GET, POST")),
    };
    match answered {
        Ok(response) => response,
        Err(problem) => asked.frame(Place::Nowhere, "It did not work").problem(&problem),
    }
}

fn is_known(parts: &[&str]) -> bool {
    matches!(
        parts,
        ["" | "queue" | "calls" | "sessions" | "machines" | "run" | "playbook" | "ledger" | "sign-in" | "sign-out"]
            | ["queue" | "calls" | "sessions", _]
            | ["playbook", "whatif" | "proposals"]
            | ["ledger", "verify" | "checkpoints"]
            | ["sign-in", "issuer" | "back"]
    )
}

async fn get(asked: &Asked<'_>, parts: &[&str], query: &str) -> Result<Response<Body>, Problem> {
    let query = Fields::encoded(query)?;
    match parts {
        // What goes on concerns every tenant; what is asked is each one's own.
        [""] if asked.signed_in.person.tenant.is_some() => queue::page(asked, query).await,
        [""] => now::page(asked, &query).await,
        ["queue"] => queue::page(asked, query).await,
        ["queue", id] => queue::one(asked, id).await,
        ["calls"] => calls::page(asked, query).await,
        ["calls", id] => calls::one(asked, id).await,
        ["sessions"] => sessions::page(asked, query).await,
        ["sessions", id] => sessions::one(asked, id).await,
        ["machines"] => machines::page(asked).await,
        ["run"] => Ok(runs::page(asked)),
        ["playbook"] => playbook::page(asked).await,
        ["ledger"] => {
            asked.signed_in.of_the_house()?;
            ledger::page(asked).await
        }
        _ => Err(Problem::method("POST")),
    }
}

async fn post(
    asked: &Asked<'_>,
    parts: &[&str],
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response<Body>, Problem> {
    let mut form = Fields::encoded(&bounded(body).await?)?;
    let shown = form.text("page")?.unwrap_or_default();
    asked.signed_in.is_own_page(headers, Some(&shown))?;
    let at_least = |role: Role| asked.signed_in.at_least(role);
    if matches!(parts, ["playbook" | "ledger", _]) {
        asked.signed_in.of_the_house()?;
    }
    match parts {
        ["queue", id] => {
            at_least(Role::Approver)?;
            queue::answer(asked, id, &mut form).await
        }
        ["playbook", "whatif"] => playbook::whatif(asked, &mut form).await,
        ["playbook", "proposals"] => {
            at_least(Role::Operator)?;
            playbook::propose(asked, &mut form).await
        }
        ["ledger", "verify"] => {
            at_least(Role::Operator)?;
            ledger::verify(asked).await
        }
        ["ledger", "checkpoints"] => {
            at_least(Role::Operator)?;
            ledger::sign(asked).await
        }
        ["sign-out"] => Ok(sign_in::leave()),
        _ => Err(Problem::method("GET")),
    }
}
