//! The admin API at `/api`: what the console shows and does, for programs. `openapi.json` describes every route.

pub(crate) mod calls;
pub(crate) mod fields;
pub(crate) mod heavy;
pub(crate) mod interactions;
mod live;
pub(crate) mod machines;
pub(crate) mod problem;
mod routes;
pub(crate) mod sessions;
pub(crate) mod spans;
pub(crate) mod unclassified;
pub(crate) mod upstreams;

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::access::{self, SignedIn};
use super::body::{Bad, Body, Read, read};
use super::{Door, json as respond_json, respond};
use crate::{hindsight, proven};
use fields::Fields;
use problem::Problem;
use routes::{Found, find};

/// The description of the API.
const OPENAPI: &str = include_str!("api/openapi.json");
/// The largest body that is taken, and how deep it may nest.
const BODY_MAX: usize = 256 * 1024;
const DEPTH_MAX: usize = 16;

/// Answers a request under `/api`.
pub(super) async fn handle(door: &Arc<Door>, request: Request<Incoming>) -> Response<Body> {
    let mut response = match answer(door, request).await {
        Ok(response) => response,
        Err(problem) => problem.response(),
    };
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    headers.insert("content-security-policy", HeaderValue::from_static(policy));
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn answer(door: &Arc<Door>, request: Request<Incoming>) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let (route, names) = match find(parts.method.as_str(), parts.uri.path())? {
        Found::Route(route, names) => (route, names),
        Found::OtherMethods(allowed) => return Err(Problem::method(&allowed)),
        Found::Nothing => return Err(Problem::of(StatusCode::NOT_FOUND, "not_found", "there is no such route")),
    };
    let signed_in = access::who(door, &parts.headers).await?;
    signed_in.at_least(route.role)?;
    if route.is_of_the_house() {
        signed_in.of_the_house()?;
    }
    let name = names.first().map(String::as_str).unwrap_or_default();
    let query = Fields::encoded(parts.uri.query().unwrap_or_default())?;
    let asked = Asked { door, signed_in: &signed_in, name, headers: &parts.headers };
    if route.method == "GET" {
        return get(&asked, route.path, query).await;
    }
    query.finish()?;
    signed_in.is_own_page(&parts.headers, None)?;
    let body = json_body(&parts.headers, body).await?;
    post(&asked, route.path, body).await
}

/// A request whose sender and route are known.
struct Asked<'a> {
    door: &'a Arc<Door>,
    signed_in: &'a SignedIn,
    /// What stands in the path where the route has a name.
    name: &'a str,
    headers: &'a HeaderMap,
}

async fn get(asked: &Asked<'_>, path: &str, mut query: Fields) -> Result<Response<Body>, Problem> {
    let (gateway, person) = (&asked.door.gateway, &asked.signed_in.person);
    let said: Value = match path {
        "/api/openapi.json" => {
            query.finish()?;
            return Ok(respond_json(StatusCode::OK, OPENAPI.to_owned()));
        }
        "/api/live" => {
            let last = query.text("last")?;
            query.finish()?;
            let header = asked.headers.get("last-event-id").and_then(|value| value.to_str().ok());
            return Ok(live::open(gateway, header.or(last.as_deref())));
        }
        "/api/machines/{machine}/graph.svg" => {
            query.finish()?;
            return Ok(picture(machines::picture(gateway, asked.name)?));
        }
        "/api/sessions/{session}/graph.svg" => {
            query.finish()?;
            let trace = sessions::trace(gateway, person, asked.name).await?;
            return Ok(picture(machines::walk(gateway, &trace).await?.svg()));
        }
        "/api/me" => {
            let role = person.role.as_str();
            json!({ "name": person.name, "role": role, "tenant": person.tenant, "page": asked.signed_in.page })
        }
        "/api/sessions" => {
            let wanted = sessions::Wanted::read(&mut query)?;
            query.finish()?;
            return Ok(ok(&json!(sessions::list(gateway, person, &wanted).await?)));
        }
        "/api/sessions/{session}" => {
            let trace = sessions::trace(gateway, person, asked.name).await?;
            sessions::told_of(&trace, &mut query)?
        }
        "/api/sessions/{session}/links" => {
            let trace = sessions::trace(gateway, person, asked.name).await?;
            sessions::links(&trace, &mut query)?
        }
        "/api/sessions/{session}/walk" => {
            let trace = sessions::trace(gateway, person, asked.name).await?;
            machines::told(&trace, &machines::walk(gateway, &trace).await?)
        }
        "/api/calls" => {
            let wanted = calls::Wanted::read(&mut query)?;
            query.finish()?;
            return Ok(ok(&json!(calls::list(gateway, person, &wanted).await?)));
        }
        "/api/calls/{call}" => json!(calls::seen(gateway, person, asked.name).await?),
        "/api/interactions" => {
            let entries = interactions::list(gateway, person, &mut query).await?;
            json!({ "items": entries.iter().map(crate::told::question).collect::<Vec<_>>() })
        }
        "/api/interactions/{interaction}" => {
            let entry = interactions::find(gateway, person, asked.name).await?;
            interactions::asked(gateway, entry).await?.to_json()
        }
        "/api/upstreams" => json!({ "items": upstreams::upstreams(gateway) }),
        "/api/tools" => json!({ "items": upstreams::tools(gateway) }),
        "/api/tools/{tool}" => upstreams::tool(gateway, asked.name)?,
        "/api/playbook" => upstreams::playbook(gateway),
        "/api/machines" => json!({ "items": machines::list(gateway) }),
        "/api/unclassified" => json!({ "items": unclassified::list(gateway, person).await? }),
        "/api/checkpoints" => {
            let limit = usize::try_from(query.number("limit", 20, 1, 200)?).unwrap_or(200);
            let found = heavy::checkpoints(gateway, limit).await?;
            json!({ "items": found.iter().map(heavy::checkpoint).collect::<Vec<_>>() })
        }
        _ => return Err(Problem::not_found("route")),
    };
    query.finish()?;
    Ok(ok(&said))
}

async fn post(asked: &Asked<'_>, path: &str, mut body: Fields) -> Result<Response<Body>, Problem> {
    let (gateway, person) = (&asked.door.gateway, &asked.signed_in.person);
    let said = match path {
        "/api/interactions/{interaction}/answer" => {
            let fate = interactions::answer(gateway, person, asked.name, &mut body).await?;
            let said = json!({ "interaction": asked.name, "fate": fate.word, "message": fate.message });
            return Ok(respond_json(fate.status, said.to_string()));
        }
        "/api/whatif" => hindsight::json(&heavy::whatif(gateway, &mut body).await?.whatif),
        "/api/unclassified/proposals" => {
            let proposed = unclassified::propose(gateway, person, &mut body).await?;
            return Ok(respond_json(StatusCode::CREATED, json!(proposed).to_string()));
        }
        "/api/verify" => {
            body.finish()?;
            proven::json(&heavy::verify(gateway).await?)
        }
        "/api/checkpoints" => {
            body.finish()?;
            let signed = heavy::sign(gateway).await?;
            json!({ "checkpoint": signed.as_ref().map(heavy::checkpoint) })
        }
        _ => return Err(Problem::not_found("route")),
    };
    Ok(ok(&said))
}

fn ok(said: &Value) -> Response<Body> {
    respond_json(StatusCode::OK, said.to_string())
}

fn picture(svg: String) -> Response<Body> {
    respond(StatusCode::OK, "image/svg+xml", svg)
}

/// The members of a body that is JSON; none where there is no body.
async fn json_body(headers: &HeaderMap, body: Incoming) -> Result<Fields, Problem> {
    let text = bounded(body).await?;
    if text.trim().is_empty() {
        return Ok(Fields::default());
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let words = "the body is `application/json`";
        return Err(Problem::of(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", words));
    }
    Fields::json(&text)
}

/// A body within its bounds.
pub(super) async fn bounded(body: Incoming) -> Result<String, Problem> {
    match read(body, BODY_MAX, DEPTH_MAX).await {
        Read::Text(text) => Ok(text),
        Read::Bad { why: Bad::TooLarge, .. } => {
            let words = format!("the body is larger than {BODY_MAX} bytes");
            Err(Problem::of(StatusCode::PAYLOAD_TOO_LARGE, "too_large", words))
        }
        Read::Bad { why: Bad::TooDeep, .. } => Err(Problem::field("body", "it nests too deep")),
        Read::Bad { why: Bad::NotUtf8, .. } => Err(Problem::field("body", "it is not UTF-8")),
        Read::Gone => Err(Problem::field("body", "it broke off")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use routes::ROUTES;

    #[test]
    fn every_route_is_described_and_nothing_else_is() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let mut there = BTreeSet::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys().filter(|key| *key != "parameters") {
                there.insert((method.to_uppercase(), path.clone()));
            }
        }
        let routes = ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
        assert_eq!(there, routes);
    }
}
