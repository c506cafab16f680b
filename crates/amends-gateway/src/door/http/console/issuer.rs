//! Signing in at an issuer: a browser is sent there, and comes back with a code.

use std::sync::Arc;

use hyper::header::{HOST, HeaderMap, HeaderValue, SET_COOKIE};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use maud::html;

use super::super::Door;
use super::super::access::cookie;
use super::super::api::fields::Fields;
use super::super::api::problem::Problem;
use super::super::body::Body;
use super::frame::document;
use super::sign_in::{self, cookie_of, is_encrypted, secure};
use crate::clock;
use crate::identity::{Oidc, Person, Unwelcome};
use crate::sign_in::VISIT_MS;

/// The cookie that a browser keeps while it is at the issuer. It comes along when another site leads back here, which the
/// cookie of a session does not.
const VISIT_COOKIE: &str = "amends_sign_in";
/// The longest code that is looked at.
const CODE_MAX: usize = 4096;

/// Sends a browser to the issuer.
pub(super) async fn leave(door: &Arc<Door>, method: &Method, headers: &HeaderMap) -> Response<Body> {
    if method != Method::GET {
        return sign_in::page(door, &Problem::method("GET"));
    }
    let identity = door.gateway.identity();
    let Some(oidc) = identity.oidc() else { return sign_in::page(door, &Problem::not_found("page")) };
    let visit = door.gateway.sign_in.leave(clock::now());
    let way = match back(oidc, headers) {
        Some(back) => oidc.way(&visit, &back).await,
        None => return sign_in::page(door, &Problem::field("host", "it is missing")),
    };
    let kept = keeping(&visit.kept, VISIT_MS / 1000, headers);
    match way {
        Ok(way) => sign_in::go(&way, &kept),
        Err(why) => sign_in::page(door, &problem(&why)),
    }
}

/// Lets somebody in who comes back from the issuer.
pub(super) async fn come_back(door: &Arc<Door>, head: &Parts) -> Response<Body> {
    let mut response = match (head.method == Method::GET, welcome(door, head).await) {
        (false, _) => sign_in::page(door, &Problem::method("GET")),
        (true, Err(problem)) => sign_in::page(door, &problem),
        (true, Ok(person)) => enter(door, &head.headers, &person),
    };
    append(&mut response, &keeping("", 0, &head.headers));
    response
}

async fn welcome(door: &Arc<Door>, head: &Parts) -> Result<Person, Problem> {
    let identity = door.gateway.identity();
    let oidc = identity.oidc().ok_or_else(|| Problem::not_found("page"))?;
    let mut said = Fields::encoded(head.uri.query().unwrap_or_default())?;
    let state = said.text("state")?.unwrap_or_default();
    let kept = cookie(&head.headers, VISIT_COOKIE).unwrap_or_default();
    let visit = door.gateway.sign_in.come_back(kept, &state, clock::now()).ok_or_else(|| {
        unauthenticated(
            "this way back was used already, took too long, or did not begin in this browser; sign in again",
        )
    })?;
    if said.text("iss")?.is_some_and(|issuer| !oidc.is(&issuer)) {
        return Err(unauthenticated("this comes from another issuer"));
    }
    if said.text("error")?.is_some() {
        return Err(unauthenticated("the issuer did not let you in"));
    }
    let code = said.needed("code", CODE_MAX)?;
    let back = back(oidc, &head.headers).ok_or_else(|| Problem::field("host", "it is missing"))?;
    oidc.person(&visit, &code, &back).await.map_err(|why| problem(&why))
}

/// A session begins. A browser that another site sent here shows the session's cookie only to what our own page leads to.
fn enter(door: &Arc<Door>, headers: &HeaderMap, person: &Person) -> Response<Body> {
    let body = html! {
        main #main {
            h1 { "Signed in" }
            p { a href="/" { "To the console" } }
        }
    };
    let mut response = document(StatusCode::OK, "Signed in", "", &body);
    response.headers_mut().insert("refresh", HeaderValue::from_static("0; url=/"));
    append(&mut response, &cookie_of(door, headers, person));
    response
}

/// Where the issuer sends a browser back to.
fn back(oidc: &Oidc, headers: &HeaderMap) -> Option<String> {
    let base = match oidc.console() {
        Some(console) => console.to_owned(),
        None => {
            let scheme = if is_encrypted(headers) { "https" } else { "http" };
            // It is one of ours: others were refused before.
            format!("{scheme}://{}", headers.get(HOST)?.to_str().ok()?)
        }
    };
    Some(format!("{base}/sign-in/back"))
}

fn keeping(kept: &str, seconds: u64, headers: &HeaderMap) -> String {
    let secure = secure(headers);
    format!("{VISIT_COOKIE}={kept}; Path=/sign-in; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn append(response: &mut Response<Body>, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

fn unauthenticated(words: &'static str) -> Problem {
    Problem::of(StatusCode::UNAUTHORIZED, "unauthenticated", words)
}

fn problem(why: &Unwelcome) -> Problem {
    let (status, code) = match why {
        Unwelcome::Away => (StatusCode::SERVICE_UNAVAILABLE, "issuer_unavailable"),
        Unwelcome::NotTaken | Unwelcome::Token(_) => (StatusCode::UNAUTHORIZED, "unauthenticated"),
        Unwelcome::Role => (StatusCode::FORBIDDEN, "forbidden"),
    };
    Problem::of(status, code, why.to_string())
}
