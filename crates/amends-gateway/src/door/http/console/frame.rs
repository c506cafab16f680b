//! What every page has: its head, the ways to the others, and what it may load.

use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use maud::{DOCTYPE, Markup, html};

use super::super::access::SignedIn;
use super::super::api::problem::Problem;
use super::super::body::Body;
use super::super::respond;
use crate::told;

/// What a page may load: its own style and script, pictures and data of this gateway, and nothing that is written into it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Which of the pages it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Now,
    Queue,
    Calls,
    Sessions,
    Machines,
    Run,
    Playbook,
    Ledger,
    Nowhere,
}

impl Place {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Now, "/", "Now"),
        (Self::Queue, "/queue", "Queue"),
        (Self::Calls, "/calls", "Calls"),
        (Self::Sessions, "/sessions", "Sessions"),
        (Self::Machines, "/machines", "Machines"),
        (Self::Run, "/run", "Run"),
        (Self::Playbook, "/playbook", "Playbook"),
        (Self::Ledger, "/ledger", "Ledger"),
    ];
}

/// What is around a page.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) signed_in: &'a SignedIn,
    pub(super) place: Place,
    pub(super) title: &'a str,
    pub(super) status: StatusCode,
    /// What came of what somebody wanted done.
    pub(super) notice: Option<String>,
}

impl Frame<'_> {
    /// The page with that in it.
    pub(super) fn with(&self, main: Markup) -> Response<Body> {
        let proof = self.signed_in.page.as_deref().unwrap_or_default();
        let person = &self.signed_in.person;
        let body = html! {
            a.skip href="#main" { "To the content" }
            header {
                p.brand { a href="/" { "Amends" } }
                nav aria-label="Pages" {
                    @for (place, to, name) in Place::ALL {
                        @if place == self.place { a href=(to) aria-current="page" { (name) } }
                        @else { a href=(to) { (name) } }
                    }
                }
                p #live role="status" { "Live updates need JavaScript; load the page again for what is new." }
                div.person {
                    button #theme type="button" hidden { "Light or dark" }
                    form method="post" action="/sign-out" {
                        input type="hidden" name="page" value=(proof);
                        span title=(format!("role {}", person.role.as_str())) {
                            (person.name) " (" (person.role.as_str()) ")"
                        }
                        " "
                        button { "Sign out" }
                    }
                }
            }
            main #main tabindex="-1" {
                h1 { (self.title) }
                @if let Some(notice) = &self.notice { p.notice #notice role="status" { (notice) } }
                (main)
            }
            footer { p { "Times are UTC. Press " kbd { "?" } " for the keys." } }
            dialog #keys aria-labelledby="keys-title" {
                h2 #keys-title { "Keys" }
                dl {
                    dt { kbd { "j" } " " kbd { "k" } } dd { "the next row, the one before" }
                    dt { kbd { "Enter" } } dd { "open the row" }
                    dt { kbd { "a" } " " kbd { "d" } } dd { "in the queue: to the button that approves or denies; Enter presses it" }
                    dt { kbd { "?" } } dd { "this list" }
                }
                form method="dialog" { button { "Close" } }
            }
        };
        document(self.status, self.title, proof, &body)
    }

    /// The page that says why there is no other.
    pub(super) fn problem(mut self, problem: &Problem) -> Response<Body> {
        self.status = problem.status;
        let mut response = self.with(html! {
            p.notice role="alert" {
                @if let Some(field) = &problem.field { code { (field) } ": " }
                (problem.detail)
            }
            p { a href="/" { "To what goes on now" } }
        });
        problem.mark(&mut response);
        response
    }
}

/// A whole document.
pub(super) fn document(status: StatusCode, title: &str, proof: &str, body: &Markup) -> Response<Body> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="amends-page" content=(proof);
                title { (title) " · Amends" }
                link rel="stylesheet" href="/console/console.css";
                link rel="icon" href="/console/icon.svg" type="image/svg+xml";
                script src="/console/theme.js" {}
                script src="/console/console.js" defer {}
            }
            body { (body) }
        }
    };
    let mut response = respond(status, "text/html; charset=utf-8", page.into_string());
    let headers = response.headers_mut();
    headers.insert("content-security-policy", HeaderValue::from_static(POLICY));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    // No other site hears where somebody came from. With `no-referrer` a browser would hide the origin of our own forms as well.
    headers.insert("referrer-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

/// A point in time, for people and for programs that read the page.
pub(super) fn time(ms: u64) -> Markup {
    let words = told::utc(amends_core::Timestamp::from_ms(ms));
    html! { time datetime=(words.replace(' ', "T") + "Z") { (words) } }
}

/// The way to a session.
pub(super) fn session(id: &str) -> Markup {
    html! { a href=(format!("/sessions/{}", super::super::api::fields::encoded(id))) { code { (id) } } }
}

/// The way to a call.
pub(super) fn call(id: &str) -> Markup {
    html! { a href=(format!("/calls/{}", super::super::api::fields::encoded(id))) { code { (id) } } }
}

/// How something is: a shape and a word, and a colour for those who see it.
pub(super) fn mark(how: How, words: &str) -> Markup {
    let (class, shape) = match how {
        How::Good => ("good", "●"),
        How::Waits => ("waits", "◐"),
        How::Doubt => ("doubt", "◆"),
        How::Bad => ("bad", "▲"),
        How::Plain => ("plain", "○"),
    };
    html! { span class={ "mark " (class) } { span aria-hidden="true" { (shape) } " " (words) } }
}

/// How something is.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Good,
    Waits,
    Doubt,
    Bad,
    Plain,
}

/// How a call is.
pub(super) fn how_ended(state: &str, end: &str, certainty: Option<&str>) -> How {
    match (state, certainty) {
        ("open", _) => How::Waits,
        ("refused", _) => How::Plain,
        (_, Some("in_doubt")) => How::Doubt,
        _ if end.starts_with("succeeded") => How::Good,
        _ => How::Bad,
    }
}
