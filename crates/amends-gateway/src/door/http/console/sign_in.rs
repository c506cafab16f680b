//! Signing in and out.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{Method, Request, Response, StatusCode};
use maud::html;

use super::super::access::{self, COOKIE_NAME};
use super::super::api::bounded;
use super::super::api::fields::Fields;
use super::super::api::problem::Problem;
use super::super::body::Body;
use super::super::{Door, respond};
use super::frame::document;
use crate::clock;
use crate::identity::Person;
use crate::sign_in::SESSION_MS;

/// Lets somebody in who comes with the link that was printed; nothing for everybody else.
pub(super) fn entering(door: &Arc<Door>, request: &Request<Incoming>) -> Option<Response<Body>> {
    if request.method() != Method::GET || request.uri().path() != "/" {
        return None;
    }
    let token = Fields::encoded(request.uri().query()?).ok()?.text("token").ok()??;
    let let_in = door.gateway.config().has_console_link() && door.gateway.sign_in.redeem(&token);
    Some(match let_in {
        true => enter(door, request.headers(), &access::operator()),
        false => {
            let words = "this link was used already, or is not of this gateway; the gateway prints a new one for each that was used";
            page(door, &Problem::of(StatusCode::UNAUTHORIZED, "unauthenticated", words))
        }
    })
}

/// Signs somebody in who shows a token in a form.
pub(super) async fn handle(door: &Arc<Door>, method: &Method, headers: &HeaderMap, body: Incoming) -> Response<Body> {
    if method != Method::POST {
        return page(door, &Problem::nobody());
    }
    let token = match bounded(body).await.and_then(|text| Fields::encoded(&text)?.needed("token", 4000)) {
        Ok(token) => token,
        Err(problem) => return page(door, &problem),
    };
    match access::by_token(door, token.trim()).await {
        Some(person) => enter(door, headers, &person),
        None => page(door, &Problem::of(StatusCode::UNAUTHORIZED, "unauthenticated", "nobody has this token")),
    }
}

/// Signs somebody out.
pub(super) fn leave() -> Response<Body> {
    go("/", &format!("{COOKIE_NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"))
}

fn enter(door: &Arc<Door>, headers: &HeaderMap, person: &Person) -> Response<Body> {
    go("/", &cookie_of(door, headers, person))
}

/// The cookie of a session that begins.
pub(super) fn cookie_of(door: &Arc<Door>, headers: &HeaderMap, person: &Person) -> String {
    let session = door.gateway.sign_in.begin(person, clock::now());
    let seconds = SESSION_MS / 1000;
    let secure = secure(headers);
    format!("{COOKIE_NAME}={session}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// What keeps a cookie on encrypted lines. A proxy that speaks TLS says so; without one there is none.
pub(super) fn secure(headers: &HeaderMap) -> &'static str {
    if is_encrypted(headers) { "; Secure" } else { "" }
}

/// Whether the browser speaks TLS with a proxy before us.
pub(super) fn is_encrypted(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
}

/// Sends a browser elsewhere, with a cookie.
pub(super) fn go(to: &str, cookie: &str) -> Response<Body> {
    let mut response = respond(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", String::new());
    let headers = response.headers_mut();
    headers.extend(HeaderValue::from_str(to).ok().map(|to| (LOCATION, to)));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}

/// The page for somebody who is not signed in.
pub(super) fn page(door: &Arc<Door>, problem: &Problem) -> Response<Body> {
    let config = door.gateway.config();
    let has_link = config.has_console_link();
    let has_tokens = config.console.token.is_some() || config.auth.is_asked_for();
    let identity = door.gateway.identity();
    let issuer = identity.oidc().map(|oidc| oidc.name());
    let mut response = document(
        problem.status,
        "Sign in",
        "",
        &html! {
            main #main {
                h1 { "Sign in to Amends" }
                p.notice role="status" { (problem.detail) }
                @if has_link {
                    p { "Open the link that the gateway printed when it started. It looks like " code { "console: http://…/?token=…" } "." }
                }
                @if let Some(issuer) = issuer {
                    p { a.button href="/sign-in/issuer" { "Sign in at " (issuer) } }
                }
                @if has_tokens {
                    form method="post" action="/sign-in" {
                        p {
                            label for="token" { "Token" } " "
                            input #token name="token" type="password" autocomplete="off" required;
                            " " button { "Sign in" }
                        }
                    }
                }
                p { a href="/" { "Try again" } }
            }
        },
    );
    problem.mark(&mut response);
    response
}
