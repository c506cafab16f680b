//! The page at `/`: what runs here and what happened last.

use std::fmt::Write as _;
use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::body::Body;
use super::{Door, respond};
use crate::upstream::Health;

const SHOWN: usize = 50;

/// The tools served, the upstreams behind them, and the newest sessions.
pub(super) async fn home(door: &Arc<Door>) -> Response<Body> {
    let gateway = &door.gateway;
    let mut upstreams = String::new();
    for upstream in gateway.upstreams().values() {
        let health = match upstream.state() {
            Health::Starting => "starting".to_owned(),
            Health::Ready { .. } => "ready".to_owned(),
            Health::Down { reason } => format!("down: {reason}"),
        };
        let _ = write!(upstreams, "<li><b>{}</b> {}</li>", escape(upstream.name.as_str()), escape(&health));
    }
    let mut tools = String::new();
    for tool in gateway.catalogue.now().tools() {
        let effect = tool.rules.contract.effect.as_str();
        let _ = write!(tools, "<tr><td>{}</td><td>{effect}</td></tr>", escape(tool.name.as_str()));
    }
    let mut sessions = String::new();
    match gateway.ledger.sessions(SHOWN).await {
        Ok(rows) => {
            for row in rows {
                let _ = write!(
                    sessions,
                    "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                    escape(row.session.as_str()),
                    escape(&row.door),
                    row.events,
                    row.open_calls
                );
            }
        }
        Err(error) => {
            let _ = write!(sessions, "<tr><td colspan=4>{}</td></tr>", escape(&error.to_string()));
        }
    }
    let page = include_str!("page.html")
        .replace("{{upstreams}}", &upstreams)
        .replace("{{tools}}", &tools)
        .replace("{{sessions}}", &sessions);
    let mut response = respond(StatusCode::OK, "text/html; charset=utf-8", page);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";
    let headers = response.headers_mut();
    headers.insert("content-security-policy", hyper::header::HeaderValue::from_static(policy));
    headers.insert("x-content-type-options", hyper::header::HeaderValue::from_static("nosniff"));
    response
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
