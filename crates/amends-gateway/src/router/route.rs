//! Which upstream a request is for.

use std::sync::Arc;

use amends_core::nearest::nearest;
use amends_wire::mcp::uri;
use amends_wire::object::Object;
use amends_wire::splice::Splice;
use serde_json::value::RawValue;

use crate::catalogue::{Listing, Served};
use crate::gateway::Gateway;
use crate::upstream::Upstream;

/// How much of a name that is not known is said again.
const SHOWN_MAX: usize = 128;

/// Where a request goes.
#[derive(Debug)]
pub enum Route {
    /// To these upstreams, one after the other, until one knows what it is about.
    To {
        /// The upstreams.
        upstreams: Vec<Arc<Upstream>>,
        /// The parameters as they know them.
        params: Option<String>,
        /// What it is about, for the header `Mcp-Name`.
        subject: Option<String>,
    },
    /// There is no such prompt or resource.
    Unknown {
        /// Whether it would be a resource.
        resource: bool,
        /// What to say.
        words: String,
    },
    /// The parameters do not say what it is about.
    BadParams(&'static str),
    /// Nobody here knows the method.
    NoMethod,
}

/// Where a request goes, by what is listed.
pub fn route(gateway: &Gateway, method: &str, params: Option<&RawValue>) -> Route {
    let text = params.map(RawValue::get);
    if let Some(upstream) = alone(gateway) {
        let subject = amends_wire::mcp::http::body_name(method, params);
        return Route::To { upstreams: vec![upstream], params: text.map(str::to_owned), subject };
    }
    let listing = gateway.catalogue.now();
    let object = text.and_then(Object::parse);
    let member = |name: &str| object.as_ref().and_then(|object| object.string(name).map(|it| it.into_owned()));
    match method {
        "prompts/get" => match member("name") {
            Some(name) => prompt(&listing, &name, text, object.as_ref().and_then(|object| object.get("name"))),
            None => Route::BadParams("`name` must be a string that names a prompt"),
        },
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => match member("uri") {
            Some(uri) => resource(gateway, &listing, &uri, text),
            None => Route::BadParams("`uri` must be a string"),
        },
        "completion/complete" => completion(gateway, &listing, text),
        _ => Route::NoMethod,
    }
}

/// The only upstream, where its names are as they are: what is for it needs no routing and keeps all its bytes.
pub fn alone(gateway: &Gateway) -> Option<Arc<Upstream>> {
    let upstreams = gateway.upstreams();
    let mut upstreams = upstreams.values();
    let (only, None) = (upstreams.next()?, upstreams.next()) else { return None };
    only.config.prefix.is_empty().then(|| only.clone())
}

fn prompt(listing: &Listing, name: &str, params: Option<&str>, written: Option<&RawValue>) -> Route {
    let Some(served) = listing.prompt(name) else {
        let names: Vec<String> =
            listing.entries(amends_wire::mcp::lists::Kind::Prompts).map(|(key, _)| key.to_owned()).collect();
        let near = nearest(name, names.iter().map(String::as_str));
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Route::Unknown { resource: false, words: format!("there is no prompt `{}`{hint}", shown(name)) };
    };
    let written = written.filter(|_| served.local != name);
    let params = params.map(|params| renamed(params, written, &served.local));
    Route::To { upstreams: vec![served.upstream.clone()], params, subject: Some(served.local.clone()) }
}

/// A resource lives where it is listed, or where a template of it is. What nobody lists may still be there, since a tool's answer
/// can name it: those that have such addresses are asked, or all that have resources where nobody has.
fn resource(gateway: &Gateway, listing: &Listing, uri: &str, params: Option<&str>) -> Route {
    let upstreams = lives_at(gateway, listing, uri);
    if upstreams.is_empty() {
        return Route::Unknown { resource: true, words: format!("there is no resource `{}`", shown(uri)) };
    }
    Route::To { upstreams, params: params.map(str::to_owned), subject: Some(uri.to_owned()) }
}

fn lives_at(gateway: &Gateway, listing: &Listing, uri: &str) -> Vec<Arc<Upstream>> {
    if let Some(Served { upstream, .. }) = listing.resource(uri).or_else(|| listing.template_for(uri)) {
        return vec![upstream.clone()];
    }
    let upstreams = gateway.upstreams();
    let have: Vec<_> = upstreams.values().filter(|upstream| upstream.news.capability("resources").is_some()).collect();
    let Some(scheme) = uri::scheme(uri) else { return Vec::new() };
    let alike: Vec<_> = have.iter().copied().filter(|it| listing.has_scheme(&it.name, &scheme)).cloned().collect();
    if alike.is_empty() { have.into_iter().cloned().collect() } else { alike }
}

fn completion(gateway: &Gateway, listing: &Listing, params: Option<&str>) -> Route {
    const BAD: Route = Route::BadParams("`ref` must name a prompt or a resource");
    let Some(text) = params else { return BAD };
    let Some(reference) = Object::parse(text).and_then(|object| object.get("ref")) else { return BAD };
    let Some(object) = Object::parse(reference.get()) else { return BAD };
    match (object.string("type").as_deref(), object.string("name"), object.string("uri")) {
        (Some("ref/prompt"), Some(name), _) => match prompt(listing, &name, params, object.get("name")) {
            Route::To { upstreams, params, .. } => Route::To { upstreams, params, subject: None },
            other => other,
        },
        (Some("ref/resource"), _, Some(uri)) => {
            let upstreams = match listing.template(&uri) {
                Some(served) => vec![served.upstream.clone()],
                None => lives_at(gateway, listing, &uri),
            };
            if upstreams.is_empty() {
                return Route::Unknown { resource: true, words: format!("there is no resource `{}`", shown(&uri)) };
            }
            Route::To { upstreams, params: Some(text.to_owned()), subject: None }
        }
        _ => BAD,
    }
}

/// The parameters with another name where it was written; all other bytes stay as they are.
fn renamed(params: &str, written: Option<&RawValue>, name: &str) -> String {
    let mut splice = Splice::new(params);
    if let Some(written) = written {
        let quoted = serde_json::Value::String(name.to_owned()).to_string();
        let _ = splice.replace(written.get(), quoted);
    }
    splice.finish()
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_MAX)]
}
