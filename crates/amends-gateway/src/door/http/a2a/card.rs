//! The card of this gateway: what it can do, signed with the key that signs checkpoints.

use std::sync::Arc;

use amends_ledger::digest;
use amends_wire::a2a::card::{Card, Skill, signed};
use amends_wire::mcp::lists::Kind;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, ETAG, HOST, HeaderValue, IF_NONE_MATCH};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::super::body::Body;
use super::super::{Door, json as respond};

/// How many tools are listed.
const SKILLS_MAX: usize = 1_000;
/// How much of a tool's description is shown.
const WORDS_MAX: usize = 1_000;

/// The card, for whoever asks.
pub(in crate::door::http) fn card(door: &Arc<Door>, request: &Request<Incoming>) -> Response<Body> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let text = text(door, host);
    let tag = format!("\"{}\"", digest(text.as_bytes()));
    let known = request.headers().get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
    let known = known.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag);
    let mut response = match known {
        true => respond(StatusCode::NOT_MODIFIED, String::new()),
        false => respond(StatusCode::OK, text),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// The card as it is written, signed.
pub(super) fn text(door: &Arc<Door>, host: &str) -> String {
    let config = door.gateway.config();
    let here =
        || format!("http://{}", if host.is_empty() { format!("127.0.0.1:{}", door.port) } else { host.to_owned() });
    let base = config.a2a.url.clone().unwrap_or_else(here);
    let described = Card {
        name: &config.a2a.name,
        description: &config.a2a.description,
        base: &base,
        version: env!("CARGO_PKG_VERSION"),
        push: !config.a2a.push.is_empty(),
        bearer: config.auth.is_asked_for(),
        old: config.a2a.old,
        accepts: &config.a2a.accepts,
        skills: skills(door),
    };
    let mut card = described.json();
    let mut signatures: Vec<Value> = signature(door, &card).into_iter().collect();
    let legacy = described.legacy();
    if !legacy.is_empty() {
        for (name, value) in legacy {
            card[name] = value;
        }
        // A client that knows only the newer members checks those; one that keeps all it was given checks all of it.
        signatures.extend(signature(door, &card));
    }
    if !signatures.is_empty() {
        card["signatures"] = signatures.into();
    }
    card.to_string()
}

fn skills(door: &Door) -> Vec<Skill> {
    let listing = door.gateway.catalogue.now();
    let skill = |entry: &str| {
        let entry: Value = serde_json::from_str(entry).ok()?;
        let id = entry["name"].as_str()?.to_owned();
        let words = entry["description"].as_str().unwrap_or_default().chars().take(WORDS_MAX).collect::<String>();
        let name = entry["title"].as_str().unwrap_or(&id).to_owned();
        let description = if words.is_empty() { name.clone() } else { words };
        let kind = if listing.machines().names().all().any(|own| own == id) { "machine" } else { "tool" };
        let args: serde_json::Map<String, Value> = entry["inputSchema"]["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|field| Some((field.as_str()?.to_owned(), Value::String("…".into()))))
            .collect();
        let example = Some(json!({ "tool": id, "args": args }).to_string());
        Some(Skill { id, name, description, tags: vec![kind.to_owned()], example })
    };
    listing.entries(Kind::Tools).filter_map(|(_, entry)| skill(&entry)).take(SKILLS_MAX).collect()
}

/// A JWS over the card in its canonical form, where there is a key.
fn signature(door: &Door, card: &Value) -> Option<Value> {
    let signer = door.gateway.signer()?;
    let payload = serde_json_canonicalizer::to_vec(&signed(card)).ok()?;
    let header = json!({ "alg": "EdDSA", "typ": "JOSE", "kid": signer.key_name() });
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let text = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
    let signature = URL_SAFE_NO_PAD.encode(signer.sign_bytes(text.as_bytes()));
    Some(json!({ "protected": protected, "signature": signature }))
}
